"""RIBES: how well a hypothesis keeps the word order of its reference (Isozaki et al., 2010).

    RIBES = NKT * P^alpha * BP^beta                 alpha = 0.25, beta = 0.10

NKT is Kendall's tau over the aligned words, scaled to 0..1: the share of word pairs in the
reference's order. P is the share of hypothesis words that are aligned, BP the brevity penalty
of BLEU, on the sentence. The alignment is that of RIBES.py 1.03 (NTT): a word that occurs once
on both sides is aligned; a repeated word is told apart by its neighbours.
"""

import math
import sys
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Sequence

from synmt_cli.errors import UsageError

ALPHA, BETA = 0.25, 0.10
NOT_IN_REFERENCE = chr(0)


def ribes(reference: Sequence[str], hypothesis: Sequence[str]) -> float:
    """The score of one sentence, 0 to 1. An empty side scores 0.

    One aligned word says nothing about order: it scores only if it is the whole reference.

    >>> ribes("a b c d".split(), "a b c d".split())
    1.0
    >>> ribes("a b c d".split(), "d c b a".split())
    0.0
    >>> round(ribes("a b c".split(), "b a c".split()), 4)  # 2 of 3 pairs in order
    0.6667
    """
    if not reference or not hypothesis:
        return 0.0
    ranks = alignment(reference, hypothesis)
    if len(ranks) < 2 and not (len(ranks) == len(reference) == 1):
        return 0.0
    penalty = min(1.0, math.exp(1 - len(reference) / len(hypothesis)))
    precision = len(ranks) / len(hypothesis)
    return float(normalized_tau(ranks) * precision**ALPHA * penalty**BETA)


def normalized_tau(ranks: Sequence[int]) -> float:
    """The share of pairs that ascend (equal ranks do not); 1 for a single rank.

    >>> normalized_tau([0, 2, 1])
    0.6666666666666666
    """
    if len(ranks) == 1:
        return 1.0
    ascending, seen = 0, list[int]()
    for rank in ranks:
        ascending += bisect_left(seen, rank)
        insort(seen, rank)
    return ascending / (len(ranks) * (len(ranks) - 1) / 2)


def alignment(reference: Sequence[str], hypothesis: Sequence[str]) -> list[int]:
    """Reference positions (from 0) of the hypothesis words that can be aligned, in their order.

    A repeated word is aligned by the smallest window of words to its left, or else to its
    right, with which it occurs exactly once in both sentences; without one it is left out.

    >>> alignment("the cat saw the dog".split(), "the dog saw the cat".split())
    [3, 4, 2, 3, 1]
    """
    codes = {word: chr(n) for n, word in enumerate(dict.fromkeys(reference), 1)}
    if len(codes) >= sys.maxunicode:
        raise UsageError(f"RIBES takes fewer than {sys.maxunicode:,} different words in a line")
    in_reference, in_hypothesis = Counter(reference), Counter(hypothesis)
    # One character for each word, so that an n-gram is found as a substring.
    ref = "".join(codes[word] for word in reference)
    hyp = "".join(codes.get(word, NOT_IN_REFERENCE) for word in hypothesis)
    positions = []
    for i, word in enumerate(hypothesis):
        if word not in codes:
            continue
        if in_reference[word] == in_hypothesis[word] == 1:
            positions.append(ref.index(codes[word]))
        elif (position := _position_by_context(ref, hyp, i)) is not None:
            positions.append(position)
    return positions


def _position_by_context(ref: str, hyp: str, i: int) -> int | None:
    left = _smallest_window(ref, hyp, i, lambda window: hyp[i - window : i + 1])
    right = _smallest_window(ref, hyp, len(hyp) - 1 - i, lambda window: hyp[i : i + window + 1])
    if left is not None and (right is None or left <= right):
        return ref.index(hyp[i - left : i + 1]) + left
    if right is not None:
        return ref.index(hyp[i : i + right + 1])
    return None


def _smallest_window(ref: str, hyp: str, limit: int, ngram: Callable[[int], str]) -> int | None:
    """The smallest window of 1 to `limit` words whose n-gram occurs once in each sentence."""

    def repeats_nowhere(window: int) -> bool:
        return all(text.find(ngram(window)) == text.rfind(ngram(window)) for text in (ref, hyp))

    # A longer n-gram is never more frequent than the one inside it, so bisection is exact.
    window = bisect_left(range(1, limit + 1), True, key=repeats_nowhere) + 1
    return window if window <= limit and ngram(window) in ref else None
