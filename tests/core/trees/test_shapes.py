import math
import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare
from support.trees import every_tree, is_tree
from support.work import takes_linear_time

from synmt_cli.core.trees import shapes
from synmt_cli.core.trees.heads import ROOT, depths, is_projective

CHAINS = {"left": shapes.left_branching, "right": shapes.right_branching}


@pytest.mark.parametrize("make", CHAINS.values(), ids=CHAINS)
def test_a_chain_is_as_deep_as_it_is_long(make):
    assert sorted(depths(make(50))) == list(range(50))
    assert make(1) == [ROOT]


@given(st.integers(1, 300))
def test_a_balanced_tree_is_projective_and_no_deeper_than_it_must(n):
    heads = shapes.balanced(n)
    assert is_tree(heads)
    assert is_projective(heads)
    assert max(depths(heads)) == math.floor(math.log2(n))


@pytest.mark.parametrize("n", [2, 3, 4])
@pytest.mark.parametrize("projective", [False, True])
def test_random_trees_are_uniform(n, projective):
    trees = [tree for tree in every_tree(n) if not projective or is_projective(tree)]
    assert len(trees) == (math.comb(3 * n - 2, n - 1) // n if projective else n ** (n - 1))
    make = shapes.random_projective_tree if projective else shapes.random_tree
    draw = random.Random(1).random
    counts = Counter(tuple(make(n, draw)) for _ in range(150 * len(trees)))
    assert counts.keys() == set(trees)
    assert chisquare(list(counts.values())).pvalue > 0.001


@given(st.integers(1, 60), st.randoms(use_true_random=False))
def test_random_trees_are_trees(n, rng):
    assert is_tree(shapes.random_tree(n, rng.random))
    heads = shapes.random_projective_tree(n, rng.random)
    assert is_tree(heads)
    assert is_projective(heads)


@given(st.integers(1, 30), st.randoms(use_true_random=False))
def test_shuffled_words_keep_the_shape(n, rng):
    heads = shapes.random_tree(n, rng.random)
    places = shapes.permutation(n, rng.random)
    found = shapes.shuffled(heads, places)
    assert sorted(places) == list(range(n))
    assert [depths(found)[word] for word in range(n)] == [depths(heads)[at] for at in places]


def test_every_order_is_as_likely():
    draw = random.Random(2).random
    counts = Counter(tuple(shapes.permutation(4, draw)) for _ in range(4800))
    assert len(counts) == 24
    assert chisquare(list(counts.values())).pvalue > 0.001


@pytest.mark.parametrize("make", [shapes.random_tree, shapes.random_projective_tree])
def test_great_trees_take_linear_time(make):
    assert takes_linear_time(lambda n: make(n, random.Random(3).random), int, 200_000)
