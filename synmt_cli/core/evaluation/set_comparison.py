"""Is a system better than the baseline on most test sets? The sign test over their scores.

The unit is a score, that is a pair (test set, metric), as in a paper that calls a model better
in 26 of 40. Systems are matched by name; where files name them differently (a system is often
named after its output, and that after the test set), by their order. Scores on the same test set
are not independent, nor are metrics that count the same n-grams, so p is smaller than it should be:
it says how one-sided the table is.
"""

from collections.abc import Sequence
from dataclasses import replace

from synmt_cli.core.evaluation.statistics.significance import TIE, binomial
from synmt_cli.errors import DataError, UsageError, quoted
from synmt_cli.formats.reports.score.sets import (
    DIGITS,
    ComparedSystem,
    SetPair,
    SetReport,
    SetScores,
)

SHOWN = 5  # names in a message
FORMULA = "exact binomial over the (set, metric) pairs that are not ties, two-sided"


def compare(sets: Sequence[SetScores], metrics: Sequence[str] | None = None) -> SetReport:
    """Compares each further system with the first, over every set and metric.

    metrics: their names; None for those of the first set, and then every set must have exactly
    these. Raises UsageError for fewer than two systems, DataError if a set has other numbers of
    systems, lacks a metric, or has a system of the first set in another place among others.
    """
    first = sets[0]
    n_systems = len(first.systems)
    names = list(first.systems[0][1]) if metrics is None else list(metrics)
    if n_systems < 2:
        raise UsageError("the sign test compares systems with the first: score two or more")
    for one in sets:
        _check(one, n_systems, names, metrics is None)
        for name in names:
            if (name in one.lower) != (name in first.lower):
                problem = f"{quoted(name)} is better in the other direction in the first file"
                raise DataError(one.source, None, problem)
    sets = [first, *(_in_order_of(first, one) for one in sets[1:])]
    systems = [_compared(sets, names, i) for i in range(1, n_systems)]
    return SetReport([one.source for one in sets], names, first.systems[0][0], systems, FORMULA)


def _check(one: SetScores, n_systems: int, metrics: Sequence[str], all_of_them: bool) -> None:
    """Raises DataError unless there are n_systems with a score of each metric."""
    if len(one.systems) != n_systems:
        problem = f"{len(one.systems)} systems, but {n_systems} in the first file"
        raise DataError(one.source, None, problem)
    for name, scores in one.systems:
        for metric in metrics:
            if metric not in scores:
                problem = f"system {quoted(name)} has no score of {quoted(metric)}"
                raise DataError(one.source, None, problem)
        if all_of_them and len(scores) > len(metrics):
            further = next(metric for metric in scores if metric not in metrics)
            problem = f"{quoted(further)} is not in the first file: name the metrics by --metrics"
            raise DataError(one.source, None, problem)


def doubt(sets: Sequence[SetScores]) -> str | None:
    """Says which systems are compared though their names differ, if any are. sets: as compared."""
    first = _names(sets[0])
    for one in sets[1:]:
        names = _names(one)
        if {*names} != {*first}:
            return (
                f"{one.source} names other systems ({_shown(names)}) than {sets[0].source}"
                f" ({_shown(first)}): they are matched by their order"
            )
    return None


def _in_order_of(first: SetScores, one: SetScores) -> SetScores:
    """`one` with its systems in the order of those of the same name in `first`.

    Systems with other names keep their places. Raises DataError if there are such and yet one of
    `first` is in another place: matched by their order, that one would be compared with itself.
    """
    wanted, names = _names(first), _names(one)
    if {*names} == {*wanted} and len({*names}) == len(names):
        return replace(one, systems=sorted(one.systems, key=lambda each: wanted.index(each[0])))
    for place, name in enumerate(names):
        if name in wanted and name != wanted[place]:
            problem = (
                f"system {quoted(name)} is in another place than in {first.source}, and other names"
                " differ: give both the same names (NAME=FILE), or the same order"
            )
            raise DataError(one.source, None, problem)
    return one


def _shown(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN:,} more" if len(names) > SHOWN else ""
    return ", ".join(map(quoted, names[:SHOWN])) + more


def _names(one: SetScores) -> list[str]:
    return [name for name, _ in one.systems]


def _compared(sets: Sequence[SetScores], metrics: Sequence[str], i: int) -> ComparedSystem:
    pairs = [
        _pair(one, metric, one.systems[0][1][metric], one.systems[i][1][metric])
        for one in sets
        for metric in metrics
    ]
    wins, losses = (sum(pair.better == side for pair in pairs) for side in (1, -1))
    return ComparedSystem(sets[0].systems[i][0], pairs, binomial(wins, losses))


def _pair(of: SetScores, metric: str, baseline: float, score: float) -> SetPair:
    delta = baseline - score if metric in of.lower else score - baseline
    better = 0 if abs(delta) <= TIE else 1 if delta > 0 else -1
    return SetPair(of.source, metric, baseline, score, better, of.digits.get(metric, DIGITS))
