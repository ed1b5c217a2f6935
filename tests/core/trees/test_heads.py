import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.trees import is_acyclic, several_trees

from synmt_cli.core.trees.heads import children, depths, is_projective, paths

GREAT = [random.Random(1).randrange(max(0, i - 5), i) if i else -1 for i in range(100_000)]


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


@pytest.mark.parametrize("heads", [GREAT, [*range(-1, 99_999)], [*range(1, 100_000), -1]])
def test_great_trees_take_linear_time_and_no_recursion(heads):
    start = time.process_time()
    depths(heads), is_projective(heads), children(heads), is_acyclic(heads)
    assert time.process_time() - start < 5
