"""Searching for problems, counting and drawing agree with reading, whatever the bytes."""

from __future__ import annotations

import io
import random

import pytest

from synmt_cli.core.inspection import counts
from synmt_cli.core.inspection.problems import ProblemFinder
from synmt_cli.core.jobs.view import Drawing, of_conllu, of_records
from synmt_cli.errors import DataError
from synmt_cli.formats import conllu, record
from synmt_cli.io.reading import Source

ROWS = (
    "1-2\tzum\t_\t_\t_\t_\t_\t_\t_\t_\n1\tzu\t_\tADP\t_\t_\t3\tcase\t_\t_\n"
    "2\tdem\t_\tDET\t_\t_\t3\tdet\t_\t_\n3\tÄ\t_\tNOUN\t_\t_\t0\troot\t_\t_\n\n"
)
CONLLU = "".join(f"# sent_id = {n}\n# text = zum Ä\n{ROWS}" for n in range(1, 9)).encode()
RECORD = (
    '{"id":"1","src":"a Ä","words":["a","Ä"],"spans":[[0,1],[2,3]],"heads":[1,-1],"sents":[0],'
    '"deprels":["x","root"],"upos":["X","Y"],"pieces":["▁a","▁Ä"],"piece_word":[0,1],"new":[1]}\n'
)
RECORDS = RECORD.encode() * 8
ROUNDS = 300


def mutated(data, rng):
    data = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 5])):
        at = rng.randrange(len(data))
        match rng.randrange(4):
            case 0:
                data[at] = rng.randrange(256)
            case 1:
                del data[at : at + rng.choice([1, 1, 10])]
            case 2:
                data[at:at] = bytes([rng.choice(b"\t\n\r\0 -0\xff")])
            case 3:
                data[at:at] = data[at - 20 : at]
    return bytes(data)


def source(data):
    return Source("f", io.BytesIO(data))


def failure(results):
    try:
        for _ in results:
            pass
    except DataError as error:
        return str(error)
    return None


@pytest.mark.parametrize(
    ("kind", "data", "read", "views"),
    [
        ("conllu", CONLLU, conllu.read, of_conllu),
        ("jsonl", RECORDS, record.read, of_records),
    ],
)
def test_the_first_problem_is_the_readers_and_the_rest_follow(kind, data, read, views):
    rng = random.Random(7)
    n_further = 0
    for _ in range(ROUNDS):
        bad = mutated(data, rng)
        expected = failure(read(source(bad)))
        found = list(ProblemFinder().problems(source(bad), kind))
        assert list(map(str, found[:1])) == [expected] * bool(expected)
        assert [one.line for one in found] == sorted({one.line for one in found})
        counted = ProblemFinder(counting=True)
        assert list(map(str, counted.problems(source(bad), kind))) == list(map(str, found))
        assert failure(counts.of_stream(source(bad), kind) for _ in "1") == expected
        assert failure(Drawing(width=30).block(one) for one in views(source(bad))) == expected
        n_further += len(found) > 1
    assert n_further > ROUNDS / 10


@pytest.mark.parametrize(("kind", "data"), [("conllu", CONLLU), ("jsonl", RECORDS)])
def test_segments_are_counted_with_the_broken_ones(kind, data):
    search = ProblemFinder(counting=True)
    assert list(search.problems(source(data), kind)) == []
    assert (search.n_segments, search.is_whole) == (8, True)
    broken = data.replace(b"\xc3\x84", b"\xff", 3)
    search = ProblemFinder(counting=True)
    assert list(search.problems(source(broken), kind))
    assert search.n_segments == 8
