"""Drawings of trees say the tree, the whole tree, and nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synmt_cli.core.trees import drawing
from synmt_cli.core.trees.drawing import ASCII, COLUMN, UNICODE, TooLarge, branches
from synmt_cli.core.trees.heads import ROOT, depths, is_projective


@st.composite
def forests(draw, most=12):
    """Heads of any trees, with one root or several, most of them not projective."""
    n = draw(st.integers(1, most))
    order = draw(st.permutations(range(n)))
    heads = [ROOT] * n
    for k, word in enumerate(order[1:], 1):
        heads[word] = draw(st.sampled_from([*order[:k], ROOT] if k < 3 else order[:k]))
    return heads


def read(rows, marks):
    """The heads that a drawing shows, followed with a finger."""
    up = {marks.middle, marks.last, marks.own_up, marks.own_both, marks.down}
    down = {marks.first, marks.middle, marks.own_down, marks.own_both, marks.down}
    own = {marks.own_up, marks.own_both, marks.own_down}

    def follow(row, column, step, ways):
        while rows[row][column] in ways:
            row += step
            if rows[row][column] in own:
                return row
        return None

    heads = []
    for row, line in enumerate(rows):
        if line[0] == marks.across:
            heads.append(ROOT)
            continue
        attached = {marks.first, marks.middle, marks.last}
        (column,) = (c for c, mark in enumerate(line) if mark in attached)
        found = {follow(row, column, -1, up), follow(row, column, 1, down)} - {None}
        assert len(found) == 1, (rows, row)
        assert set(line[column + 1 :]) <= {marks.across, marks.down, *own}
        heads += found
    return heads


@given(forests())
def test_the_heads_can_be_read_back(heads):
    for marks in (UNICODE, ASCII):
        rows = list(branches(heads, marks))
        assert read(rows, marks) == heads
        assert len({len(row) for row in rows}) == 1


@given(forests())
def test_a_projective_tree_is_as_wide_as_deep_and_has_no_crossing(heads):
    rows = list(branches(heads))
    if is_projective(heads):
        inner = [depth for word, depth in enumerate(depths(heads)) if word in heads]
        assert len(rows[0]) == 1 + COLUMN * (1 + max(inner, default=-1))
        assert not any("─│" in row for row in rows)


def test_lines_that_cross_join_nothing():
    assert list(branches([1, -1, 3, 1, 2])) == [
        " ╭─────",
        "─┼─────",
        " │ ╭─┬─",
        " ╰─┴─│─",
        "     ╰─",
    ]


def test_great_trees_are_refused_at_once_and_deep_ones_drawn():
    assert len(list(branches([ROOT, *range(1499)]))) == 1500
    for heads in ([ROOT, *range(70_000)], [*range(1, 70_000), ROOT]):
        with pytest.raises(TooLarge):
            list(branches(heads))
    assert len(list(branches([ROOT] + [0] * 100_000))) == 100_001


def test_the_limit_is_of_cells(monkeypatch):
    monkeypatch.setattr(drawing, "CELL_LIMIT", 6)
    assert len(list(branches([1, 2, -1]))) == 3
    monkeypatch.setattr(drawing, "CELL_LIMIT", 5)
    with pytest.raises(TooLarge, match="3 words, more than 1 columns"):
        list(branches([1, 2, -1]))
