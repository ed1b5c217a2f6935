import itertools
import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest, chisquare
from support.trees import every_tree, is_acyclic
from support.work import takes_linear_time

from synmt_cli.core.trees import shapes
from synmt_cli.core.trees.heads import ROOT, children, is_projective
from synmt_cli.core.trees.perturbation import (
    other_heads,
    other_projective_heads,
    projective_heads,
    reattached,
)

TREES = {
    "chain": [ROOT, 0, 1, 2],
    "star": [1, ROOT, 1, 1],
    "crossing": [2, 3, ROOT, 2],
    "two": [1, ROOT],
    "deep": [1, 4, 1, 2, ROOT],
}
each_tree = pytest.mark.parametrize("heads", TREES.values(), ids=TREES)


def changed(heads, other):
    return {word for word, pair in enumerate(zip(heads, other, strict=True)) if pair[0] != pair[1]}


@each_tree
def test_trees_with_just_these_words_changed_are_uniform(heads):
    """This holds for every set of words; only the two kinds of sets in `without` have no tree."""
    draw = random.Random(1).random
    by_set = {}
    for tree in every_tree(len(heads)):
        by_set.setdefault(frozenset(changed(heads, tree)), []).append(tree)
    root = heads.index(ROOT)
    without = [{root}, {word for word, head in enumerate(heads) if head == root}]
    n_tests = 2 ** len(heads)
    for k in range(1, len(heads) + 1):
        for chosen in map(frozenset, itertools.combinations(range(len(heads)), k)):
            trees = by_set.get(chosen, [])
            assert (chosen in without) == (not trees)
            counts = Counter(
                tuple(reattached(heads, set(chosen), draw)) for _ in range(40 * len(trees))
            )
            assert counts.keys() <= set(trees)
            if len(trees) > 1:
                assert chisquare([counts[tree] for tree in trees]).pvalue > 0.01 / n_tests


@each_tree
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_each_word_changes_with_exactly_that_chance(heads, share):
    """This holds for the root too, and in the shortest sentences."""
    draw = random.Random(2).random
    n = 4000
    counts = Counter()
    for _ in range(n):
        counts.update(changed(heads, other_heads(heads, share, draw)))
    for word in range(len(heads)):
        assert binomtest(counts[word], n, share).pvalue > 0.0001


@given(st.integers(1, 40), st.floats(0, 1), st.randoms(use_true_random=False))
def test_noise_keeps_a_tree(n, share, rng):
    heads = shapes.random_tree(n, rng.random)
    found = other_heads(heads, share, rng.random)
    assert found.count(ROOT) == 1
    assert is_acyclic(found)
    if share == 0 or n == 1:
        assert found == heads
    if share == 1 and n > 1:
        assert changed(heads, found) == set(range(n))


@given(st.integers(1, 40), st.floats(0, 1), st.randoms(use_true_random=False))
def test_projective_noise_keeps_a_projective_tree_and_its_root(n, share, rng):
    heads = shapes.random_projective_tree(n, rng.random)
    found = other_projective_heads(heads, share, rng.random)
    assert is_acyclic(found)
    assert is_projective(found)
    assert found.index(ROOT) == heads.index(ROOT)


@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_projective_heads_are_those_that_keep_the_tree_projective(n):
    for heads in filter(is_projective, every_tree(n)):
        for word in range(n):
            if heads[word] == ROOT:
                continue
            tries = ([*heads[:word], head, *heads[word + 1 :]] for head in range(n))
            expected = {t[word] for t in tries if is_acyclic(t) and is_projective(t)}
            found = projective_heads(heads, children(heads), word)
            assert sorted(found) == sorted(expected)


def test_one_projective_move_is_uniform():
    draw = random.Random(4).random
    # The share is so small that words rarely move together, which would change their choices.
    moves = (other_projective_heads(TREES["chain"], 0.02, draw) for _ in range(40_000))
    last = [found[3] for found in moves if changed(TREES["chain"], found) == {3}]
    counts = Counter(last)
    assert counts.keys() == {0, 1}
    assert chisquare(list(counts.values())).pvalue > 0.001


GREAT = {
    "chain": shapes.right_branching,
    "other chain": shapes.left_branching,
    "star": lambda n: [ROOT] + [0] * (n - 1),
    "balanced": shapes.balanced,
}


@pytest.mark.parametrize("make", GREAT.values(), ids=GREAT)
@pytest.mark.parametrize("noise", [other_heads, other_projective_heads])
def test_great_trees_take_linear_time_and_no_recursion(make, noise):
    found = {}

    def work(heads):
        found[len(heads)] = noise(heads, 0.2, random.Random(5).random)

    n = 100_000
    assert takes_linear_time(work, make, n)
    assert len(changed(make(n), found[n])) / n == pytest.approx(0.2, abs=0.01)
