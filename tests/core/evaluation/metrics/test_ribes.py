"""RIBES against its definition, written out slowly, and against figures worked by hand."""

import math
from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.work import takes_linear_time

from synmt_cli.core.evaluation.metrics.ribes import (
    _long_alignment,
    alignment,
    normalized_tau,
    ribes,
)

WORDS = st.lists(st.sampled_from("abcde"), max_size=12)


def occurrences(ngram, words):
    return [j for j in range(len(words)) if words[j : j + len(ngram)] == ngram]


def naive_alignment(reference, hypothesis):
    """The alignment of Isozaki et al. (2010), section 3.1, and RIBES.py 1.03, window by window."""
    positions = []
    for i, word in enumerate(hypothesis):
        if len(occurrences([word], reference)) == len(occurrences([word], hypothesis)) == 1:
            positions.append(reference.index(word))
            continue
        for window in range(1, len(hypothesis)):
            spans = [(i - window, i + 1, window), (i, i + window + 1, 0)]
            found = [
                occurrences(hypothesis[b:e], reference)[0] + offset
                for b, e, offset in spans
                if b >= 0
                and e <= len(hypothesis)
                and len(occurrences(hypothesis[b:e], reference)) == 1
                and len(occurrences(hypothesis[b:e], hypothesis)) == 1
            ]
            if found:
                positions.append(found[0])
                break
    return positions


def naive_ribes(reference, hypothesis):
    ranks = naive_alignment(reference, hypothesis)
    if not hypothesis or not reference or not ranks:
        return 0.0
    if len(ranks) == 1:
        tau = float(len(reference) == 1)
    else:
        pairs = list(combinations(ranks, 2))
        tau = sum(a < b for a, b in pairs) / len(pairs)
    penalty = min(1, math.exp(1 - len(reference) / len(hypothesis)))
    return tau * (len(ranks) / len(hypothesis)) ** 0.25 * penalty**0.10


@given(WORDS, WORDS)
def test_long_sentences_are_aligned_by_the_same_definition(reference, hypothesis):
    assert _long_alignment(reference, hypothesis) == naive_alignment(reference, hypothesis)


@pytest.mark.parametrize("words", [["a"], ["a", "b"], ["a", "b", "a", "c"]], ids=len)
def test_a_word_that_is_repeated_33000_times_takes_no_quadratic_time(words):
    def check(reference):
        assert ribes(reference, reference) > 0
        assert ribes(reference, reference[1:]) < 1

    assert takes_linear_time(check, lambda n: words * (n // len(words)), 33_000)


@given(WORDS, WORDS)
def test_equals_its_definition(reference, hypothesis):
    assert alignment(reference, hypothesis) == naive_alignment(reference, hypothesis)
    assert ribes(reference, hypothesis) == pytest.approx(naive_ribes(reference, hypothesis))


@given(WORDS)
def test_a_sentence_without_repeats_is_like_itself(words):
    unique = list(dict.fromkeys(words))
    assert ribes(unique, unique) == float(bool(unique))


@pytest.mark.parametrize(
    ("reference", "hypothesis", "expected"),
    [
        # 4 of 5 words aligned at 0 1 2 4: all 6 pairs ascend; no brevity penalty.
        ("a b c x d", "a b c y d", (4 / 5) ** 0.25),
        # 0 2 1: 2 of 3 pairs; 3 of 3 words; penalty e^(1 - 4/3).
        ("a b c d", "a c b", 2 / 3 * math.exp(-1 / 3) ** 0.10),
        # The first `the` is aligned by `the dog`, the second by `saw the`: 3 4 2 3 1, so 3 4 and
        # 2 3 ascend, 2 of 10 pairs.
        ("the cat saw the dog", "the dog saw the cat", 0.2),
        ("a", "a", 1.0),
        ("a", "a b", (1 / 2) ** 0.25),  # one aligned word is all of the reference
        ("a b", "a c", 0.0),  # one aligned word says nothing of order
        ("a b", "", 0.0),
        ("", "a b", 0.0),
    ],
)
def test_hand_worked(reference, hypothesis, expected):
    assert ribes(reference.split(), hypothesis.split()) == pytest.approx(expected)


def test_repeated_words_are_told_apart_by_growing_contexts():
    # The first `a` is unique with its right neighbour, the second with its left one.
    assert alignment(["a", "a"], ["a", "a"]) == [0, 1]
    # The middle one of three has the same word on both sides, and no room for a window of two.
    assert alignment(["a", "a", "a"], ["a", "a", "a"]) == [0, 2]
    # `x a` is not in the reference, but `a x` is: it aligns the one `a` and the last `x`.
    assert alignment(list("axba"), list("bxax")) == [2, 0, 1]


def test_tau_counts_equal_ranks_as_not_ascending():
    assert normalized_tau([1, 1]) == 0
    assert normalized_tau([2, 1, 3]) == pytest.approx(2 / 3)


def test_a_looping_output_takes_no_cubic_time():
    assert takes_linear_time(lambda words: ribes(words, words), lambda n: ["the"] * n, 3000)


@pytest.mark.long
def test_more_words_than_a_bmp_character_can_code():
    words = [str(n) for n in range(60_000)]
    assert ribes(words, words) == 1.0
    assert all(a < b for a, b in pairwise(alignment(words, words)))
