"""Noise like a parser's own errors: what a parser confuses, learned from gold and predicted trees.

Errors are learned by the gold label of a word. A word gets another head with the chance that the
parser gives it one; the head is then drawn from all words that can be it, each with a weight

    (c + b) / (n + 1)

where n says how often a word of its kind could have been a wrong head of this label, c how often
it was one, and b the same weight over all labels. A kind is what the candidate is and where it
stands: its UPOS, its direction and distance in classes of DISTANCES, and whether it is the head of
the right head, another dependent of it, below the word, or none of these. Another label is drawn
from those that the parser gave to words of this label, separately for right and for wrong heads.

A root error exchanges two heads: the old root depends on the new one. So only the old root draws
it, and a word that the parser made the root does not count among the errors of its label.

The kinds of all words are counted as arrays: a sentence of n words takes n * m numbers for m words
with another head, which a Python loop would take seconds for where n is in the thousands.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from synmt_cli.core.trees.heads import ROOT, children, from_roots, is_projective
from synmt_cli.core.trees.perturbation import move, projective_heads
from synmt_cli.core.trees.relations import ROOT_LABEL, UNSPECIFIED, universal
from synmt_cli.core.trees.shapes import Draw, permutation

DISTANCES = (1, 2, 3, 4, 6, 9, 14)  # first distance of each class
LEAST = 0.01  # b of a kind that was never seen
ALL = ""
_NOTHING: Counter[str] = Counter()
Kind = tuple[str, int, str]  # UPOS, signed class of the distance, place in the tree
PLACES = ("", "below", "over", "beside")
_SIZES = 2 * len(DISTANCES) + 1  # signed classes of distances
Indices = npt.NDArray[np.int64]


class Tree:
    """A sentence. heads: from 0. labels, upos: of each word."""

    def __init__(self, heads: Sequence[int], labels: Sequence[str], upos: Sequence[str]) -> None:
        self.heads, self.labels, self.upos = heads, labels, upos
        first, end = _numbered(heads)
        self._first, self._end = np.array(first, np.int64), np.array(end, np.int64)
        self._heads = np.array(heads, np.int64)
        self._tags = sorted(set(upos))
        number = {tag: i for i, tag in enumerate(self._tags)}
        self._tag = np.array([number[tag] for tag in upos], np.int64)

    def codes(self, word: int) -> Indices:
        """The code of each word as a wrong head of `word`, (n,): `kind` says what it stands for."""
        distance = np.arange(len(self.heads)) - word
        size = np.searchsorted(DISTANCES, np.abs(distance), side="right")
        signed = np.where(distance > 0, size, -size) + len(DISTANCES)
        place = np.zeros(len(self.heads), np.int64)
        first = self._first
        place[(first >= first[word]) & (first < self._end[word])] = PLACES.index("below")
        right = self.heads[word]
        if right != ROOT:
            place[self._heads == right] = PLACES.index("beside")
            if self.heads[right] != ROOT:
                place[self.heads[right]] = PLACES.index("over")
        codes: Indices = (self._tag * _SIZES + signed) * len(PLACES) + place
        return codes

    def kind(self, code: int) -> Kind:
        """The kind of a code."""
        rest, place = divmod(code, len(PLACES))
        tag, size = divmod(rest, _SIZES)
        return self._tags[tag], size - len(DISTANCES), PLACES[place]


@dataclass(slots=True)
class Confusions:
    """The confusions of a parser, as counts; `learn` adds those of a sentence.

    words: of each gold label. wrong: of these, those with a wrong head, the new root left out.
    chosen, possible: wrong heads, and words that could have been wrong heads, by label (ALL for
    all) and kind. labels: predicted labels by gold label and whether the head is right.
    """

    words: Counter[str] = field(default_factory=Counter)
    wrong: Counter[str] = field(default_factory=Counter)
    chosen: dict[str, Counter[Kind]] = field(default_factory=dict)
    possible: dict[str, Counter[Kind]] = field(default_factory=dict)
    labels: dict[tuple[str, bool], Counter[str]] = field(default_factory=dict)
    wrong_heads: int = 0
    wrong_labels: int = 0

    def learn(self, gold: Tree, heads: Sequence[int], labels: Sequence[str]) -> None:
        """Counts the errors of predicted heads, from 0, and labels."""
        for word, (right, head) in enumerate(zip(gold.heads, heads, strict=True)):
            label = gold.labels[word]
            self.words[label] += 1
            self.wrong_heads += head != right
            self.wrong_labels += labels[word] != label
            if head == ROOT != right:
                continue  # the old root's error
            self.labels.setdefault((label, head == right), Counter())[labels[word]] += 1
            if head != right:
                self.wrong[label] += 1
                self._learn_head(gold, word, head)

    def _learn_head(self, gold: Tree, word: int, head: int) -> None:
        codes = gold.codes(word)
        others = np.ones(len(codes), bool)
        others[[one for one in (word, gold.heads[word]) if one != ROOT]] = False
        counts = np.bincount(codes[others])
        kinds = {gold.kind(code): int(counts[code]) for code in np.flatnonzero(counts).tolist()}
        for name in (gold.labels[word], ALL):
            self.possible.setdefault(name, Counter()).update(kinds)
            self.chosen.setdefault(name, Counter())[gold.kind(int(codes[head]))] += 1

    @property
    def head_share(self) -> float:
        """The share of words with a wrong head."""
        return self.wrong_heads / max(1, self.words.total())

    @property
    def label_share(self) -> float:
        """The share of words with a wrong label."""
        return self.wrong_labels / max(1, self.words.total())

    def other_heads(self, tree: Tree, share: float, projective: bool, draw: Draw) -> list[int]:
        """A tree in which about `share` of the words have other heads, errors like the parser's.

        The chance of a word is the parser's for its label, times one factor for all words, and at
        most 1. projective: a projective tree stays projective. A word that has no other head then
        stays.
        """
        factor = share / self.head_share if self.head_share else 0.0
        keeps = projective and is_projective(tree.heads)
        heads, dependents = list(tree.heads), children(tree.heads)
        chosen = [
            word
            for word, label in enumerate(tree.labels)
            if draw() * self.words[label] < factor * self.wrong[label]
        ]
        for i in permutation(len(chosen), draw):
            word = chosen[i]
            if heads[word] != tree.heads[word]:
                continue  # it has become the root in place of another
            others = _candidates(heads, dependents, word, keeps)
            others = others[others != heads[word]]
            if len(others):
                sums = np.cumsum(self._weights(tree, word, others))
                place = int(np.searchsorted(sums, draw() * sums[-1], side="right"))
                move(heads, dependents, word, int(others[min(place, len(others) - 1)]))
        return heads

    def _weights(self, tree: Tree, word: int, heads: Indices) -> npt.NDArray[np.float64]:
        """The weight of each of these heads, (m,)."""
        codes = tree.codes(word)[heads]
        counts = np.bincount(codes)
        weights = np.zeros(len(counts))
        for code in np.flatnonzero(counts).tolist():
            weights[code] = self._weight(tree.labels[word], tree.kind(code))
        of_heads: npt.NDArray[np.float64] = weights[codes]
        return of_heads

    def _weight(self, label: str, kind: Kind) -> float:
        back = _rate(self.chosen.get(ALL), self.possible.get(ALL), kind, LEAST)
        return _rate(self.chosen.get(label), self.possible.get(label), kind, back)

    def other_labels(
        self, tree: Tree, heads: Sequence[int], shares: tuple[float, float], draw: Draw
    ) -> list[str]:
        """The labels, about a share of them changed. heads: those that the words have now.

        shares: of words with other heads, which have wrong labels more often, and of labels to
        change. The root is labelled `root`; the old root gets another label even if none
        is to change.
        """
        factor = self._label_factor(*shares)
        labels = [
            label if new == ROOT else self._label(label, old == new, factor, draw)
            for label, old, new in zip(tree.labels, tree.heads, heads, strict=True)
        ]
        if heads != tree.heads and tree.heads[(root := heads.index(ROOT))] != ROOT:
            labels[root] = ROOT_LABEL
        return labels

    def _label_factor(self, heads: float, labels: float) -> float:
        """The factor of all chances of another label by which a share `labels` of words get one.

        heads: the share of words with other heads. Each label has its own chance of these, because
        labels that often lose their head are confused more often, too.
        """
        factor = heads / self.head_share if self.head_share else 0.0
        fixed = free = 0.0  # words whose label changes in any case, and by its chance
        for label, n in self.words.items():
            moved = min(n, factor * self.wrong[label])
            free += (n - moved) * self._label_chance(label, True)
            if universal(label) == ROOT_LABEL:
                fixed += 2 * moved  # the old root, and the new one
            else:
                free += moved * self._label_chance(label, False)
        return max(0.0, labels * self.words.total() - fixed) / free if free else 0.0

    def _label_chance(self, label: str, right: bool) -> float:
        """The chance of another label, given whether the head is right."""
        counts = self.labels.get((label, right), _NOTHING)
        others = counts.total() - sum(counts[one] for one in {label, ROOT_LABEL})
        return others / counts.total() if others else 0.0

    def _label(self, label: str, right: bool, factor: float, draw: Draw) -> str:
        must = universal(label) == ROOT_LABEL and not right
        if draw() >= factor * self._label_chance(label, right) and not must:
            return label
        counts = self.labels.get((label, right), _NOTHING)
        others = sorted(one for one in counts if one not in (label, ROOT_LABEL))
        return others[_drawn([counts[one] for one in others], draw)] if others else UNSPECIFIED


def _rate(
    chosen: Counter[Kind] | None, possible: Counter[Kind] | None, kind: Kind, back: float
) -> float:
    """(c + b) / (n + 1) of the module's docstring."""
    if chosen is None or possible is None:
        return back
    return (chosen[kind] + back) / (possible[kind] + 1)


def _candidates(
    heads: list[int], dependents: Sequence[list[int]], word: int, projective: bool
) -> Indices:
    """The words that can be the head of a word, its present one among them."""
    if heads[word] == ROOT:
        ends = {*_upwards(heads, 0), *_upwards(heads, len(heads) - 1)}
        others = sorted(ends) if projective else [*range(len(heads))]
        return np.array([one for one in others if one != word], np.int64)
    if projective:
        return np.array(projective_heads(heads, dependents, word), np.int64)
    reached = [word]
    for one in reached:
        reached += dependents[one]
    allowed = np.ones(len(heads), bool)
    allowed[reached] = False
    return np.flatnonzero(allowed)


def _upwards(heads: Sequence[int], word: int) -> list[int]:
    """A word and all above it.

    The words above the first word and above the last can be the root of a projective tree: the
    old root keeps everything else, and what is below the new root must not lie inside it.
    """
    path = []
    while word != ROOT:
        path.append(word)
        word = heads[word]
    return path


def _numbered(heads: Sequence[int]) -> tuple[list[int], list[int]]:
    """(number, end): the words below a word, and itself, have the numbers in number..end - 1."""
    order, size = from_roots(heads), [1] * len(heads)
    for word in reversed(order):
        if heads[word] != ROOT:
            size[heads[word]] += size[word]
    first, free = [0] * len(heads), [0] * len(heads)  # free: for the next dependent
    roots = 0
    for word in order:
        head = heads[word]
        if head == ROOT:
            first[word], roots = roots, roots + size[word]
        else:
            first[word], free[head] = free[head], free[head] + size[word]
        free[word] = first[word] + 1
    return first, [begin + n for begin, n in zip(first, size, strict=True)]


def _drawn(weights: Sequence[float], draw: Draw) -> int:
    """An index, drawn in proportion to its weight. The sum is positive."""
    sums = list(accumulate(weights))
    return min(bisect_right(sums, draw() * sums[-1]), len(sums) - 1)
