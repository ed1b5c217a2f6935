"""Places in a batch that change hands as sources end, known to the host and to the device.

The host decides which sources go on, from what it looks at once a step. Where they move is then
copied to the device, which is not asked again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from synmt_cli.core.decoding.batching.supply import Source
from synmt_cli.core.model.moving import moved


@dataclass(frozen=True, slots=True)
class Stay:
    """The sources that go on. sources: (B',), the old place of each; places: the same on the host.

    changed: (M,), the places that another source takes; origin: (M,), its old place. is_all:
    every source stays where it is.
    """

    sources: Tensor
    changed: Tensor
    origin: Tensor
    is_all: bool
    places: Sequence[int]

    @classmethod
    def all(cls, sources: Tensor) -> Stay:
        """All of n sources stay. sources: 0, 1, ... n - 1."""
        return cls(sources, sources[:0], sources[:0], True, range(len(sources)))

    @classmethod
    def of(cls, places: Sequence[int], n: int, device: torch.device) -> Stay:
        """The sources at these places, out of n, in that order."""
        changed = [place for place, old in enumerate(places) if place != old]
        origin = [places[place] for place in changed]
        numbers = moved(torch.tensor([*places, *changed, *origin], dtype=torch.long), device)
        sources, to, origins = numbers.split([len(places), len(changed), len(changed)])
        return cls(sources, to, origins, len(places) == n and not changed, places)

    def move(self, x: Tensor) -> None:
        """Makes x[i] the former x[sources[i]], by copying only the rows that change their place."""
        if len(self.changed):
            x[self.changed] = x[self.origin]

    def pick(self, x: Tensor, parents: Tensor | None = None) -> Tensor:
        """x[sources]; with parents, (B', K), those prefixes of each source in x, (B, K, ...)."""
        if parents is not None:
            return x[self.sources[:, None], parents]
        return x if self.is_all else x[self.sources]


def lengthened(x: Tensor, n: int) -> Tensor:
    """x with n rows; rows after its own are zero."""
    return x if len(x) == n else torch.cat((x, x.new_zeros(n - len(x), *x.shape[1:])))


def widened(x: Tensor, width: int, value: int) -> Tensor:
    """x: (..., T) with at least `width` columns; columns after its own are `value`."""
    missing = width - x.size(-1)
    return x if missing <= 0 else torch.cat((x, x.new_full((*x.shape[:-1], missing), value)), -1)


def remaining(ends: Sequence[bool]) -> list[int]:
    """The old places of the sources that go on; the last of these fill the places of ended ones.

    >>> remaining([False, True, False, True, False])
    [0, 4, 2]
    """
    stay = [place for place, is_end in enumerate(ends) if not is_end]
    movers = iter([place for place in stay if place >= len(stay)])
    return [next(movers) if ends[place] else place for place in range(len(stay))]


class Places:
    """The places of a batch and the source in each, known to the host.

    sources: the source in each place.
    """

    def __init__(self, device: torch.device) -> None:
        self.sources: list[Source] = []
        self._device = device
        self._numbers = torch.arange(0, device=device)  # 0, 1, ... as far as needed so far
        self._everyone = Stay.all(self._numbers)

    def change(self, ends: Sequence[bool], new: Sequence[Source]) -> tuple[Stay, list[int]]:
        """Gives the places of ended sources to new ones; the last sources move to any left free.

        ends: whether the source in each place ends. Returns how the sources move, where a new
        one counts as if the former one in its place stayed; and the places of the new sources.
        New sources for which no place became free are appended.
        """
        freed = [place for place, is_end in enumerate(ends) if is_end]
        given, left = freed[: len(new)], freed[len(new) :]
        stay = self._everyone
        if left:
            free = set(left)
            places = remaining([place in free for place in range(len(ends))])
            self.sources = [self.sources[place] for place in places]
            stay = Stay.of(places, len(ends), self._device)
        n = len(self.sources)
        given += range(n, n + len(new) - len(given))
        for place, source in zip(given, new, strict=True):
            self.sources[place : place + 1] = [source]
        n = len(self.sources)
        if n != len(self._everyone.places):
            if n > len(self._numbers):
                self._numbers = torch.arange(n, device=self._device)
            self._everyone = Stay.all(self._numbers[:n])
        return stay, given
