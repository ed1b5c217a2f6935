"""Attachment noise: trees in which a share of the words have another head.

Heads are 0-based, -1 marks the one root. `draw` gives numbers uniform in [0, 1).

`other_heads` first chooses a set S of words and then draws uniformly among all trees with
one root in which the words of S, and no others, have another head. There is no such tree for
two kinds of S: the root alone (some word must be the root), and all dependents of the root
without the root (the topmost of them could only depend on the root). There is one for every
other set. So the words cannot be quite independent if each is to be in S with the same chance
p. With n words, m of them dependents of the root:

    words below the root are in S with chance q, the root with chance r
    if that gives the root alone, one more word is added, all equally likely
    if that gives all dependents of the root and no others, the root is added
    q + r (1 - q)^(n-1) / (n-1) = p,    r + (1 - r) q^m (1 - q)^(n-1-m) = p

For long sentences q = r = p but for rounding. In a sentence of two words both change, or neither.
"""

from bisect import bisect_left, insort
from collections.abc import Callable, Sequence
from functools import lru_cache

from synmt_cli.core.trees.heads import ROOT, children, from_roots
from synmt_cli.core.trees.shapes import Draw, join, permutation

_HALVINGS = 60  # of an interval: as exact as doubles are


def other_heads(heads: Sequence[int], share: float, draw: Draw) -> list[int]:
    """A tree in which each word has another head with chance `share`.

    A tree of one word stays as it is. Takes n log n steps, times a factor that is e on average
    for trees like those of sentences.
    """
    if len(heads) < 2:
        return list(heads)
    chosen = _chosen(heads, share, draw)
    return reattached(heads, chosen, draw) if chosen else list(heads)


def reattached(heads: Sequence[int], chosen: set[int], draw: Draw) -> list[int]:
    """A tree in which only the words of `chosen` have another head, all such trees equally likely.

    There must be one: the module's docstring says for which sets there is none.
    """
    root = heads.index(ROOT)
    tops = [ROOT] * len(heads)  # of the trees that remain when `chosen` lose their heads
    for word in from_roots(heads):
        tops[word] = word if word in chosen or word == root else tops[heads[word]]
    # The words at which the top tree may get its last dependent. They are in the old root's tree if
    # that is to stay on top, else in the other trees: the word drawn says which of these is on top,
    # so that the chance of a tree is proportional to its number of words.
    stays = root not in chosen
    anchors = [word for word, top in enumerate(tops) if (top == root) == stays]
    while True:  # rarely more than a few times: a word gets its old head with chance 1 / n
        other = list(heads)
        anchor = anchors[int(draw() * len(anchors))]
        top = tops[anchor]
        other[top] = ROOT
        join(other, tops, sorted(chosen - {top}), anchor, draw)
        if all(other[word] != heads[word] for word in chosen):
            return other


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
    """A zero of a continuous function that is at most 0 at 0 and at least 0 at `high`."""
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

    The words move one after another, in random order, each with everything below it, to a head
    drawn uniformly from those that keep the tree projective, its old one left out. A word that
    has no such head when its turn comes stays, and so does the root: fewer than `share` of the
    words change. heads: projective. Each move takes as many steps as the tree is deep.
    """
    other = list(heads)
    dependents = children(heads)
    chosen = [word for word, head in enumerate(heads) if head != ROOT and draw() < share]
    for i in permutation(len(chosen), draw):
        word = chosen[i]
        candidates = projective_heads(other, dependents, word)
        candidates = [head for head in candidates if head != heads[word]]
        if candidates:
            move(other, dependents, word, candidates[int(draw() * len(candidates))])
    return other


def move(heads: list[int], dependents: Sequence[list[int]], word: int, head: int) -> None:
    """Gives a word another head, which becomes the root if the word was it. dependents: of each."""
    if heads[word] == ROOT:
        _remove(dependents[heads[head]], head)
        heads[head] = ROOT
    else:
        _remove(dependents[heads[word]], word)
    heads[word] = head
    insort(dependents[head], word)


def _remove(dependents: list[int], word: int) -> None:
    del dependents[bisect_left(dependents, word)]


def projective_heads(heads: Sequence[int], dependents: Sequence[list[int]], word: int) -> list[int]:
    """Every head of `word` that keeps a projective tree projective, the present one included.

    These are the neighbours of the span of everything below `word`, and the words above them,
    as long as no arc from one side to the other passes over them.
    """
    first = last = word
    while dependents[first] and dependents[first][0] < first:
        first = dependents[first][0]
    while dependents[last] and dependents[last][-1] > last:
        last = dependents[last][-1]
    left, over_left = _climb(heads, first - 1, range(first))
    after = last + 1 if last + 1 < len(heads) else ROOT
    right, over_right = _climb(heads, after, range(last + 1, len(heads)))
    left = [head for head in left if head >= over_right]
    return left + [head for head in right if over_left == ROOT or head <= over_left]


def _climb(heads: Sequence[int], word: int, side: range) -> tuple[list[int], int]:
    """(a word and the words above it as far as they are on one side, the first that is not)."""
    path = []
    while word in side:
        path.append(word)
        word = heads[word]
    return path, word
