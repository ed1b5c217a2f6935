import gzip
import io
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.work import takes_linear_time

from synmt_cli.errors import DataError
from synmt_cli.formats import conllu
from synmt_cli.formats.conllu import Sentence
from synmt_cli.io.reading import Source

ROW = "{}\t{}\t_\tX\t_\t_\t{}\tdep\t_\t_\n"


def tree(*heads, forms="abcdefghij"):
    return "".join(
        ROW.format(i, form, head)
        for i, (form, head) in enumerate(zip(forms, heads, strict=False), 1)
    )


def source(data, chunk=None):
    data = data.encode() if isinstance(data, str) else data
    raw = io.BytesIO(data) if chunk is None else Trickle(data, chunk)
    return Source("f", io.BufferedReader(raw))


class Trickle(io.RawIOBase):
    """Gives a few bytes at a time, as a slow pipe does."""

    def __init__(self, data, chunk):
        self.data, self.chunk = data, chunk

    def readable(self):
        return True

    def readinto(self, buffer):
        part, self.data = self.data[: self.chunk], self.data[self.chunk :]
        buffer[: len(part)] = part
        return len(part)


def read(data):
    return list(conllu.read(source(data)))


def failure(data):
    with pytest.raises(DataError) as caught:
        read(data)
    return caught.value


GOOD = "# text = a b c\n" + tree(2, 0, 2) + "\n"
LINE = ROW.format(2, "b", 0)  # line 3 of GOOD


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        (LINE.replace("\tdep", ""), "9 columns, expected 10"),
        (LINE.replace("\t_\t_\n", "\n"), "8 columns, expected 10"),
        (LINE.replace("\n", "\tx\n"), "11 columns, expected 10"),
        (LINE.replace("\n", "\t\n"), "11 columns, expected 10"),
        (LINE.replace("\tb\t", "\tb\tb\t"), "11 columns, expected 10"),
        (LINE.replace("\t", "    "), "1 column, expected 10"),
        (" \n", "1 column, expected 10"),
        (LINE.replace("\tb\t", "\t\t"), "column 2 (FORM) is empty"),
        (LINE.replace("\t_\n", "\t\n"), "column 10 (MISC) is empty"),
        (LINE.replace("b", "b\0"), "NUL character"),
        ("# late\n" + LINE, "comment inside a sentence"),
        *[
            (LINE.replace("2", id, 1), f"ID '{id}' is not a word, range or empty node")
            for id in ["02", "-2", "2-", "2.", "2,5", "+2", "٢", "２", " 2", "x", "2-3-4", "2.0"]
        ],
        (LINE.replace("2", "1", 1), "ID 1, expected 2"),
        (LINE.replace("2", "3", 1), "ID 3, expected 2"),
        (LINE.replace("2", "2" * 10, 1), "ID '2222222222' is not a word, range or empty node"),
        (LINE.replace("2", "3-2", 1), "ID 3-2 ends before it begins"),
        (LINE.replace("2", "1-2", 1), "ID 1-2 must stand right before word 1"),
        (LINE.replace("2", "2-9", 1) + LINE, "ID 2-9 goes beyond the last word, 3"),
        (LINE.replace("2", "2-214748364", 1) + LINE, "goes beyond the last word, 3"),
        (LINE.replace("2", "2-2147483647", 1) + LINE, "is not a word, range or empty node"),
        (LINE.replace("2", "1.2", 1) + LINE, "ID 1.2, expected 1.1"),
        (LINE.replace("2", "2.1", 1) + LINE, "ID 2.1 must stand right after word 2"),
    ],
)
def test_a_bad_line_is_named(bad, problem):
    error = failure(GOOD.replace(LINE, bad))
    assert error.line == 3
    assert problem in error.problem


@pytest.mark.parametrize(
    ("line", "advice"),
    [
        ("A dog.", "text has no trees: synmt parse makes them"),
        ("{A} dog.", "text has no trees: synmt parse makes them"),
        (
            '{"src":"A dog."}',
            "this looks like JSONL: give the CoNLL-U from which synmt featurize made it",
        ),
    ],
)
def test_a_file_of_something_else_is_named_by_its_first_line(line, advice):
    assert failure(f"{line}\n{line}\n").problem == f"1 column, expected 10; {advice}"
    assert failure(f"{GOOD}{line}\n").problem == "1 column, expected 10"


@pytest.mark.parametrize("head", ["x", "1.0", "-1", "_", "+1", " 1", "1_0", "١", "１", "²", "0x1",
                                  "-0", "01", "9" * 5000, "4", "999999999", "2"])  # fmt: skip
def test_a_bad_head_is_named(head):
    error = failure(GOOD.replace(LINE, ROW.format(2, "b", head)))
    assert error.line == 3
    assert error.problem.startswith("HEAD ")
    assert len(error.problem) < 200


@pytest.mark.parametrize(
    "heads", [(2, 1), (0, 3, 2), (2, 3, 1), (0, 0), (0, 0, 0), (3, 3, 4, 5, 3), (1, 0), (2, 3, 4)]
)
def test_what_is_no_tree_is_refused(heads):
    assert 1 <= failure(tree(*heads) + "\n").line <= len(heads)


@pytest.mark.parametrize(
    ("data", "line", "problem"),
    [
        (GOOD + "# alone\n\n", 6, "comments without a sentence"),
        ("\n\n# alone", 3, "comments without a sentence"),
        (GOOD.encode() + b"# \xff\n" + GOOD.encode(), 6, "invalid UTF-8 at byte 3"),
        (GOOD.encode("utf-16"), 1, "invalid UTF-8 at byte 1"),
        (GOOD.encode() + b"1\t\xc3\t_\n", 6, "invalid UTF-8 at byte 3"),
        (GOOD.encode() + b"1\t\xed\xa0\x80\t_\n", 6, "invalid UTF-8 at byte 3"),
        (ROW.format("1-2", "ab", "_") + "\n", 1, "no word in the sentence"),
        (ROW.format("1-2", "ab", "_") + ROW.format("2-3", "b", "_") + tree(0, 1, 1), 2, "overlaps"),
        (ROW.format("1-2", "ab", "_") + ROW.format("0.1", "b", "_") + tree(0, 1), 2, "before the"),
    ],
)
def test_a_bad_block_is_named(data, line, problem):
    error = failure(data)
    assert error.line == line
    assert problem in error.problem


def test_sentences_before_an_error_come_out():
    sentences = conllu.read(source(GOOD + "\n" + GOOD + "1\tx\n"))
    assert [next(sentences).line, next(sentences).line] == [1, 7]
    with pytest.raises(DataError, match=r"f:12: 2 columns"):
        next(sentences)


ODD = (
    "# a\tb\tc\td\te\tf\tg\th\ti\tj\n#\n#x\n"
    + ROW.format("0.1", "_", "_")
    + ROW.format("1-2", "# ab", "_")
    + ROW.format(1, "_", 2)
    + "".join(ROW.format(f"1.{i}", "e", "_") for i in range(1, 12))
    + "2\t#\t_\t_\t_\t_\t0\troot:a:b\t_\tSpaceAfter=No|x=y=z\n"
    + ROW.format("3-3", "c", "_")
    + ROW.format(3, "c", 1)
)


def test_ranges_and_empty_nodes_are_not_words():
    (sentence,) = read(ODD)
    assert sentence.forms == ["_", "#", "c"]
    assert sentence.heads == [2, 0, 1]
    assert [(first, last) for first, last, _ in sentence.ranges] == [(1, 2), (3, 3)]
    assert len(sentence.rows) == 17
    assert sentence.deprels[1] == "root:a:b"


def test_every_way_to_end_lines_reads_the_same():
    plain = GOOD + ODD + "\n" + GOOD
    expected = b"".join(map(conllu.to_bytes, read(plain)))
    assert expected == plain.encode()
    for other in (
        plain.replace("\n", "\r\n"),
        plain.replace("\n", "\r\n", 5),
        plain.rstrip("\n"),
        plain.rstrip("\n") + "\r",
        plain[:-1],
        "\n\n\n" + plain.replace("\n\n", "\n\n\n\n\n") + "\n\n",
        "﻿" + plain,
    ):
        assert b"".join(map(conllu.to_bytes, read(other))) == expected


@pytest.mark.parametrize("chunk", [1, 2, 3, 7, 100])
def test_the_size_of_reads_never_matters(chunk):
    data = "﻿" + GOOD.replace("\n", "\r\n") + "\r\n" + ODD + "\n\n" + GOOD.replace("\t0\t", "\t9\t")
    with pytest.raises(DataError, match="f:31: HEAD 9 is beyond"):
        list(conllu.read(source(data, chunk)))
    assert [s.line for s in conllu.read(source(GOOD + "\n\n" + ODD, chunk))] == [1, 8]
    batches = list(conllu.batches(source("\n\n" + GOOD + "\n\n\n" + ODD, chunk)))
    assert sum(map(len, batches)) == 2


FORMS = [
    *(
        "a b",
        "a\u00a0b",
        "\u2028",
        "\u0085",
        "\x0b",
        "\x0c",
        "\x1c",
        "a\rb",
        " ",
        "\u3000",
        "\u200b",
    ),
    *("\U0001f469\u200d\U0001f467", "שלום", "\u202eab", "e\u0301", "\ufffd", "a" + "\u0301" * 100),
    *("▁x", "ab@@", "<unk>", "</s>", "LEFT-ARC:det", "SHIFT", "0", "１"),
]


def test_forms_keep_every_character():
    heads = [0] + [1] * (len(FORMS) - 1)
    text = tree(*heads, forms=FORMS) + "\n"
    (sentence,) = read(text)
    assert sentence.forms == FORMS
    assert conllu.to_bytes(sentence).decode() == text


cell = st.text(st.characters(exclude_characters="\t\n\0", codec="utf-8"), min_size=1).filter(
    lambda text: not text.endswith("\r")
)


@st.composite
def sentence(draw):
    n = draw(st.integers(1, 8))
    order = draw(st.permutations(range(1, n + 1)))
    heads = [0] * n
    for k, word in enumerate(order[1:], 1):
        heads[word - 1] = draw(st.sampled_from(order[:k]))
    words = []
    for i, head in enumerate(heads, 1):
        row = draw(st.lists(cell, min_size=10, max_size=10))
        row[0], row[6] = str(i), str(head)
        words.append(row)
    rows = list(words)
    if draw(st.booleans()):
        first = draw(st.integers(1, n))
        last = draw(st.integers(first, n))
        rows.insert(first - 1, [f"{first}-{last}", *draw(st.lists(cell, min_size=9, max_size=9))])
    comments = ["#" + text for text in draw(st.lists(cell, max_size=3))]
    return Sentence(comments, rows, words, heads)


@given(st.lists(sentence(), max_size=4))
@settings(max_examples=50)
def test_what_was_written_reads_the_same(sentences):
    written = b"".join(map(conllu.to_bytes, sentences))
    assert read(written) == sentences
    assert read(written.replace(b"\n", b"\r\n")) == sentences


def random_heads(n, rng):
    return [0, *(rng.randrange(1, i) for i in range(2, n + 1))]


@pytest.mark.parametrize(
    "heads",
    [
        lambda n: [0, *range(1, n)],
        lambda n: [0] + [1] * (n - 1),
        lambda n: random_heads(n, random.Random(1)),
        lambda n: [*range(2, n + 1), 0],
    ],
    ids=["deep", "wide", "random", "deep to the left"],
)
@pytest.mark.parametrize("n_cached", [conllu.N_CACHED, 0], ids=["at once", "row by row"])
def test_great_sentences_take_linear_time(monkeypatch, heads, n_cached):
    monkeypatch.setattr(conllu, "N_CACHED", n_cached)

    def check(data):
        (sentence,) = read(data)
        assert sentence.heads == heads(len(sentence.heads))

    assert takes_linear_time(check, lambda n: tree(*heads(n), forms=["w"] * n), 60_000)


def test_a_sentence_over_the_limit_is_refused(monkeypatch):
    monkeypatch.setattr(conllu, "SENTENCE_LIMIT", 2**20)
    endless = GOOD.encode() + b"# x\n" + b"a" * 2**21
    with pytest.raises(DataError, match=r"f:7: sentence longer than 1 MiB"):
        list(conllu.read(source(endless)))


def test_the_first_of_two_comments_counts():
    (sentence,) = read("# sent_id = 1\n#text=a = b\n# text = c\n# text_x\n" + tree(0) + "\n")
    assert sentence.comment("text") == "a = b"
    assert sentence.comment("sent_id") == "1"
    assert sentence.comment("text_x") is None


TREEBANKS = ["en_ewt-dev", "de_gsd-test", "de_lit"]


@pytest.mark.parametrize("name", TREEBANKS)
def test_treebanks_come_out_byte_for_byte(data, name):
    text = gzip.decompress((data / "ud" / f"{name}.conllu.gz").read_bytes())
    assert b"".join(map(conllu.to_bytes, conllu.read(source(text)))) == text


def test_agrees_with_conllu(data):
    import conllu as other

    text = gzip.decompress((data / "ud" / "de_gsd-dev.conllu.gz").read_bytes())
    for ours, theirs in zip(read(text), other.parse(text.decode()), strict=True):
        words = [token for token in theirs if isinstance(token["id"], int)]
        assert ours.forms == [token["form"] for token in words]
        assert ours.heads == [token["head"] for token in words]
        assert ours.deprels == [token["deprel"] for token in words]
        assert ours.metadata()["text"] == theirs.metadata["text"]


def test_agrees_with_pyconll(data):
    import pyconll

    text = gzip.decompress((data / "ud" / "en_ewt-test.conllu.gz").read_bytes())
    for ours, theirs in zip(read(text), pyconll.iter_from_string(text.decode()), strict=True):
        words = [t for t in theirs if not t.is_multiword() and "." not in t.id]
        assert ours.forms == [token.form for token in words]
        assert ours.heads == [int(token.head) for token in words]
        assert ours.upos == [token.upos for token in words]
