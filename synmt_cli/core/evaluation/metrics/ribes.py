"""RIBES: how well a hypothesis keeps the word order of its reference (Isozaki et al., 2010).

    RIBES = NKT * P^alpha * BP^beta                 alpha = 0.25, beta = 0.10

NKT is Kendall's tau over the aligned words, scaled to 0..1: the share of word pairs in the
reference's order. P is the share of hypothesis words that are aligned, BP the brevity penalty
of BLEU, on the sentence. The alignment is that of RIBES.py 1.03 (NTT): a word that occurs once
on both sides is aligned; a repeated word is told apart by its neighbours.
"""

from __future__ import annotations

import math
import operator
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Sequence

ALPHA, BETA = 0.25, 0.10
LONG = 300  # words of both sentences; the linear way is faster beyond
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
    if len(reference) + len(hypothesis) > LONG:
        return _long_alignment(reference, hypothesis)
    codes = {word: chr(n) for n, word in enumerate(dict.fromkeys(reference), 1)}
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


def _long_alignment(reference: Sequence[str], hypothesis: Sequence[str]) -> list[int]:
    """Aligns in linear time: a search for each window is quadratic if one word is repeated."""
    in_reference, in_hypothesis = Counter(reference), Counter(hypothesis)
    places = {word: i for i, word in enumerate(reference)}
    positions = (
        places[word] if in_reference[word] == in_hypothesis[word] == 1 else by_context
        for word, by_context in zip(
            hypothesis, _positions_by_context(reference, hypothesis), strict=True
        )
    )
    return [one for one in positions if one is not None]


def _positions_by_context(reference: Sequence[str], hypothesis: Sequence[str]) -> list[int | None]:
    """The position of each word of the hypothesis by its smallest window, None without one."""
    left = _windows(reference, hypothesis)
    right = reversed(_windows(reference[::-1], hypothesis[::-1]))
    last = len(reference) - 1
    positions: list[int | None] = []
    for to_left, to_right in zip(left, right, strict=True):
        if to_left is not None and (to_right is None or to_left[0] <= to_right[0]):
            positions.append(to_left[1])
        else:
            positions.append(None if to_right is None else last - to_right[1])
    return positions


def _windows(reference: Sequence[str], hypothesis: Sequence[str]) -> list[tuple[int, int] | None]:
    """(words, reference position) of the smallest window to the left of each hypothesis word.

    The window has 1 word or more, and with the word it occurs exactly once in each sentence.
    """
    in_reference = _ending_at(hypothesis, _suffixes(reference))
    in_hypothesis = _ending_at(hypothesis, _suffixes(hypothesis))
    windows: list[tuple[int, int] | None] = []
    for (once, twice, end), (_, again, _) in zip(in_reference, in_hypothesis, strict=True):
        window = max(1, twice, again)
        windows.append((window, end) if window < once else None)
    return windows


class _State:
    """A state of a suffix automaton: the n-grams that end at the same places of a sentence.

    after: the state of each word that may follow. link: the state of the longest suffix that ends
    at more places. length: of the longest n-gram. end: the first place where it ends.
    """

    __slots__ = ("after", "end", "length", "link", "n_ends")

    def __init__(
        self, after: dict[str, _State], link: _State | None, length: int, end: int, n_ends: int
    ) -> None:
        self.after = after
        self.link = link
        self.length = length
        self.end = end
        self.n_ends = n_ends


def _suffixes(words: Sequence[str]) -> _State:
    """The first state of the suffix automaton of a sentence (Blumer et al., 1985).

    Its time and memory are linear in the sentence.
    """
    root = last = _State({}, None, 0, -1, 0)
    states = []
    for end, word in enumerate(words):
        new = _State({}, root, end + 1, end, 1)
        states.append(new)
        state: _State | None = last
        while state is not None and word not in state.after:
            state.after[word] = new
            state = state.link
        if state is not None:
            target = state.after[word]
            if target.length != state.length + 1:
                old = target
                target = _State(old.after.copy(), old.link, state.length + 1, old.end, 0)
                states.append(target)
                old.link = target
                while state is not None and state.after.get(word) is old:
                    state.after[word] = target
                    state = state.link
            new.link = target
        last = new
    states.sort(key=_length, reverse=True)
    for one in states:
        if one.link is not None:
            one.link.n_ends += one.n_ends
    return root


_length = operator.attrgetter("length")


def _ending_at(words: Sequence[str], root: _State) -> list[tuple[int, int, int]]:
    """(once, twice, end) of each word. root: the first state of a sentence's automaton.

    once, twice: the length of the longest n-gram up to the word that occurs in that sentence once
    or more, and twice or more. end: where the n-gram of `once` first ends there.
    """
    ends = []
    state, once = root, 0
    for word in words:
        while word not in state.after and state.link is not None:
            state = state.link
            once = state.length
        if (longer := state.after.get(word)) is not None:
            state = longer
            once += 1
        twice = once if state.n_ends > 1 or state.link is None else state.link.length
        ends.append((once, twice, state.end))
    return ends
