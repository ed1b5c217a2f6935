"""Each test of a pair against its definition."""

import io
import json
import math
import random
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synmt_cli.core.filtering import criteria
from synmt_cli.core.filtering.line_hashes import Digests, digest
from synmt_cli.core.filtering.pairs import Pair, pairs, score_of
from synmt_cli.core.segments.reader import jsonl
from synmt_cli.core.segments.segment import TextSegment
from synmt_cli.errors import DataError, UsageError
from synmt_cli.io.reading import Source


def text(source, target=None, score=None):
    return Pair(
        TextSegment(source, ("x", 1)),
        (source,) if target is None else (source, target),
        target,
        score,
    )


def record(**fields):
    line = json.dumps({"src": "a b", **fields}).encode()
    (pair,) = pairs(jsonl(Source("x", io.BytesIO(line))))
    return pair


def clean_corpus_n(source, target, low, high, ratio, longest_word):
    """Whether clean-corpus-n.perl of Moses keeps a pair, with its own words and order of tests."""
    source, target = source.split(), target.split()
    for side in (source, target):
        if not side or len(side) > high or len(side) < low:
            return False
    if len(target) / len(source) > ratio or len(source) / len(target) > ratio:
        return False
    return all(len(word) <= longest_word for word in source + target)


words = st.lists(st.text("ab", min_size=1, max_size=4), max_size=6).map("  ".join)


@given(words, words)
def test_lengths_are_those_of_clean_corpus_n(source, target):
    pair = text(source, target)
    found = [
        *(criteria.length(pair, least=2), criteria.length(pair, most=4)),
        *(criteria.ratio(pair, 1.5), criteria.word_length(pair, 3)),
    ]
    assert (not any(found)) == clean_corpus_n(source, target, 2, 4, 1.5, 3)


def test_what_was_found_names_the_first_side_at_fault():
    assert criteria.length(text("a b", "c d e"), most=2) == "3 target words"
    assert criteria.length(text("a b c", "c d e"), most=2) == "3 source words"
    assert criteria.length(text("a", " \u3000"), least=1) == "0 target words"
    assert criteria.length(text(" äöü ", "äöüß"), most=3, unit="chars") == "4 target chars"
    assert criteria.word_length(text("a bb", "x longer y"), 3) == ("a target word of 6 characters")
    assert criteria.ratio(text("a b c", "d"), 2) == "3 : 1 words"
    assert criteria.ratio(text("a b c", "d"), 3) == ""
    assert criteria.ratio(text("", "d"), 99) == "0 : 1 words"
    assert criteria.ratio(text("", ""), 1) == ""
    for longer, shorter in ((63, 45), (115, 50), (123, 30), (255, 50)):
        most = longer / shorter
        assert criteria.ratio(text("a " * longer, "b " * shorter), most) == ""
        assert criteria.ratio(text("a " * (longer + 1), "b " * shorter), most) != ""


def test_one_side_alone_is_measured_alone():
    assert criteria.length(text("a"), most=1) == criteria.length(text("a"), least=1) == ""
    with pytest.raises(UsageError, match=r"--ratio needs both sides: .* --tgt"):
        criteria.ratio(text("a"), 2)
    with pytest.raises(DataError, match="x:1: field tgt is missing, but --ratio needs it"):
        criteria.ratio(record(), 2)


@pytest.mark.parametrize(
    ("fields", "n"),
    [
        ({"tgt_pieces": ["a", "b"]}, 2),
        ({"transitions": ["▁a", "b", "LEFT-ARC:det", "▁c", "RIGHT-ARC:obj"]}, 3),
        ({"tgt_pieces": ["a"], "transitions": ["▁a", "b"]}, 1),
    ],
)
def test_transitions_that_are_no_pieces_do_not_count(fields, n):
    assert criteria.target_pieces(record(**fields), n) == ""
    assert criteria.target_pieces(record(**fields), n - 1) == f"{n} pieces"
    with pytest.raises(DataError, match="field tgt_pieces is missing, but --max-tgt-pieces"):
        criteria.target_pieces(record(), 1)


@pytest.mark.parametrize("unit", criteria.UNITS)
def test_a_blank_side_has_length_0_in_every_unit(unit):
    blank = ["▁", "\u00a0"]  # white space other than spaces has pieces
    pair = record(src="\u00a0", pieces=blank, tgt="x", tgt_pieces=["▁x"])
    assert criteria.length(pair, least=1, unit=unit) == f"0 source {unit}"
    assert criteria.ratio(pair, 9, unit) == f"0 : 1 {unit}"
    pair = record(pieces=["▁a", "▁b"], tgt="\u00a0", tgt_pieces=blank)
    assert criteria.length(pair, least=1, unit=unit) == f"0 target {unit}"


def test_pieces_are_a_unit_of_records():
    pair = record(pieces=["a", "b", "c"], tgt="x", tgt_pieces=["x"])
    assert criteria.length(pair, most=2, unit="pieces") == "3 source pieces"
    assert criteria.ratio(pair, 2, "pieces") == "3 : 1 pieces"
    with pytest.raises(UsageError, match="--unit pieces needs records with pieces"):
        criteria.length(text("a"), most=2, unit="pieces")


def crosses(heads):
    """Whether two arcs cross in the usual picture; a root's arc comes from left of the line."""
    arcs = [(min(word, head), max(word, head)) for word, head in enumerate(heads)]
    return any(a < c < b < d or c < a < d < b for (a, b), (c, d) in combinations(arcs, 2))


def random_tree(n):
    order = random.sample(range(n), n)
    heads = [-1] * n
    for i, word in enumerate(order[1:], 1):
        heads[word] = order[random.randrange(i)]
    return heads


def test_projective_means_that_no_arcs_cross():
    random.seed(7)
    n_crossing = 0
    for _ in range(300):
        heads = random_tree(random.randint(1, 6))
        n = len(heads)
        tree = {"words": ["w"] * n, "spans": [[0, 1]] * n, "deprels": ["d"] * n, "upos": ["X"] * n}
        found = criteria.projective(record(heads=heads, **tree))
        assert bool(found) == crosses(heads)
        n_crossing += crosses(heads)
    assert 50 < n_crossing < 250


@pytest.mark.parametrize("heads", [[0], [1, 0], [5], [-1, -1]])
def test_heads_that_are_no_tree_are_refused(heads):
    n = len(heads)
    tree = {"words": ["w"] * n, "spans": [[0, 1]] * n, "deprels": ["d"] * n, "upos": ["X"] * n}
    with pytest.raises(DataError, match="x:1: field heads"):
        criteria.projective(record(heads=heads, **tree))
    with pytest.raises(DataError, match="x:1: field heads is missing, but --projective"):
        criteria.projective(record())


def test_failures_have_their_reason_and_empty_is_none():
    assert criteria.status(record(status="failed", reason="2 roots")) == "failed: 2 roots"
    assert criteria.status(record(status="skipped")) == "skipped"
    assert criteria.status(record(status="empty", src="")) == ""
    assert criteria.status(record()) == ""


def lines(*texts):
    found = Digests()
    for one in texts:
        found.add(digest([one]))
    return found


def test_a_line_of_an_excluded_file_on_the_side_that_counts():
    excluded = lines("a b", "x")
    assert criteria.excluded(text("a  b ", "y"), excluded) == "src in an excluded file"
    assert criteria.excluded(text("a", "x"), excluded) == "tgt in an excluded file"
    assert criteria.excluded(text("a", "x"), excluded, "src") == ""
    assert criteria.excluded(text("a b", "y"), excluded, "tgt") == ""
    assert criteria.excluded(text("a"), excluded) == ""


@given(st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from(["c", "c ", "d"]))))
def test_the_first_of_equal_pairs_is_kept(both):
    for side, key in (
        ("pair", lambda s, t: (s, t.strip())),
        ("src", lambda s, t: s),
        ("tgt", lambda s, t: t.strip()),
    ):
        seen = Digests()
        first = {key(*pair): i for i, pair in reversed(list(enumerate(both)))}
        kept = [i for i, pair in enumerate(both) if not criteria.repeated(text(*pair), seen, side)]
        assert kept == sorted(first.values())


@pytest.mark.parametrize(
    ("line", "score"),
    [
        ("-12.5", -12.5),
        ("0-0 1-2 ||| -1e2", -100),
        (" ||| 3", 3),
        ("a ||| b ||| +7. ", 7),
        ("-.5", -0.5),
        ("-inf", -math.inf),
    ],
)
def test_a_score_stands_alone_or_last(line, score):
    assert score_of(line, "x", 1) == score
    assert bool(criteria.alignment(text("a", "b", score), -50)) == (score < -50)


@pytest.mark.parametrize(
    "line", ["", "nan", "1 2", "١", "1_0", "0x1", ".", "-.e1", "||| ", "-1 ||| a", "--1"]
)
def test_what_is_no_score_is_refused_with_its_line(line):
    with pytest.raises(DataError, match="x:7: not a number"):
        score_of(line, "x", 7)
