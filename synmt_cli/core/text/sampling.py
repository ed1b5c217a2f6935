"""Pieces that are drawn: BPE-dropout, and segmentations of a unigram model.

BPE-dropout (Provilkov et al. 2020) merges neighbours in the order of the model's scores, but
leaves each merge out with chance alpha when its turn comes. A unigram model (Kudo 2018) gives a
segmentation x of a text the probability P(x), the product of its pieces'; x is drawn with

    P(x)^alpha / sum over x' of P(x')^alpha

over all segmentations, by summing forward and drawing backward, or over the n best.

sentencepiece draws in the same way, but its generator is salted anew in each process, so that
no seed gives the same pieces twice. Here the draws of a line depend on the seed and the line's
number alone; sentencepiece still normalizes the text and finds the n best.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import accumulate, groupby, pairwise
from random import Random

from synmt_cli.core.text.vocabulary import SPACE, Vocabulary

UNKNOWN = 10.0  # an unknown character has the least score minus this
Draw = Callable[[], float]  # uniform in [0, 1)


@dataclass(frozen=True, slots=True)
class Sampling:
    """How pieces are drawn. nbest: from how many segmentations of a unigram model; 0 is all.

    alpha: for BPE, the chance that a merge is left out, 0 to 1; for a unigram model, the exponent
    of probabilities, at least 0: 0 draws uniformly, a large one the best segmentation.
    """

    alpha: float
    nbest: int
    seed: int


class Sampler:
    """Draws the pieces of texts. vocabulary: a bpe or unigram model."""

    def __init__(self, vocabulary: Vocabulary, sampling: Sampling) -> None:
        self._vocabulary = vocabulary
        self._sampling = sampling
        self._scores = vocabulary.scores()
        self._lowest = min(self._scores.values(), default=0.0) - UNKNOWN
        self._longest = max(map(len, self._scores), default=1)
        self._fixed = _alternatives(vocabulary.user_symbols())
        crossing = any(SPACE in piece[1:] for piece in self._scores)
        self._units = re.compile(".+" if crossing else f"{SPACE}[^{SPACE}]*|[^{SPACE}]+", re.DOTALL)
        bpe = vocabulary.making.type == "bpe"
        self._segment = self._merged if bpe else self._walked

    def pieces(self, text: str, number: int) -> list[str]:
        """The pieces of a text. number: the draws depend on it and on the seed."""
        draw = Random(f"synmt vocab encode {self._sampling.seed} {number}").random
        if self._sampling.nbest:
            return self._vocabulary.without_symbols(self._one_of_best(text, draw))
        normalized = self._vocabulary.normalize(text)
        pieces = [
            piece
            for part, fixed in _parts(self._fixed, normalized)
            for piece in ([part] if fixed else self._drawn(part, draw))
        ]
        return self._vocabulary.without_symbols([*self._known(pieces)])

    def _drawn(self, text: str, draw: Draw) -> Iterator[str]:
        for unit in self._units.findall(text):
            yield from self._segment(unit, draw)

    def _known(self, pieces: Iterable[str]) -> Iterator[str]:
        """Unknown pieces as their bytes, or each run of them as one piece."""
        for known, run in groupby(pieces, self._vocabulary.has):
            if known:
                yield from run
            else:
                yield from self._vocabulary.unknown("".join(run))

    def _merged(self, unit: str, draw: Draw) -> list[str]:
        """BPE-dropout of one word."""
        pieces, alpha = list(unit), self._sampling.alpha
        following = [*range(1, len(pieces)), -1]
        before = [*range(-1, len(pieces) - 1)]
        agenda: list[tuple[float, int, int, str]] = []

        def offer(left: int, right: int) -> None:
            piece = pieces[left] + pieces[right]
            if (score := self._scores.get(piece)) is not None:
                heappush(agenda, (-score, left, right, piece))

        for left, right in pairwise(range(len(pieces))):
            offer(left, right)
        while agenda:
            _, left, right, piece = heappop(agenda)
            # One of the two may have become part of another piece.
            is_stale = "" in (pieces[left], pieces[right]) or pieces[left] + pieces[right] != piece
            if is_stale or draw() < alpha:
                continue
            pieces[left], pieces[right] = piece, ""
            following[left] = following[right]
            if before[left] >= 0:
                offer(before[left], left)
            if following[left] >= 0:
                before[following[left]] = left
                offer(left, following[left])
        return [piece for piece in pieces if piece]

    def _walked(self, unit: str, draw: Draw) -> list[str]:
        """One of all segmentations: forward sums of probabilities, then a draw from the end."""
        alpha, n = self._sampling.alpha, len(unit)
        total = [0.0] + [-math.inf] * n  # log of the sum over segmentations of unit[:end]
        arcs: list[list[tuple[int, float]]] = [[] for _ in range(n + 1)]  # by end: (begin, log)
        for end in range(1, n + 1):
            for begin in range(max(0, end - self._longest), end):
                score = self._scores.get(unit[begin:end])
                if score is None and begin == end - 1:
                    score = self._lowest
                if score is not None:
                    arcs[end].append((begin, total[begin] + alpha * score))
            highest = max(value for _, value in arcs[end])
            sums = sum(math.exp(value - highest) for _, value in arcs[end])
            total[end] = highest + math.log(sums)
        pieces, end = [], n
        while end:
            begin = arcs[end][_choice([value for _, value in arcs[end]], draw)][0]
            pieces.append(unit[begin:end])
            end = begin
        return pieces[::-1]

    def _one_of_best(self, text: str, draw: Draw) -> list[str]:
        best = self._vocabulary.best(text, self._sampling.nbest)
        if not best:
            return []
        scores = [sum(self._scores.get(one, self._lowest) for one in pieces) for pieces in best]
        return best[_choice([self._sampling.alpha * score for score in scores], draw)]


def _choice(logs: list[float], draw: Draw) -> int:
    """An index, drawn with probability proportional to exp(logs[index])."""
    highest = max(logs)
    sums = [*accumulate(math.exp(value - highest) for value in logs)]
    point = draw() * sums[-1]
    return next((i for i, value in enumerate(sums) if point < value), len(logs) - 1)


def _alternatives(texts: Iterable[str]) -> re.Pattern[str] | None:
    """A pattern for these texts, the longest where several begin; None if there are none."""
    ordered = sorted(texts, key=len, reverse=True)
    return re.compile("|".join(map(re.escape, ordered))) if ordered else None


def _parts(fixed: re.Pattern[str] | None, text: str) -> Iterator[tuple[str, bool]]:
    """Yields the text in parts, and whether each is a piece that is never split."""
    at = 0
    for match in fixed.finditer(text) if fixed else ():
        if match.start() > at:
            yield text[at : match.start()], False
        yield match[0], True
        at = match.end()
    if at < len(text):
        yield text[at:], False
