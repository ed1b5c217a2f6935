"""Many questions on one test set: p values corrected for their number, and clusters of systems."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from synmt_cli.formats.reports.score.systems import PairedComparison


def corrected(*families: Sequence[PairedComparison]) -> list[list[PairedComparison]]:
    """The comparisons of one report, each with its p corrected for the size of its family.

    If the report has one comparison in all, it stays as it is.
    """
    if sum(map(len, families)) < 2:
        return [[*family] for family in families]
    return [
        [
            replace(one, corrected=p)
            for one, p in zip(family, holm([one.p for one in family]), strict=True)
        ]
        for family in families
    ]


def holm(p_values: Sequence[float]) -> list[float]:
    """Each p, corrected so that one false alarm among all of them is as rare as p says.

    Holm (1979): the least p is multiplied by their number m, the next by m - 1, and so on; none
    is less than one before it, or more than 1.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    corrected, greatest = [0.0] * len(p_values), 0.0
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    for rank, i in enumerate(order):
        greatest = max(greatest, min(1.0, (len(p_values) - rank) * p_values[i]))
        corrected[i] = greatest
    return corrected


def clusters(ranking: Sequence[int], differ: Callable[[int, int], bool]) -> list[list[int]]:
    """A ranking, best first, cut where every system above beats every system below.

    The findings of WMT rank systems in this way. differ: whether the test tells two systems apart.

    >>> clusters([2, 0, 1], lambda above, below: below == 1)
    [[2, 0], [1]]
    """
    groups: list[list[int]] = [[]]
    for place, system in enumerate(ranking):
        above, below = ranking[:place], ranking[place:]
        if place and all(differ(one, other) for one in above for other in below):
            groups.append([])
        groups[-1].append(system)
    return groups
