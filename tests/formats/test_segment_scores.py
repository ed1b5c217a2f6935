"""Scores of segments: both forms, and the errors of bad lines."""

import io

import pytest
from support.mutations import JSON_PIECES, PIECES, mutations

from synmt_cli.errors import DataError
from synmt_cli.formats import segment_scores
from synmt_cli.io.reading import Source


def read(data):
    return [*segment_scores.read(Source("f", io.BytesIO(data)))]


def test_reading_what_was_written_gives_the_same():
    scores = [("a b", 0.1), ("a b", -1e-17), ("c", 100 / 3), ("c", 5.0)]
    data = b"".join(segment_scores.to_bytes(*one) for one in scores)
    assert [(one.system, one.score) for one in read(data)] == scores
    assert [one.line for one in read(data)] == [1, 2, 3, 4]


def test_jsonl_is_the_same():
    data = b'{"system":"a","score":1}\n{"score":-0.5,"system":"b","id":3}\n'
    assert [(one.system, one.score) for one in read(data)] == [("a", 1.0), ("b", -0.5)]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b"a\tNone", "f:2: no score of 'a': every segment needs one"),
        (b"a\tnan", "f:2: the score 'nan' of 'a' is not a finite number"),
        (b"a\t1_0", "f:2: the score '1_0' of 'a' is not a finite number"),
        (b"a\t 1", "f:2: the score ' 1' of 'a' is not a finite number"),
        (b"a\t1\t2", "f:2: 3 columns, expected SYSTEM<TAB>SCORE"),
        (b"a", "f:2: 1 column, expected SYSTEM<TAB>SCORE"),
        (b"\t1", "f:2: the name of the system is empty"),
        (b"\xff\t1", "f:2: invalid UTF-8 at byte 1"),
    ],
)
def test_a_bad_line_is_named(line, problem):
    with pytest.raises(DataError, match=problem):
        read(b"a\t1\n" + line + b"\n")


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b'{"system":"a","score":null}', "f:2: no score of 'a': every segment needs one"),
        (b'{"system":"a","score":true}', "f:2: the score 'True' of 'a' is not"),
        (b'{"system":"a"', "f:2: invalid JSON"),
        (b"[1]", "f:2: expected"),
    ],
)
def test_a_bad_object_is_named(line, problem):
    with pytest.raises(DataError, match=problem):
        read(b'{"system":"a","score":1}\n' + line + b"\n")


@pytest.mark.parametrize("pieces", [PIECES, JSON_PIECES])
def test_mutated_scores_end_in_scores_or_an_error(pieces):
    tsv = b"".join(segment_scores.to_bytes("sys", i / 7) for i in range(5))
    json = b'{"system":"a","score":1.5}\n' * 3
    for data in mutations(tsv if pieces is PIECES else json, 3, pieces, 400):
        lines, scores = [1], []
        try:
            scores = read(data)
        except DataError as error:
            lines = [error.line]
        assert 1 <= lines[0] <= data.count(b"\n") + 1
        assert all(one.score - one.score == 0 for one in scores)  # finite
