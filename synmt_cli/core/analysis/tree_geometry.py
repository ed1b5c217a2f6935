"""Trees as distances and depths of words, and how well predictions agree with them.

The measures of Hewitt and Manning (2019), as in their published code: the minimum spanning tree
and the least deep word leave punctuation out; rank correlations take all words, averaged over the
sentences of one length and then over the lengths from 5 to 50.
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import mean

import numpy as np
import numpy.typing as npt

from synmt_cli.core.trees.heads import ROOT, depths, from_roots

LENGTHS = range(5, 51)  # words of a sentence whose rank correlations count
Array = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Geometry:
    """n words of a sentence. distances: (n, n), arcs between two of them. depths: (n,), arcs up to
    the root. judged: (n,), whether a word is not punctuation.
    """

    distances: Array
    depths: Array
    judged: npt.NDArray[np.bool_]


def geometry(heads: Sequence[int], upos: Sequence[str], words: Sequence[int]) -> Geometry:
    """The geometry of some words of a tree, in their order. heads: from 0.

    The paths between them may pass through the other words.
    """
    chosen = np.array(words, np.int64)
    distances = path_lengths(heads)[np.ix_(chosen, chosen)]
    judged = np.array([upos[word] != "PUNCT" for word in words], bool)
    return Geometry(distances, np.array(depths(heads), np.float64)[chosen], judged)


def path_lengths(heads: Sequence[int]) -> Array:
    """The number of arcs between any two words of a tree, (n, n). heads: from 0.

    >>> path_lengths([1, -1, 1]).astype(int).tolist()
    [[0, 1, 2], [1, 0, 1], [2, 1, 0]]
    """
    lengths = np.zeros((len(heads), len(heads)))
    seen: list[int] = []
    for word in from_roots(heads):
        if heads[word] != ROOT:
            lengths[word, seen] = lengths[seen, word] = lengths[heads[word], seen] + 1
        seen.append(word)
    return lengths


def spanning_tree(distances: Array) -> set[tuple[int, int]]:
    """The edges (i, j), i < j, of a minimum spanning tree, by Prim's algorithm.

    distances: (n, n), n > 0.

    >>> sorted(spanning_tree(np.array([[0, 1, 2], [1, 0, 1], [2, 1, 0]])))
    [(0, 1), (1, 2)]
    """
    n = len(distances)
    nearest, outside = np.zeros(n, np.int64), np.ones(n, bool)
    outside[0] = False
    least = np.array(distances[0], np.float64)
    edges = set()
    for _ in range(n - 1):
        new = int(np.argmin(np.where(outside, least, np.inf)))
        old = int(nearest[new])
        edges.add((min(old, new), max(old, new)))
        outside[new] = False
        closer = distances[new] < least
        least[closer], nearest[closer] = distances[new][closer], new
    return edges


def rank_correlation(a: Array, b: Array) -> float:
    """Spearman's rho; ties get their mean rank; 0 if a or b is constant. a, b: (n,).

    >>> rank_correlation(np.array([1.0, 2, 3]), np.array([10.0, 30, 20]))
    0.5
    """
    x, y = _ranks(a), _ranks(b)
    x, y = x - x.mean(), y - y.mean()
    size = math.sqrt(float(x @ x) * float(y @ y))
    return float(x @ y) / size if size else 0.0


def _ranks(values: Array) -> Array:
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    middle: Array = (2 * last - counts + 1) / 2
    return middle[inverse]


@dataclass(slots=True)
class DistanceScores:
    """Scores of predicted distances. edges: (right, all) of each sentence."""

    edges: list[tuple[int, int]] = field(default_factory=list)
    correlations: dict[int, list[float]] = field(default_factory=lambda: defaultdict(list))

    def add(self, gold: Geometry, distances: Array) -> None:
        """Judges the distances of a sentence, (n, n): its spanning tree, and each word's row."""
        judged = np.ix_(gold.judged, gold.judged)
        if gold.judged.any():
            right = spanning_tree(gold.distances[judged])
            self.edges.append((len(right & spanning_tree(distances[judged])), len(right)))
        if len(distances) in LENGTHS:
            rows = map(rank_correlation, distances, gold.distances)
            self.correlations[len(distances)] += rows

    @property
    def uuas(self) -> float | None:
        """The percentage of edges that are right; None where there are no edges."""
        right, n = (sum(edge[i] for edge in self.edges) for i in (0, 1))
        return 100 * right / n if n else None

    @property
    def standard_error(self) -> float | None:
        """The standard error of `uuas` over draws of sentences: that of a ratio of two sums."""
        share, n = self.uuas, len(self.edges)
        if share is None or n < 2:
            return None
        rest = sum((right - share / 100 * edges) ** 2 for right, edges in self.edges)
        return 100 * math.sqrt(rest * n / (n - 1)) / sum(edges for _, edges in self.edges)

    @property
    def spearman(self) -> float | None:
        """The mean over lengths of the mean correlation; None without a sentence of LENGTHS."""
        return _by_length(self.correlations)


@dataclass(slots=True)
class DepthScores:
    """Scores of predicted depths. roots: whether the least deep word of a sentence is its root."""

    roots: list[bool] = field(default_factory=list)
    correlations: dict[int, list[float]] = field(default_factory=lambda: defaultdict(list))

    def add(self, gold: Geometry, depths: Array) -> None:
        """Judges the depths of a sentence, (n,), and its root, unless the root has no pieces or is
        punctuation.
        """
        if (gold.depths[gold.judged] == 0).any():
            least = int(np.argmin(np.where(gold.judged, depths, np.inf)))
            self.roots.append(bool(gold.depths[least] == 0))
        if len(depths) in LENGTHS:
            self.correlations[len(depths)].append(rank_correlation(depths, gold.depths))

    @property
    def accuracy(self) -> float | None:
        """The percentage of roots that are right; None without a sentence."""
        return 100.0 * mean(self.roots) if self.roots else None

    @property
    def spearman(self) -> float | None:
        """The mean over lengths of the mean correlation; None without a sentence of LENGTHS."""
        return _by_length(self.correlations)


def _by_length(correlations: dict[int, list[float]]) -> float | None:
    return mean(map(mean, correlations.values())) if correlations else None
