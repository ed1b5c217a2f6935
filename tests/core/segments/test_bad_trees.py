"""Blocks that are not trees become failed segments in their places, and nothing else changes."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synmt_cli.core.segments.alignment import record_of
from synmt_cli.core.segments.bad_trees import BadTrees, failed, located
from synmt_cli.core.segments.comments import is_placeholder, lines
from synmt_cli.errors import DataError
from synmt_cli.formats import conllu
from synmt_cli.formats.conllu import to_text
from synmt_cli.io.reading import Source

ROW = "{}\t{}\t_\tX\t_\t_\t{}\t_\t_\t{}\n"


def source(text):
    return Source("f", io.BytesIO(text.encode()))


def read(text, instead=failed):
    return list(conllu.read(source(text), instead=instead))


def block(heads, comments="", misc="_"):
    rows = (
        ROW.format(i, form, head, misc)
        for i, (form, head) in enumerate(zip("abcdefgh", heads, strict=False), 1)
    )
    return comments + "".join(rows) + "\n"


def is_tree(heads):
    """Whether heads are a tree with one root, by walking up from every word."""
    if heads.count(0) != 1 or max(heads) > len(heads):
        return False
    for word in range(1, len(heads) + 1):
        for _ in heads:
            word = word and heads[word - 1]
        if word:
            return False
    return True


@given(st.lists(st.lists(st.integers(0, 4), min_size=1, max_size=4), max_size=8))
def test_exactly_the_blocks_that_are_no_trees_fail(every):
    text = "".join(map(block, every))
    found = read(text)
    assert [not is_placeholder(one) for one in found] == [*map(is_tree, every)]
    for heads, one in zip(every, found, strict=True):
        if is_tree(heads):
            assert to_text(one) == block(heads)
        else:
            one_record, _ = record_of([one], "7")
            assert (one_record.status, one_record.words) == ("failed", None)
            assert one_record.src == " ".join("abcdefgh"[: len(heads)])
    whole = "".join(map(to_text, found))
    assert "".join(map(to_text, read(whole, None))) == whole  # which is valid CoNLL-U


@given(st.lists(st.lists(st.integers(0, 4), min_size=1, max_size=4), min_size=1, max_size=5))
def test_the_reason_of_the_first_is_the_error_of_a_reader_without_the_option(every):
    bad = BadTrees()
    read("".join(map(block, every)), bad)
    assert bad.n == sum(not is_tree(heads) for heads in every)
    if bad.n:
        with pytest.raises(DataError) as error:
            read("".join(map(block, every)), None)
        assert bad.first == str(error.value)
    assert len([*bad.warnings()]) == 2 * bool(bad.n)


GOOD = block([0], "# text = one\n")


@pytest.mark.parametrize(
    ("bad", "reason", "text"),
    [
        ("# text = x y\n1\tx\t_\n\n", "f:5: 3 columns, expected 10", "x y"),
        ("1\tx\t_\n\n", "f:4: 3 columns, expected 10", ""),
        ("# text = x\n2\tx" + 8 * "\t_" + "\n\n", "f:5: ID 2, expected 1", "x"),
        (block([0]).rstrip() + "\n3\tx" + 8 * "\t_" + "\n\n", "f:5: ID 3, expected 2", ""),
        (block([0]).rstrip() + "\n# x\n\n", "f:5: comment inside a sentence", ""),
        ("# sent_id = 9\n\n", "f:4: comments without a sentence", ""),
        (
            "# text = of the comment\n" + ROW.format(1, "a", "_", "_") + "\n",
            "f:5: HEAD '_' is not a word's number; synmt parse --from conllu makes trees",
            "of the comment",
        ),
        (block([3, 0, 1], misc="SpaceAfter=No"), "f:4: HEAD of word 1 is below it", "abc"),
        (block([1]), "f:4: HEAD 1 is the word itself", "a"),
        (
            "1-2\tab\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No\n" + block([2, 1, 0]),
            "f:5: HEAD of word 1 is below it",
            "abc",
        ),
    ],
)
def test_the_text_is_kept_and_the_line_is_named(bad, reason, text):
    first, one, last = read(GOOD + bad + GOOD)
    assert (to_text(first), to_text(last)) == (GOOD, GOOD)
    found, _ = record_of([one], "2")
    assert (found.status, found.src) == ("failed", text)
    assert found.reason.startswith(reason)
    assert to_text(one).endswith("1\t_\t_\tX\t_\t_\t0\troot\t_\t_\n\n")


def test_comments_stay_but_an_earlier_status():
    heads = "# sent_id = s9\n# synmt_status = skipped\n# synmt_reason = old\n# x\n# text = a b\n"
    (one,) = read(block([0, 0], heads))
    assert one.comments == [
        *("# sent_id = s9", "# x", "# text = a b", "# synmt_status = failed"),
        "# synmt_reason = f:7: 2 words with HEAD 0 (root), expected 1",
    ]


@pytest.mark.parametrize("bad", [0, 1, 2])
def test_one_bad_sentence_fails_its_line_whose_text_is_whole(bad):
    parts = [
        f"# synmt_line = 4\n# text = {'abc'[k]}  \n{k and ''}" + ROW.format(1, "abc"[k], 0, "_")
        for k in range(3)
    ]
    parts[bad] = parts[bad].replace("\t0\t", "\t9\t")
    (group,) = lines(read("".join(part.replace("\n0", "\n") + "\n" for part in parts)))
    found, _ = record_of(group, "1")
    assert (found.id, found.status, found.src) == ("4", "failed", "a  b  c  ")
    assert found.reason == f"f:{4 * bad + 3}: HEAD 9 is beyond the last word, 1"


@pytest.mark.parametrize("bad", [b"1\tx\0\t_\n\n", b"# text = \xff\n\n", b"# \xff\n1\tx\n\n"])
def test_what_is_no_text_is_still_an_error(bad):
    data = GOOD.encode() + bad
    sentences = conllu.read(Source("f", io.BytesIO(data)), instead=failed)
    assert to_text(next(sentences)) == GOOD
    with pytest.raises(DataError, match=r"f:4: (NUL character|invalid UTF-8)"):
        next(sentences)


@pytest.mark.parametrize(
    ("reason", "shown"),
    [
        ("f:12: 2 roots", "f:12: 2 roots"),
        ("f: 2 roots", "f:1: f: 2 roots"),
        ("g:12: 2 roots", "f:1: g:12: 2 roots"),
        ("", "f:1: "),
    ],
)
def test_a_place_is_named_once(reason, shown):
    assert str(located(("f", 1), reason)) == shown
