"""Trees as tests try them: all over n words, and the one that a sequence of moves builds."""

from __future__ import annotations

import itertools

from hypothesis import strategies as st

from synmt_cli.core.trees.arc_standard import ARCS, NEVER, Attachments, Configuration, Move
from synmt_cli.core.trees.heads import ROOT
from synmt_cli.formats.arcs import all_reach_root


def is_acyclic(heads):
    """Whether every word reaches a root."""
    return all_reach_root([*heads, ROOT], ROOT)


def is_tree(heads):
    """Whether heads are one tree."""
    return heads.count(ROOT) == 1 and is_acyclic(heads)


def every_tree(n):
    """Yields the heads of all single-rooted trees over n words, by trying all heads."""
    return filter(is_tree, itertools.product(range(ROOT, n), repeat=n))


@st.composite
def several_trees(draw, largest=9):
    """Heads of one to three trees, one after the other."""
    heads = []
    for _ in range(draw(st.integers(1, 3))):
        start, n = len(heads), draw(st.integers(1, largest // 3))
        order = draw(st.permutations(range(start, start + n)))
        own = {order[0]: -1}
        for k, word in enumerate(order[1:], 1):
            own[word] = draw(st.sampled_from(order[:k]))
        heads += [own[word] for word in range(start, start + n)]
    return heads


def legal(configuration):
    """The moves that are allowed in a configuration."""
    return [move for move in Move if configuration.allows(move)]


def replay(moves):
    """The heads that moves over whole words build: the inverse of `oracle`.

    Raises ValueError if they do not build one tree.
    """
    heads, stack = [], []
    for number, move in enumerate(moves):
        if move == Move.BEGIN:
            stack.append(len(heads))
            heads.append(ROOT)
        elif move not in ARCS:
            raise ValueError(f"move {number} is {move!r}, neither a word nor an arc")
        elif len(stack) < 2:
            raise ValueError(f"arc {number} finds fewer than two words")
        else:
            top, below = stack.pop(), stack.pop()
            head, dependent = (top, below) if move == Move.LEFT else (below, top)
            heads[dependent] = head
            stack.append(head)
    if len(stack) > 1:
        raise ValueError(f"{len(stack)} words are left without a head")
    return heads


def path_of(paths, row):
    """The label ids of a row, read back from the tree of prefixes."""
    found = []
    while row:
        assert paths.shorter[row] < row  # or this would never end
        found.append(paths.labels[row].item())
        row = paths.shorter[row].item()
    return found[::-1]


def lenient_attachments(moves, split=False):
    """The edges of `attachments`, but illegal moves draw nothing, as in the published code."""
    n = len(moves)
    edges = Attachments([NEVER] * n, [0] * n, [0] * n)
    configuration = Configuration(split=split)
    for x, move in enumerate(moves):
        configuration = configuration.open_to(move)
        if arc := configuration.arc(move):
            head, dependent = arc
            for token in (*range(dependent.begin, dependent.end), x):
                edges.at[token], edges.begin[token], edges.end[token] = x, head.begin, head.end
        configuration = configuration.after_any(move)
    return edges
