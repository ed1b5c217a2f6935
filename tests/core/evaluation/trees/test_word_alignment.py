"""Alignment of words against its definition, and unchanged wherever the text is cut."""

import io
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synmt_cli.core.evaluation.trees.word_alignment import UNALIGNED, align, aligned_spans, words
from synmt_cli.errors import DataError
from synmt_cli.formats import conllu
from synmt_cli.io.reading import Source


def block(*tokens):
    """A sentence whose words all depend on the last: "ab" is a word, ("ab", "a", "b") two."""
    rows, n = [], sum(1 if isinstance(token, str) else len(token) - 1 for token in tokens)
    word = 0
    for token in tokens:
        if not isinstance(token, str):
            rows.append((f"{word + 1}-{word + len(token) - 1}", token[0], "_", "_"))
        for form in [token] if isinstance(token, str) else token[1:]:
            word += 1
            rows.append((word, form, n if word < n else 0, "dep" if word < n else "root"))
    lines = [f"{a}\t{form}\t_\tX\t_\t_\t{head}\t{label}\t_\t_\n" for a, form, head, label in rows]
    return "".join(lines) + "\n"


def read(text, name="f"):
    return conllu.read(Source(name, io.BytesIO(text.encode())))


def cut(gold, system):
    return list(aligned_spans(read(gold, "gold"), read(system, "system"), ("gold", "system")))


def aligned(gold, system):
    return align(words([*read(gold)]), words([*read(system)]))


@pytest.mark.parametrize(
    ("gold", "system", "expected"),
    [
        (["a", "b"], ["a", "b"], [0, 1]),
        (["ab", "c"], ["a", "bc"], [UNALIGNED, UNALIGNED]),
        (["ab", "c", "d"], ["a", "b", "c", "d"], [UNALIGNED, UNALIGNED, 1, 2]),
        ([("zum", "zu", "dem"), "x"], ["zum", "x"], [UNALIGNED, 2]),
        ([("zum", "zu", "dem"), "x"], [("zum", "Zu", "der"), "x"], [0, UNALIGNED, 2]),
        ([("dámelo", "da", "me", "lo")], ["dá", ("melo", "me", "lo")], [UNALIGNED, 1, 2]),
        ([("aa", "a", "a")], [("aa", "a")], [0]),
        (["x", ("bc", "b", "c")], ["x", "b", "c"], [0, 1, 2]),  # words inside the span
    ],
)
def test_words_are_found_in_gold(gold, system, expected):
    assert aligned(block(*gold), block(*system)) == expected


def test_words_before_a_multiword_token_stay_out_of_it():
    """The shared task's script aligns the first b with the one in the token."""
    gold = block("abb", ("x", "b", "x"))
    assert aligned(gold, block("a", "b", "b", "x")) == [UNALIGNED, UNALIGNED, UNALIGNED, 2]


def longest(a, b):
    if not a or not b:
        return 0
    if a[0] == b[0]:
        return 1 + longest(a[1:], b[1:])
    return max(longest(a[1:], b), longest(a, b[1:]))


def by_definition(gold, system):
    """(pairs of words with equal spans, number of further pairs in spans with multiword tokens)."""
    within = set()  # the characters of spans with multiword tokens
    groups = [
        set(range(*span))
        for side in (gold, system)
        for span, multiword in zip(side.spans, side.multiword, strict=True)
        if multiword
    ]
    merged = []
    for group in groups:
        for other in [one for one in merged if one & group]:
            merged.remove(other)
            group |= other
        merged.append(group)
    within = set().union(*merged)
    pairs = {
        (g, s)
        for g, a in enumerate(gold.spans)
        for s, b in enumerate(system.spans)
        if a == b and not set(range(*a)) & within
    }
    more = 0
    for group in merged:
        forms = [
            tuple(
                form.lower()
                for form, span in zip(side.forms, side.spans, strict=True)
                if set(range(*span)) <= group
            )
            for side in (gold, system)
        ]
        more += longest(*forms)
    return pairs, more


def split(text, rng):
    """The text as CoNLL-U, cut at random into sentences, tokens and words."""
    found, sentence, at = [], [], 0
    while at < len(text):
        size = rng.choice((1, 1, 2, 3))
        token = text[at : at + size]
        at += size
        if rng.random() < 0.3:
            token = (token, *(rng.choice("abAB") for _ in range(rng.randint(1, 3))))
        sentence.append(token)
        if rng.random() < 0.3 or at >= len(text):
            found.append(block(*sentence))
            sentence = []
    return "".join(found)


texts = st.text("aabB", min_size=1, max_size=12)


@given(texts, st.integers(0, 2**32))
def test_alignment_is_what_the_definition_says(text, seed):
    rng = random.Random(seed)
    gold, system = (words([*read(split(text, rng))]) for _ in range(2))
    found = {(g, s) for s, g in enumerate(align(gold, system)) if g != UNALIGNED}
    pairs, more = by_definition(gold, system)
    assert pairs <= found
    assert len(found) == len(pairs) + more
    assert all(gold.forms[g].lower() == system.forms[s].lower() for g, s in found - pairs)


@given(texts, st.integers(0, 2**32))
def test_cutting_changes_no_alignment(text, seed):
    rng = random.Random(seed)
    gold, system = split(text, rng), split(text, rng)
    whole = aligned(gold, system)
    n_gold, pieces = 0, []
    for part in cut(gold, system):
        sides = words(part.gold), words(part.system)
        pieces += [g if g == UNALIGNED else g + n_gold for g in align(*sides)]
        n_gold += len(sides[0].forms)
    assert pieces == whole


def test_parts_are_as_small_as_can_be():
    gold = block("a") + block("b", "c") + block("d") + block("e")
    system = block("a") + block("bc", "d") + block("e")
    sizes = [(len(part.gold), len(part.system)) for part in cut(gold, system)]
    assert sizes == [(1, 1), (2, 1), (1, 1)]


def test_white_space_is_no_text():
    gold, system = block("10\u00a0000", "x"), block("10", "000", "x")
    (part,) = cut(gold, system)
    assert align(words(part.gold), words(part.system)) == [UNALIGNED, UNALIGNED, 1]
    assert len(cut(block("\u00a0"), block("\u00a0"))) == 1


@pytest.mark.parametrize(
    ("gold", "system", "message"),
    [
        (block("a", "b"), block("a", "c"), "system:1: the text differs from gold:1: 'c', not 'b'"),
        (
            block("a", "b") + block("c", "d"),
            block("ab", "c") + block("e"),
            "system:4: the text differs from gold:4: 'e', not 'd'",
        ),
        (block("a") + block("b"), block("a"), "gold:3: the text goes on, but system ends before"),
        (block("a"), block("a", "b"), "system:1: the text goes on, but gold ends before"),
        (block("a"), block("a") + block("b"), "system:3: the text goes on, but gold ends"),
        ("", block("a"), "system:1: the text goes on, but gold ends before"),
    ],
)
def test_another_text_is_refused_where_it_parts(gold, system, message):
    with pytest.raises(DataError) as caught:
        cut(gold, system)
    assert str(caught.value).startswith(message)


def test_a_block_without_a_tree_has_text_and_no_word():
    status = "# text = a b\n# synmt_status = failed\n"
    (part,) = cut(block("a", "b"), status + block("_"))
    assert (words(part.system).forms, words(part.gold).forms) == ([], ["a", "b"])
    empty = "# synmt_status = empty\n" + block("_")
    assert len(cut(empty + block("a"), block("a") + empty)) == 1


def test_too_many_words_under_one_token_are_refused():
    sides = (words([*read(block(("x", *(letter for _ in range(2100)))))]) for letter in "ab")
    with pytest.raises(ValueError, match="2,100 and 2,100 words"):
        align(*sides)
