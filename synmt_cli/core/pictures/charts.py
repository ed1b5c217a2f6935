"""Charts as plain values, which figures.py draws and text_charts.py writes for a terminal.

A figure is a list of charts. Lines, intervals and heat maps are all that results need here.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import cast

MOST_MAPS = 24  # in one picture
_SEED = re.compile(r"[.\-_](?:s|seed)?\d+")


@dataclass(frozen=True, slots=True)
class Series:
    """A line, or a row of points. low, high: ends of intervals. group: its members look alike.

    dots: further values at each x, such as those of single seeds. y is None where it is missing.
    """

    name: str
    x: Sequence[float]
    y: Sequence[float | None]
    low: Sequence[float | None] = ()
    high: Sequence[float | None] = ()
    group: str = ""
    dots: Sequence[Sequence[float]] = ()


@dataclass(frozen=True, slots=True)
class Chart:
    """Series over numbers, or over categories where there are `ticks`, which are at 0, 1, ….

    joined: whether a line joins the points, except at the last n_apart ticks. zero: draws y = 0.
    digits: after the point, for values as text. stars: shown after the ticks, if there are any.
    """

    x_label: str
    y_label: str
    series: Sequence[Series]
    ticks: Sequence[str] = ()
    joined: bool = True
    n_apart: int = 0
    zero: bool = False
    limits: tuple[float, float] | None = None
    note: str = ""
    digits: int = 2
    stars: Sequence[str] = ()

    def thinned(self, most: int) -> "Chart":
        """The chart with at most `most` points for each series; `most` is at least 4."""
        return replace(self, series=[thinned(one, most) for one in self.series])

    @property
    def has_names(self) -> bool:
        """Whether the ticks are the names of the series."""
        return [one.name for one in self.series] == [*self.ticks]

    @property
    def starred(self) -> Sequence[str]:
        """The ticks with their stars."""
        if not self.stars:
            return self.ticks
        pairs = zip(self.ticks, self.stars, strict=True)
        return [f"{tick} {stars}" if stars else tick for tick, stars in pairs]

    @property
    def n_intervals(self) -> int:
        """The number of intervals in all series."""
        return sum(low is not None for one in self.series for low in one.low)


@dataclass(frozen=True, slots=True)
class HeatMap:
    """Weights from 0 to 1: a row for each of `rows`. outlined: cells (row, column) of a tree.

    title: one line or several. what: names the weights. in_percent: writes each in its cell.
    """

    title: str
    rows: Sequence[str]
    columns: Sequence[str]
    weights: Sequence[Sequence[float]]
    outlined: frozenset[tuple[int, int]] = field(default_factory=frozenset)
    what: str = "weight"
    in_percent: bool = False


Charts = Sequence[Chart] | Sequence[HeatMap]


def thinned(one: Series, most: int) -> Series:
    """The series with at most `most` (at least 4) of its points, among them all its extremes.

    These are the first and the last point, and the least and the greatest in each of equal
    stretches between them.

    one: without intervals and dots, and with a y for each x.
    """
    if len(one.x) <= most:
        return one
    y = cast("list[float]", one.y)
    n = (most - 2) // 2
    edges = [1 + (len(y) - 2) * i // n for i in range(n + 1)]
    kept = {0, len(y) - 1}
    for a, b in pairwise(edges):
        kept |= {min(range(a, b), key=y.__getitem__), max(range(a, b), key=y.__getitem__)}
    places = sorted(kept)
    return replace(one, x=[one.x[i] for i in places], y=[one.y[i] for i in places])


def group_of(name: str) -> str:
    """The name of a run without its seed, if it ends in one: seeds of one system look alike.

    >>> group_of("runs/pascal.2"), group_of("base-seed3"), group_of("7")
    ('runs/pascal', 'base', '7')
    """
    match = _SEED.search(name)
    while match and match.end() != len(name):
        match = _SEED.search(name, match.end())
    return name[: match.start()] if match and match.start() else name
