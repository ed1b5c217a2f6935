"""What a comparison with the first system comes to, in words."""

from collections.abc import Iterator, Sequence

from synmt_cli.formats.reports.score.systems import (
    OVER_SEEDS,
    MetricInfo,
    PairedComparison,
    ScoredSystem,
)

INTERVAL_DECIDES = (*OVER_SEEDS, "centred")  # where p < 0.05 is an interval without 0


def sentences(metrics: Sequence[MetricInfo], systems: Sequence[ScoredSystem]) -> list[str]:
    """A line for each system that was compared with the first, by the p that stars follow.

    Then what "undecided" means with these data: how great a difference has to be.
    """
    compared = [system for system in systems[1:] if system.paired]
    said = [f"{one.name}: {_verdict(metrics, one, systems[0].name)}" for one in compared]
    return [*said, *_limits(metrics, compared)]


def _verdict(metrics: Sequence[MetricInfo], system: ScoredSystem, first: str) -> str:
    by: dict[str, list[str]] = {f"better than {first}": [], f"worse than {first}": []}
    by["undecided"] = []
    better, worse, undecided = by.values()
    for metric in metrics:
        paired = system.paired[metric.name]
        is_better = (paired.delta > 0) == metric.higher_is_better
        found = (better if is_better else worse) if paired.mark() else undecided
        found.append(f"{metric.label} ({metric.difference(paired.delta)})")
    return "; ".join(f"{what} by {_listed(names, 'and')}" for what, names in by.items() if names)


def _limits(metrics: Sequence[MetricInfo], systems: Sequence[ScoredSystem]) -> Iterator[str]:
    """The half widths of intervals, by the metrics that leave something undecided."""
    limits = []
    for metric in metrics:
        results = [system.paired[metric.name] for system in systems]
        if any(not one.mark() for one in results) and all(map(_is_by_interval, results)):
            halves = sorted(half for one in results if (half := (one.ci95[1] - one.ci95[0]) / 2))
            if not halves:  # the same outputs everywhere
                continue
            ends = dict.fromkeys(f"{half:.{metric.digits}f}" for half in (halves[0], halves[-1]))
            limits.append(f"{' to '.join(ends)} {metric.label}")
    if limits:
        yield (
            'undecided is not "equal": to be significant here, a difference has to be at least '
            f"about {_listed(limits, 'or')}"
        )


def _is_by_interval(result: PairedComparison) -> bool:
    return result.test == "bs" and result.definition in INTERVAL_DECIDES


def _listed(words: Sequence[str], joint: str) -> str:
    """Words as a list in a sentence: `a, b and c`."""
    *most, last = words
    return f"{', '.join(most)} {joint} {last}" if most else last
