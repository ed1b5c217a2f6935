"""Charts of a report of `synmt score`: systems and their differences from the first, with
intervals, and the same in buckets.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from synmt_cli.core.pictures.charts import Chart, Series
from synmt_cli.core.pictures.sentences import shown_ends
from synmt_cli.errors import UsageError, quoted
from synmt_cli.formats.reports.score.scores import ScoredBucket, ScoreReport
from synmt_cli.formats.reports.score.systems import MetricInfo

SYSTEMS = "systems"  # the charts of whole scores, as --by names them
AT_AXIS = 12  # characters of a name that stands along the axis of a chart


def charts(report: ScoreReport, metric: str = "", by: str = "") -> list[Chart]:
    """The charts of one metric, the first by default, or of one division into buckets.

    Raises UsageError for names that the report does not have.
    """
    names = {one.name: one for one in report.metrics}
    if metric and metric not in names:
        known = ", ".join(names)
        raise UsageError(f"--metric {quoted(metric)}: the report has {known}")
    divisions = [SYSTEMS, *report.divisions]
    if by and by not in divisions:
        raise UsageError(f"--by {quoted(by)}: the report has {', '.join(divisions)}")
    chosen = names[metric] if metric else next(iter(report.metrics))
    made = []
    for division in [by] if by else divisions:
        if division == SYSTEMS:
            made += whole(report, chosen)
        else:
            made += buckets(report, chosen, division)
    return made


def whole(report: ScoreReport, metric: MetricInfo) -> list[Chart]:
    """The charts of the whole test set: systems, and their differences if these were tested."""
    tested = any(metric.name in one.paired for one in report.systems)
    return [systems(report, metric), *([differences(report, metric)] if tested else [])]


def systems(report: ScoreReport, metric: MetricInfo) -> Chart:
    """The score of each system with its 95 % interval, and the scores of its seeds."""
    n = len(report.systems)
    intervals = [one.intervals.get(metric.name) for one in report.systems]
    seeds = [one.seeds.get(metric.name, []) for one in report.systems]
    several = any(len(one) > 1 for one in seeds)
    series = [
        Series(
            system.name,
            range(n),
            _only(i, n, system.scores[metric.name]),
            _only(i, n, ci95[0] if ci95 else None),
            _only(i, n, ci95[1] if ci95 else None),
            dots=[seeds[i] if len(seeds[i]) > 1 and at == i else () for at in range(n)],
        )
        for i, (system, ci95) in enumerate(zip(report.systems, intervals, strict=True))
    ]
    note = "95 % intervals" if any(intervals) else ""
    note += ("; " if note else "") + "small: single seeds" if several else ""
    ticks = [one.name for one in report.systems]
    axis = metric.label + metric.direction
    return Chart("", axis, series, ticks, joined=False, note=note, digits=metric.digits)


def differences(report: ScoreReport, metric: MetricInfo) -> Chart:
    """The difference of each other system from the first, with 95 % interval and stars.

    If the intervals of two scores overlap, this says little: the interval of their difference is
    narrower, since both systems have the same test set.
    """
    others = report.systems[1:]
    n = len(others)
    paired = [one.paired[metric.name] for one in others]
    series = [
        Series(
            system.name,
            range(n),
            _only(i, n, result.delta),
            _only(i, n, result.ci95[0]),
            _only(i, n, result.ci95[1]),
        )
        for i, (system, result) in enumerate(zip(others, paired, strict=True))
    ]
    ticks = [one.name for one in others]
    p = "corrected p" if report.corrected else "p"
    note = f"95 % intervals; * {p} < 0.05, ** < 0.01"
    made = Chart("", _difference(report, metric), series, ticks, joined=False, zero=True)
    return replace(made, note=note, digits=metric.digits, stars=[one.mark() for one in paired])


def _difference(report: ScoreReport, metric: MetricInfo) -> str:
    """The label of an axis with differences from the first system."""
    first = shown_ends([one.name for one in report.systems], AT_AXIS)[0]
    return f"{metric.label} - {first}'s{metric.direction}"


def _only(i: int, n: int, value: float | None) -> list[float | None]:
    """n values: `value` at index i, and None elsewhere."""
    return [value if at == i else None for at in range(n)]


def buckets(report: ScoreReport, metric: MetricInfo, by: str) -> list[Chart]:
    """The scores in each bucket, and the differences from the first system with intervals."""
    of_division = [bucket for bucket in report.buckets if bucket.by == by]
    ticks = [f"{bucket.name}\nn={bucket.n:,}" for bucket in of_division]
    lines = [
        Series(
            system.name,
            range(len(of_division)),
            [bucket.scores[i][metric.name] for bucket in of_division],
        )
        for i, system in enumerate(report.systems)
    ]
    ranges = [bucket.low is not None for bucket in of_division]
    n_apart = len(ranges) - sum(ranges) if any(ranges) else 0  # at the end: without a tree
    axis = metric.label + metric.direction
    made = [Chart(by, axis, lines, ticks, any(ranges), n_apart=n_apart, digits=metric.digits)]
    if len(report.systems) > 1:
        title, deltas = _difference(report, metric), [*_deltas(report, metric, of_division)]
        chart = replace(made[0], y_label=title, series=deltas, joined=False, zero=True)
        made.append(replace(chart, note="95 % intervals" if chart.n_intervals else ""))
    return made


def _deltas(
    report: ScoreReport, metric: MetricInfo, buckets: Sequence[ScoredBucket]
) -> Iterator[Series]:
    """The difference of each system from the first; without interval in buckets not tested."""
    n = len(report.systems)
    for i, system in enumerate(report.systems):
        if i == 0:
            yield Series(system.name, (), ())  # keeps the looks of systems the same in all charts
            continue
        paired = [bucket.comparison(i, metric.name) for bucket in buckets]
        aside = min(0.2, 0.8 / (n - 1)) * (i - n / 2)  # intervals stand next to one another
        yield Series(
            system.name,
            [at + aside for at in range(len(buckets))],
            [bucket.delta(i, metric.name) for bucket in buckets],
            [one.ci95[0] if one else None for one in paired],
            [one.ci95[1] if one else None for one in paired],
        )
