"""Places in a batch that search frees as sources end, known to the host and to the device.

The host decides which sources go on, from what it looks at once a step. Where they move is then
copied to the device, which is not asked again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from synmt_cli.core.model.moving import moved


@dataclass(frozen=True, slots=True)
class Stay:
    """The sources that go on. sources: (B',), the old place of each.

    changed: (M,), the places that another source takes; origin: (M,), its old place. is_all:
    every source stays where it is.
    """

    sources: Tensor
    changed: Tensor
    origin: Tensor
    is_all: bool

    @classmethod
    def all(cls, n: int, device: torch.device) -> Stay:
        """All of n sources."""
        sources = torch.arange(n, device=device)
        return cls(sources, sources[:0], sources[:0], True)

    @classmethod
    def of(cls, places: Sequence[int], n: int, device: torch.device) -> Stay:
        """The sources at these of n places, in that order."""
        changed = [place for place, old in enumerate(places) if place != old]
        origin = [places[place] for place in changed]
        numbers = moved(torch.tensor([*places, *changed, *origin], dtype=torch.long), device)
        sources, to, origins = numbers.split([len(places), len(changed), len(changed)])
        return cls(sources, to, origins, len(places) == n and not changed)

    def move(self, x: Tensor) -> None:
        """Makes x[i] the former x[sources[i]], by copying only the rows that change their place."""
        if len(self.changed):
            x[self.changed] = x[self.origin]


def remaining(ends: Sequence[bool]) -> list[int]:
    """The places that go on: the last of the batch move to where others ended, the rest stay.

    >>> remaining([False, True, False, True, False])
    [0, 4, 2]
    """
    stay = [place for place, is_end in enumerate(ends) if not is_end]
    movers = iter([place for place in stay if place >= len(stay)])
    return [next(movers) if ends[place] else place for place in range(len(stay))]


class Places:
    """The places of a batch and the source in each: n at first, fewer as sources end.

    sources: the number of the source in each place, known to the host.
    """

    def __init__(self, n: int, device: torch.device) -> None:
        self.sources = list(range(n))
        self._device = device
        self._everyone = Stay.all(n, device)

    def free(self, ends: Sequence[bool]) -> Stay:
        """Frees the places whose sources end; the last sources move to where others ended.

        ends: for each place, whether its source does.
        """
        if not any(ends):
            return self._everyone
        places = remaining(ends)
        self.sources = [self.sources[place] for place in places]
        self._everyone = Stay.all(len(places), self._device)
        return Stay.of(places, len(ends), self._device)
