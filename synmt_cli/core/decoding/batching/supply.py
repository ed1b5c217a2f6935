"""Sources that wait for a place in a batch: encoded some at a time, as places become free.

A batch has room for a number of sources, and for a number of padded source tokens. The caller
gives the sources longest first, so that neighbours have similar lengths. The next sources are
encoded when a place is free and none waits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from torch import Tensor

LANES = 16  # numbers of single precision in the widest register of a CPU


def whole(n: int) -> int:
    """The length to which n positions are padded: the next multiple of LANES.

    A sum over positions then takes them in the same order, whatever other rows of the batch need:
    longer padding only adds registers of zeros. So a translation depends on its neighbours only
    where a product of all rows does (docs/decisions/0033-continuous-batching.md).

    >>> [whole(n) for n in (1, 16, 17)]
    [16, 16, 32]
    """
    return -(-n // LANES) * LANES


class Room(NamedTuple):
    """The room of a batch: for sources, and for padded source tokens (one source always fits)."""

    sources: int
    tokens: int

    def of(self, longest: int) -> int:
        """How many sources fit, if the longest has so many tokens."""
        return max(1, min(self.sources, self.tokens // longest))


@dataclass(frozen=True, slots=True)
class Sources:
    """Some encoded sources.

    numbers: chosen by the caller. lengths: in tokens. limits: the longest translation of each.
    keys_values: for each model what its decoder layers see, (layers, 2, n, H, S, D / H).
    """

    numbers: Sequence[int]
    lengths: Sequence[int]
    limits: Sequence[int]
    keys_values: Sequence[Tensor]

    def __len__(self) -> int:
        return len(self.numbers)

    def part(self, begin: int, end: int) -> Sources:
        """The sources from begin to end, without padding that none of them needs; not a copy."""
        lengths = self.lengths[begin:end]
        width = whole(max(lengths))
        return Sources(
            self.numbers[begin:end],
            lengths,
            self.limits[begin:end],
            [one[:, :, begin:end, :, :width] for one in self.keys_values],
        )

    @classmethod
    def joined(cls, parts: Sequence[Sources]) -> Sources:
        """All sources of several, in that order, numbered anew from 0."""
        lengths = [length for part in parts for length in part.lengths]
        limits = [limit for part in parts for limit in part.limits]
        width = whole(max(lengths))
        every = []
        for same in zip(*(part.keys_values for part in parts), strict=True):
            n_layers, _, _, n_heads, _, size = same[0].shape
            one = same[0].new_zeros(n_layers, 2, len(lengths), n_heads, width, size)
            begin = 0
            for own in same:
                end = begin + own.size(2)
                one[:, :, begin:end, :, : own.size(4)] = own
                begin = end
            every.append(one)
        return cls(range(len(lengths)), lengths, limits, every)

    def each(self, keeps: bool = False) -> Iterator[Source]:
        """Yields the sources one by one. keeps: each with a copy of its own keys and values."""
        for i, about in enumerate(zip(self.numbers, self.lengths, self.limits, strict=True)):
            yield Source(*about, self.part(i, i + 1).copied() if keeps else None)

    def copied(self) -> Sources:
        """The same, in memory of its own: a part keeps alive all that it is a part of."""
        return replace(self, keys_values=[one.clone() for one in self.keys_values])


class Source(NamedTuple):
    """A source in a batch. encoded: this source by itself, if it is kept for another search."""

    number: int
    length: int
    limit: int
    encoded: Sources | None = None

    @property
    def alone(self) -> Sources:
        """This source by itself, which the supply was told to keep."""
        assert self.encoded is not None
        return self.encoded


class Supply:
    """Gives encoded sources to a batch as long as it has room.

    encoded: yields some sources at a time, when the batch has a place for one of them. in_step:
    sources wait until the batch is empty, so that all of a batch are at the same position. keeps:
    the sources are searched again afterwards.
    """

    def __init__(
        self,
        encoded: Iterator[Sources],
        room: Room,
        in_step: bool = False,
        keeps: bool = False,
    ) -> None:
        self.keeps = keeps
        self._in_step = in_step
        self._encoded = encoded
        self._room = room
        self._waiting: Sources | None = None

    def take(self, lengths: Sequence[int]) -> list[Sources]:
        """Takes the sources that fit into a batch. lengths: of those already in it, in tokens."""
        if self._in_step and lengths:
            return []
        n, longest, taken = len(lengths), max(lengths, default=0), []
        while n < self._room.sources and (waiting := self._next()) is not None:
            longest = max(longest, *waiting.lengths)
            n_new = min(self._room.of(longest) - n, len(waiting))
            if n_new <= 0:
                break
            taken.append(waiting.part(0, n_new))
            n += n_new
            has_more = n_new < len(waiting)
            self._waiting = waiting.part(n_new, len(waiting)) if has_more else None
        return taken

    def width(self, ages: Sequence[int]) -> int:
        """The padded length of prefixes: in step they need no padding, alone or in a batch."""
        return max(ages) if self._in_step else whole(max(ages))

    def _next(self) -> Sources | None:
        if self._waiting is None:
            self._waiting = next(self._encoded, None)
        return self._waiting
