import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.trees import is_acyclic, several_trees
from support.work import takes_linear_time

from synmt_cli.core.trees.heads import children, depths, is_projective, paths


def ancestors(heads, word):
    while word != -1:
        yield word
        word = heads[word]


@given(several_trees())
def test_depth_counts_the_arcs_above(heads):
    assert depths(heads) == [len(list(ancestors(heads, word))) - 1 for word in range(len(heads))]


@given(several_trees())
def test_a_path_is_the_labels_above_upside_down(heads):
    labels = [f"l{word}" for word in range(len(heads))]
    for word, path in enumerate(paths(heads, labels)):
        assert path == [labels[above] for above in ancestors(heads, word)][::-1]


@given(several_trees())
def test_projective_means_between_is_below(heads):
    expected = all(
        head in ancestors(heads, between)
        for word, head in enumerate(heads)
        if head != -1
        for between in range(min(word, head) + 1, max(word, head))
    )
    assert is_projective(heads) == expected


@given(several_trees())
def test_children_are_the_inverse_of_heads(heads):
    for head, dependents in enumerate(children(heads)):
        assert dependents == [word for word, h in enumerate(heads) if h == head]


@given(st.lists(st.integers(-1, 6), max_size=7))
def test_cycles_are_found(heads):
    heads = [min(head, len(heads) - 1) for head in heads]
    free = True
    for word in range(len(heads)):
        steps = 0
        while word != -1 and steps <= len(heads):
            word, steps = heads[word], steps + 1
        free = free and word == -1
    assert is_acyclic(heads) == free
    if not free:
        with pytest.raises(ValueError, match="cycle"):
            depths(heads)


def near(n):
    draw = random.Random(1)
    return [draw.randrange(max(0, i - 5), i) if i else -1 for i in range(n)]


GREAT = [near, lambda n: [*range(-1, n - 1)], lambda n: [*range(1, n), -1]]


@pytest.mark.parametrize("make", GREAT, ids=["near", "to the right", "to the left"])
@pytest.mark.parametrize("function", [depths, is_projective, children, is_acyclic])
def test_great_trees_take_linear_time_and_no_recursion(make, function):
    assert takes_linear_time(function, make, 100_000)
