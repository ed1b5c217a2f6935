"""n-grams that two texts share, counted segment by segment for all orders at once.

The n-grams of every order lie in one sorted array. It has, for each position, a window of the
longest order, padded with zeros where the segment ends, as the digits of an integer:

    segment | symbol 1 | symbol 2 | ... | symbol N | side

Sorted, equal windows are neighbours, and without their last symbol so are the n-grams of each lower
order. So one sort and a pass for each order count everything, as exactly as a loop with a Counter.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from synmt_cli.core.evaluation.metrics.formulas import Array

Integers = npt.NDArray[np.int64]
BITS = 63  # of a window


@dataclass(frozen=True, slots=True)
class Symbols:
    """The words or characters of segments. values: from 1, end to end. lengths: of each segment."""

    values: Integers
    lengths: Integers

    def part(self, begin: int, end: int) -> "Symbols":
        """The symbols of segments `begin` to `end` - 1."""
        ends = np.concatenate([[0], np.cumsum(self.lengths)])
        return Symbols(self.values[ends[begin] : ends[end]], self.lengths[begin:end])

    def totals(self, n_orders: int) -> Array:
        """How many n-grams each segment has, (segments, n_orders)."""
        totals: Array = np.maximum(self.lengths[:, None] - np.arange(n_orders), 0).astype(
            np.float64
        )
        return totals


def characters(lines: Sequence[str]) -> Symbols:
    """Every character is a symbol."""
    codes = np.frombuffer("".join(lines).encode("utf-32-le"), dtype=np.uint32)
    return Symbols(codes.astype(np.int64) + 1, np.array([*map(len, lines)], dtype=np.int64))


def words(segments: Sequence[Sequence[str]], known: dict[str, int]) -> Symbols:
    """Every word is a symbol. known: the numbers of words, which grows."""
    values = [known.setdefault(word, len(known) + 1) for words in segments for word in words]
    lengths = np.array([*map(len, segments)], dtype=np.int64)
    return Symbols(np.array(values, dtype=np.int64), lengths)


def matches(hypothesis: Symbols, reference: Symbols, n_orders: int) -> Array:
    """How many n-grams each segment shares, (segments, n_orders).

    An n-gram counts as often as in the side that has it less often.
    """
    n = len(hypothesis.lengths)
    sides = [*map(_locally, (hypothesis, reference), (reference, hypothesis))]
    n_bits = max(int(side.values.max(initial=0)) for side in sides).bit_length()
    if n_bits * n_orders + n.bit_length() + 1 > BITS:
        if n == 1:
            return _counted(hypothesis, reference, n_orders)
        parts = ((0, n // 2), (n // 2, n))
        halves = [matches(sides[0].part(*p), sides[1].part(*p), n_orders) for p in parts]
        return np.concatenate(halves)
    windows = [_windows(side, n_bits, n_orders) << 1 for side in sides]
    joined = np.concatenate([windows[0], windows[1] | 1])
    joined.sort()
    found = np.zeros((n, n_orders))
    ours, theirs = 1 - (joined & 1), joined & 1  # how often each side has it
    keys, symbol = joined >> 1, (1 << n_bits) - 1
    for order in range(n_orders - 1, -1, -1):
        if not len(keys):
            break
        starts = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
        keys = keys[starts]
        ours, theirs = np.add.reduceat(ours, starts), np.add.reduceat(theirs, starts)
        shared = np.where(keys & symbol, np.minimum(ours, theirs), 0)  # 0: beyond the end
        segments = keys >> (n_bits * (order + 1))
        found[:, order] = np.bincount(segments, weights=shared, minlength=n)
        keys = keys >> n_bits
    return found


def _locally(side: Symbols, other: Symbols) -> Symbols:
    """The same symbols with numbers as small as possible: ranks in the alphabet of both sides."""
    greatest = max(int(side.values.max(initial=0)), int(other.values.max(initial=0)))
    there = np.zeros(greatest + 1, dtype=bool)
    there[side.values] = there[other.values] = True
    return Symbols(np.cumsum(there)[side.values], side.lengths)


def _windows(side: Symbols, n_bits: int, n_orders: int) -> Integers:
    """The segment and the symbols from each position on, as one number, (positions,)."""
    n, gap = len(side.lengths), n_orders - 1
    segments = np.repeat(np.arange(n), side.lengths)
    places = np.arange(len(side.values)) + segments * gap  # room for zeros after each segment
    padded = np.zeros(len(side.values) + n * gap + gap, dtype=np.int64)
    padded[places] = side.values
    windows = segments
    for further in range(n_orders):
        windows = (windows << n_bits) | padded[places + further]
    return windows


def _counted(hypothesis: Symbols, reference: Symbols, n_orders: int) -> Array:
    """Does what `matches` does, for one segment with too many symbols for a window."""
    sides = [side.values.tolist() for side in (hypothesis, reference)]
    shared = []
    for n in range(1, n_orders + 1):
        ours, theirs = (
            Counter(tuple(side[i : i + n]) for i in range(len(side) - n + 1)) for side in sides
        )
        shared.append((ours & theirs).total())
    return np.array([shared], dtype=np.float64)
