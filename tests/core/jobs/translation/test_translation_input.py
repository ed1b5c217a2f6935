"""Text, trees and records of the same segments are the same to the model."""

from __future__ import annotations

from dataclasses import replace

import pytest

from synmt_cli.core.jobs.translation.input import Reader
from synmt_cli.core.text import vocabulary_training
from synmt_cli.core.text.udpipe import Parsed
from synmt_cli.core.text.vocabulary import Vocabulary
from synmt_cli.errors import ConfigError, DataError
from synmt_cli.formats import record
from synmt_cli.formats.record import Record

TREE = """# text = A dog sleeps.
1	A	_	_	_	_	2	det	_	_
2	dog	_	_	_	_	3	nsubj	_	_
3	sleeps	_	_	_	_	0	root	_	SpaceAfter=No
4	.	_	_	_	_	3	punct	_	_

"""
FAILED = "# text = {}\n# synmt_status = failed\n1\t_\t_\tX\t_\t_\t0\troot\t_\t_\n\n"


class OneTree:
    """A parser that knows one sentence."""

    def line(self, text, id):
        known = text.rstrip("\r") == "A dog sleeps."
        return Parsed(f"# sent_id = {id}\n" + (TREE if known else FAILED.format(text)))


@pytest.fixture
def read(vocabulary, tmp_path):
    def read(*contents, kind="auto", parser=None):
        paths = []
        for i, content in enumerate(contents):
            (tmp_path / str(i)).write_bytes(
                content if isinstance(content, bytes) else content.encode()
            )
            paths.append(str(tmp_path / str(i)))
        reader = Reader(vocabulary, vocabulary, parser and (lambda: parser))
        return [one for one, _ in reader.read(paths, kind)]

    return read


def test_the_three_ways_in_agree(read):
    (tree,) = read(TREE)
    (text,) = read("A dog sleeps.\n", parser=OneTree())
    bare = replace(tree, pieces=None, piece_word=None, vocab=None)
    whole, pieceless = read(record.to_bytes(tree) + record.to_bytes(bare))
    assert tree == text == whole == pieceless
    assert tree.piece_word[0] == 0
    assert set(tree.piece_word) == {0, 1, 2, 3}


def test_words_of_a_multiword_token_share_its_pieces(read):
    rows = TREE.split("\n")
    rows.insert(2, "\t".join(["2-3", "dogsleeps", *["_"] * 7, "SpaceAfter=No"]))
    block = "\n".join(rows).replace("A dog sleeps.", "A dogsleeps.")
    (one,) = read(block)
    bare = replace(one, pieces=None, piece_word=None, vocab=None)
    (again,) = read(record.to_bytes(bare))
    assert one == again
    assert set(one.piece_word) == {0, 1, 3}


def test_without_a_parser_text_is_pieces_alone(read, vocabulary):
    one, empty, blank = read("A dog sleeps.\n\n \t\n")
    assert one.heads is None
    assert one.pieces == vocabulary.pieces("A dog sleeps.")
    assert (empty.status, blank.status) == ("empty", "empty")


def test_a_failed_parse_still_has_its_line(read, vocabulary):
    (one,) = read("No tree.\r\r\n", parser=OneTree())
    assert (one.status, one.src) == ("failed", "No tree.\r")
    assert one.pieces == vocabulary.pieces("No tree.")


def test_ids_count_on_over_inputs(read):
    ids = [one.id for one in read("a\n\n", TREE, '{"src":"x"}\n{"id":"own","src":"y"}\n')]
    assert ids == ["1", "2", "3", "4", "own"]


def test_sentences_of_one_line_are_one_record(read):
    line = "# synmt_line = 7\n" + TREE.replace("sleeps.", "sleeps. ")
    (one,) = read(line + line)
    assert (one.id, one.heads) == ("7", [1, 2, -1, 2, 5, 6, -1, 6])


@pytest.mark.parametrize(
    ("content", "problem", "kind"),
    [
        ("a\nb\0c\n", ":2: NUL", "auto"),
        (b"a\xff\n", ":1: invalid UTF-8 at byte 2", "auto"),
        ('{"src":"a"}\n\n', ":2: empty line", "auto"),
        ('{"src":1}\n', ":1: field src", "auto"),
        ("text\n", ":1: 1 column", "conllu"),
        (TREE, ":1: CoNLL-U, expected a JSON object", "jsonl"),
    ],
)
def test_bad_input_is_named(read, content, problem, kind):
    with pytest.raises(DataError, match=problem):
        read(content, kind=kind)


def test_pieces_of_another_vocabulary_are_refused(read, vocabulary):
    other = Record("1", "a", pieces=["▁a"], vocab="0123456789abcdef")
    with pytest.raises(ConfigError, match=f"0123456789abcdef.*{vocabulary.fingerprint}"):
        read(record.to_bytes(other))


def test_records_without_targets_fit_a_model_of_two_vocabularies(vocabulary, tmp_path):
    settings = vocabulary_training.VocabularySettings(size=20)
    target = Vocabulary(vocabulary_training.train(["ein Hund"] * 9, settings))
    own = [vocabulary.fingerprint, f"{vocabulary.fingerprint}+{target.fingerprint}"]
    lines = [record.to_bytes(Record("1", "a", pieces=["▁a"], vocab=one)) for one in own]
    (tmp_path / "x").write_bytes(b"".join(lines))
    found = Reader(vocabulary, target).read([str(tmp_path / "x")], "auto")
    assert [one.vocab for one, _ in found] == own


def test_text_that_looks_like_a_record_can_be_forced(read):
    assert read('{"a": 1}\n', kind="text")[0].src == '{"a": 1}'
