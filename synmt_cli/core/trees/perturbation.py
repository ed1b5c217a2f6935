"""Attachment noise: trees in which a share of the words have another head.

Heads are 0-based, -1 marks the one root. `draw` gives numbers uniform in [0, 1).

`other_heads` first chooses a set S of words and then draws uniformly among all trees with
one root in which the words of S, and no others, have another head. Two kinds of S have no
such tree: the root alone (some word must be the root), and all dependents of the root
without the root (the topmost of the words of S can only depend on the root). Every other set
has one. So that each word is still in S with the same chance p, the words are not quite
independent. With n words, m of them dependents of the root:

    words below the root, each with chance q; the root with chance r
    if that is the root alone, one word more, each as likely
    if that is all dependents of the root and no others, the root too
    q + r (1 - q)^(n-1) / (n-1) = p,    r + (1 - r) q^m (1 - q)^(n-1-m) = p

For long sentences q = r = p but for rounding. In a sentence of two words both change or none.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Sequence
from functools import lru_cache

from synmt_cli.core.trees.heads import ROOT, children, from_roots
from synmt_cli.core.trees.shapes import Draw, join, permutation

_HALVINGS = 60  # of an interval of doubles: as exact as they are


def other_heads(heads: Sequence[int], share: float, draw: Draw) -> list[int]:
    """A tree in which each word has another head with chance `share`; two words or more.

    A tree of one word has no other. n log n steps, but for a factor that is e on average
    for trees as sentences have them.
    """
    if len(heads) < 2:
        return list(heads)
    chosen = _chosen(heads, share, draw)
    return reattached(heads, chosen, draw) if chosen else list(heads)


def reattached(heads: Sequence[int], chosen: set[int], draw: Draw) -> list[int]:
    """A tree in which just the words of `chosen` have another head, each such tree as likely.

    There must be one: see above which sets have none.
    """
    root = heads.index(ROOT)
    tops = [ROOT] * len(heads)  # of the trees that are left when `chosen` lose their heads
    for word in from_roots(heads):
        tops[word] = word if word in chosen or word == root else tops[heads[word]]
    # Where the top of the new tree may get its last dependent: in the old root's tree if that
    # is to stay on top, else in any other. The word drawn says which, by the number of words
    # in it, and where in it.
    stays = root not in chosen
    anchors = [word for word, top in enumerate(tops) if (top == root) == stays]
    while True:  # rarely more than a few times: a word meets its old head with chance 1 / n
        found = list(heads)
        anchor = anchors[int(draw() * len(anchors))]
        top = tops[anchor]
        found[top] = ROOT
        join(found, tops, sorted(chosen - {top}), anchor, draw)
        if all(found[word] != heads[word] for word in chosen):
            return found


def _chosen(heads: Sequence[int], share: float, draw: Draw) -> set[int]:
    """S of the module's docstring."""
    root = heads.index(ROOT)
    below = [word for word in range(len(heads)) if word != root]
    of_root = {word for word in below if heads[word] == root}
    q, r = _chances(len(heads), len(of_root), share)
    chosen = {word for word in below if draw() < q}
    if draw() < r:
        if not chosen:
            chosen.add(below[int(draw() * len(below))])
        chosen.add(root)
    elif chosen == of_root:
        chosen.add(root)
    return chosen


@lru_cache(maxsize=2**14)
def _chances(n: int, m: int, p: float) -> tuple[float, float]:
    """q and r of the module's docstring."""
    if p in (0.0, 1.0):
        return p, p

    def q(r: float) -> float:
        return _zero(lambda q: q + r * (1 - q) ** (n - 1) / (n - 1) - p, p)

    def excess(r: float) -> float:
        below = q(r)
        return r + (1 - r) * below**m * (1 - below) ** (n - 1 - m) - p

    root = _zero(excess, p)
    return q(root), root


def _zero(function: Callable[[float], float], high: float) -> float:
    """Where a continuous function, at most 0 at 0 and at least 0 at `high`, is 0."""
    low = 0.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if function(middle) < 0:
            low = middle
        else:
            high = middle
    return high


def other_projective_heads(heads: Sequence[int], share: float, draw: Draw) -> list[int]:
    """A projective tree in which each word below the root moves with chance `share`.

    The words move one after the other, in random order, each with all that is below it, to a
    head drawn uniformly from those that keep the tree projective, without its old one. A word
    that has no such head when its turn comes stays, as does the root: fewer than `share` of
    the words change. heads: projective. Steps: as many as the trees are deep, for each move.
    """
    found = list(heads)
    below = children(heads)
    chosen = [word for word, head in enumerate(heads) if head != ROOT and draw() < share]
    for i in permutation(len(chosen), draw):
        word = chosen[i]
        choice = [head for head in _projective_heads(found, below, word) if head != heads[word]]
        if choice:
            siblings = below[found[word]]
            del siblings[bisect_left(siblings, word)]
            found[word] = choice[int(draw() * len(choice))]
            insort(below[found[word]], word)
    return found


def _projective_heads(heads: Sequence[int], below: Sequence[list[int]], word: int) -> list[int]:
    """Every head under which a projective tree stays projective, the present one included.

    These are the two words beside all that is below `word`, and what is above them, as far as
    no arc between the two sides spans over it.
    """
    first = last = word
    while below[first] and below[first][0] < first:
        first = below[first][0]
    while below[last] and below[last][-1] > last:
        last = below[last][-1]
    left, over_left = _climb(heads, first - 1, range(first))
    beside = last + 1 if last + 1 < len(heads) else ROOT
    right, over_right = _climb(heads, beside, range(last + 1, len(heads)))
    left = [head for head in left if head >= over_right]
    return left + [head for head in right if over_left == ROOT or head <= over_left]


def _climb(heads: Sequence[int], word: int, side: range) -> tuple[list[int], int]:
    """A word and what is above it, as far as it is on one side; and what comes next."""
    found = []
    while word in side:
        found.append(word)
        word = heads[word]
    return found, word
