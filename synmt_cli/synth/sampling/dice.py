"""Random choices by seed, the same on every machine and in every version of Python."""

from collections.abc import Sequence
from random import Random
from typing import TypeVar

Item = TypeVar("Item")


class Again(Exception):
    """Not an error: the choices made so far cannot be completed, so draw again."""


class Dice:
    """Choices by `Random.random` alone: the one method whose sequence Python promises to keep."""

    def __init__(self, seed: int) -> None:
        self._random = Random(f"synmt synth {seed}").random

    def chance(self, p: float) -> bool:
        """True with probability p."""
        return self._random() < p

    def pick(self, items: Sequence[Item]) -> Item:
        """One of the items, all equally likely. Raises Again if there are none."""
        if not items:
            raise Again
        return items[int(self._random() * len(items))]

    def weighted(self, items: Sequence[tuple[Item, float]]) -> Item:
        """One of the items, by weight."""
        point = self._random() * sum(weight for _, weight in items)
        for item, weight in items:
            point -= weight
            if point < 0:
                return item
        return max(items, key=lambda pair: pair[1])[0]  # rounding left a remainder

    def number(self, low: int, high: int) -> int:
        """A whole number from low to high, both included."""
        return low + int(self._random() * (high - low + 1))
