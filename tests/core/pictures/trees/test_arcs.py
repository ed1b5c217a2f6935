"""The layout of arcs over words."""

from __future__ import annotations

import random
from itertools import combinations

import pytest

from synmt_cli.core.pictures.sentences import ROOT, Arc, Column
from synmt_cli.core.pictures.trees.arcs import lines
from synmt_cli.core.trees.drawing import TooLarge


def tree(n, seed, projective):
    """A random tree over n words, as arcs."""
    draw = random.Random(seed)
    if not projective:
        order = draw.sample(range(n), n)
        heads = {order[0]: ROOT}
        for i in range(1, n):
            heads[order[i]] = draw.choice(order[:i])
    else:
        heads = {}

        def fill(low, high, head):
            if low < high:
                middle = draw.randrange(low, high)
                heads[middle] = head
                fill(low, middle, middle)
                fill(middle + 1, high, middle)

        fill(0, n, ROOT)
    return [Arc(heads[i], i, draw.choice(["nsubj", "det", "nmod:poss"])) for i in range(n)]


def columns(n, seed=0):
    draw = random.Random(seed)
    return [Column("w" * draw.randint(1, 12), "NOUN") for _ in range(n)]


def strokes(part):
    """The straight lines of a piece: (x1, x2, low, high); the words are at level 0."""
    if part.left_end != "root":
        yield part.left, part.right, part.level, part.level
    for x, end in ((part.left, part.left_end), (part.right, part.right_end)):
        if end in ("head", "dependent"):
            yield x, x, 0, part.level


def crossings(parts):
    for one, other in combinations(parts, 2):
        for a in strokes(one):
            for b in strokes(other):
                apart = a[1] < b[0] or b[1] < a[0] or a[3] < b[2] or b[3] < a[2]
                if not apart and one is not other:
                    yield one.of, other.of


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("width", [300, 100_000])
def test_lines_of_a_projective_tree_never_touch(seed, width):
    n = 4 + 3 * seed
    for line in lines(columns(n, seed), [tree(n, seed, projective=True)], width):
        assert [*crossings(line.parts[0])] == []


@pytest.mark.parametrize("seed", range(8))
def test_no_two_arcs_lie_on_one_another_in_any_tree(seed):
    (line,) = lines(columns(25, seed), [tree(25, seed, projective=False)], 1e6)
    for one, other in combinations(line.parts[0], 2):
        if one.level == other.level and "root" not in (one.left_end, other.left_end):
            assert one.right < other.left or other.right < one.left


@pytest.mark.parametrize("width", [200, 500, 1e6])
def test_every_word_stands_in_one_line_and_every_arc_at_both_ends(width):
    arcs = tree(40, 1, projective=False)
    made = lines(columns(40), [arcs], width)
    assert [c for line in made for c in range(line.first, line.last)] == [*range(40)]
    ends = [
        (part.of, end)
        for line in made
        for part in line.parts[0]
        for end in (part.left_end, part.right_end)
        if end in ("head", "dependent")
    ]
    expected = [(arc, "dependent") for arc in arcs]
    expected += [(arc, "head") for arc in arcs if arc.head != ROOT]
    assert sorted(ends) == sorted(expected)
    assert all(line.width <= max(width, 300) for line in made)
    for line in made:  # words stand apart
        assert all(a < b for a, b in zip(line.middles, line.middles[1:], strict=False))


def test_labels_of_neighbours_have_room():
    arcs = [Arc(ROOT, 0, "root"), Arc(0, 1, "nmod:tmod:longish")]
    (line,) = lines([Column("a", ""), Column("b", "")], [arcs], 720)
    part = next(part for part in line.parts[0] if part.of.head != ROOT)
    assert part.right - part.left > 17 * 5


def test_a_sentence_beyond_all_sizes_is_refused():
    with pytest.raises(TooLarge, match="10,001 words, and 10,000 are the most"):
        lines([Column("a", "X")] * 10_001, [[]], 720)
