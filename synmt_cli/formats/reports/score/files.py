"""Reports of `synmt score --format json`, read back. docs/score-json.md describes the fields.

A report that is read equals the one that was written, so that its tables can be made again and its
figures drawn. Fields that are not known are left alone.
"""

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from typing import Any, TypeVar

from synmt_cli.errors import DataError, quoted
from synmt_cli.formats.reports import documents
from synmt_cli.formats.reports.score.scores import (
    ComparedPair,
    ScoredBucket,
    ScoreReport,
    Settings,
    flat,
)
from synmt_cli.formats.reports.score.systems import (
    MOST_DIGITS,
    SIDES,
    TESTS,
    Interval,
    MetricInfo,
    PairedComparison,
    Parts,
    ScoredSystem,
)

COMMAND = "score"
WHOLE = 2**63  # the greatest whole number
T = TypeVar("T")


def read(path: str) -> ScoreReport:
    """The report in a file, `-` for stdin. Raises DataError, ReadError."""
    return parsed(*documents.load(path, COMMAND))


def parsed(document: Any, source: str) -> ScoreReport:
    """The report in a JSON value. source: for messages. Raises DataError."""
    return _report(_Object(document, source, "the report"))


def foreign(source: str, problem: str) -> DataError:
    """The error for a file that the command did not write, or that is not complete."""
    return documents.foreign(source, COMMAND, problem)


@dataclass(frozen=True, slots=True)
class _Object:
    """An object of a report. where: how a message names it."""

    value: Any
    source: str
    where: str

    def __post_init__(self) -> None:
        if not isinstance(self.value, dict):
            raise foreign(self.source, f"{self.where} is not an object")

    def get(self, name: str, kind: type[T]) -> T:
        """A field of this type; a boolean is not a number, and numbers are within LARGEST."""
        value = self.value.get(name)
        fits = isinstance(value, kind) or (kind is float and isinstance(value, int))
        if not fits or (isinstance(value, bool) and kind is not bool):
            raise foreign(self.source, f"{self.where} has no {name}")
        if kind is float and not abs(value) <= documents.LARGEST:
            problem = f"{name} of {self.where} is not within {documents.LARGEST:g}"
            raise foreign(self.source, problem)
        return kind(value) if kind is float else value  # type: ignore[call-arg]

    def maybe(self, name: str, read: Callable[[str], T]) -> T | None:
        """A field as `read` returns it, None if it is null or absent."""
        return None if self.value.get(name) is None else read(name)

    def number(self, name: str) -> float:
        return self.get(name, float)

    def whole(self, name: str, most: int = WHOLE) -> int:
        """A whole number from 0 to `most`: a number of things, or a seed."""
        value = self.get(name, int)
        if not 0 <= value <= most:
            raise foreign(self.source, f"{name} of {self.where} is not from 0 to {most:,}")
        return value

    def text(self, name: str) -> str:
        return self.get(name, str)

    def texts(self, name: str) -> list[str]:
        values = self.get(name, list)
        if not all(isinstance(value, str) for value in values):
            raise foreign(self.source, f"{name} of {self.where} are not texts")
        return values

    def numbers(self, name: str) -> list[float]:
        values = self.get(name, list)
        return [_Object({name: one}, self.source, self.where).number(name) for one in values]

    def interval(self, name: str) -> Interval:
        bounds = self.numbers(name)
        if len(bounds) != 2:
            raise foreign(self.source, f"{name} of {self.where} is not two numbers")
        return bounds[0], bounds[1]

    def object(self, name: str) -> "_Object":
        return _Object(self.value.get(name), self.source, f"{name} of {self.where}")

    def objects(self, name: str) -> list["_Object"]:
        values = self.get(name, list)
        return [_Object(one, self.source, f"an item of {name}") for one in values]

    def named(self, name: str) -> dict[str, "_Object"]:
        """The objects that an object holds by name."""
        values = self.object(name).value
        return {key: _Object(one, self.source, f"{quoted(key)}") for key, one in values.items()}


def _report(one: _Object) -> ScoreReport:
    systems = [_system(system) for system in one.objects("systems")]
    if not systems:
        raise foreign(one.source, "no systems")
    metrics = [_metric(metric) for metric in one.objects("metrics")]
    names = {metric.name for metric in metrics}
    buckets = [_bucket(bucket, len(systems)) for bucket in one.objects("buckets")]
    scores = [*(system.scores for system in systems), *(s for b in buckets for s in b.scores)]
    if any(of_one.keys() != names for of_one in scores):
        raise foreign(one.source, f"a system has no score of one of {', '.join(sorted(names))}")
    clusters = one.object("clusters")
    report = ScoreReport(
        n=one.whole("n"),
        references=one.texts("references"),
        metrics=metrics,
        systems=systems,
        buckets=buckets,
        formula=one.text("formula"),
        interval_n=one.whole("interval_n"),
        settings=_settings(one.object("settings")),
        pairs=[_pair(pair) for pair in one.objects("pairs")],
        clusters={name: _groups(clusters, name) for name in clusters.value},
    )
    if problem := _contradiction(report, names, {system.name for system in systems}):
        raise foreign(one.source, problem)
    return report


def _contradiction(report: ScoreReport, metrics: Set[str], systems: Set[str]) -> str:
    """How the parts of a report, each of which is well formed, contradict each other; or ""."""
    others = report.systems[1:]
    results = [one for system in others for one in system.paired.values()]
    results += [pair.result for pair in report.pairs]
    tests = {(one.test, one.counts is None) for one in results}
    clusters = [name for groups in report.clusters.values() for group in groups for name in group]
    holds = {
        "the first system is compared with itself": not report.systems[0].paired,
        "comparisons by several tests, or by one that is not known": len(tests) < 2
        and {test for test, _ in tests} <= TESTS.keys(),
        "comparisons by some of the metrics, or of some of the systems": _all_or_none(
            [system.paired.keys() for system in others], metrics
        ),
        "intervals of some of the scores": _has_intervals(report, metrics),
        "a system has no score of a seed": all(
            of_metric for system in report.systems for of_metric in system.seeds.values()
        ),
        "a score of a seed is made of other parts than that of another": all(
            _has_same_parts(report, metric) for metric in metrics
        ),
        "a pair of other systems, or by another metric": all(
            pair.metric in metrics and {pair.baseline, pair.system} <= systems
            for pair in report.pairs
        ),
        "clusters of other systems, or by other metrics": _all_or_none(
            [report.clusters.keys()], metrics
        )
        and systems >= {*clusters},
    }
    return next((problem for problem, held in holds.items() if not held), "")


def _all_or_none(given: Sequence[Set[str]], names: Set[str]) -> bool:
    """Whether each has all names, or none has any."""
    return all(one == names for one in given) or not any(given)


def _has_intervals(report: ScoreReport, metrics: Set[str]) -> bool:
    """Whether all scores have intervals, or none has. Single outputs among several have none."""
    given: dict[bool, list[Set[str]]] = {False: [], True: []}
    for one in report.systems:
        given[report.several and len(one.files) == 1].append(one.intervals.keys())
    return _all_or_none(given[False], metrics) and not any(given[True])


def _has_same_parts(report: ScoreReport, metric: str) -> bool:
    """Whether the scores of all seeds and systems have parts with the same names, or no parts."""
    each = [flat(parts) for one in report.systems for parts in one.parts.get(metric, [])]
    return all(parts.keys() == each[0].keys() for parts in each)


def _groups(one: _Object, metric: str) -> list[list[str]]:
    """The clusters by one metric."""
    groups = one.get(metric, list)
    return [_Object({metric: group}, one.source, one.where).texts(metric) for group in groups]


def _metric(one: _Object) -> MetricInfo:
    texts = (one.text("name"), one.text("label"), one.text("signature"))
    return MetricInfo(*texts, one.get("higher_is_better", bool), one.whole("digits", MOST_DIGITS))


def _settings(one: _Object) -> Settings:
    return Settings(
        correction=one.text("correction"),
        n_comparisons=one.whole("n_comparisons"),
        n_bucket_comparisons=one.whole("n_bucket_comparisons"),
        interval=one.text("interval"),
        smallest=one.whole("smallest"),
        options=one.object("options").value,
        versions=one.object("versions").value,
        command=one.texts("command") if "command" in one.value else [],
    )


def _system(one: _Object) -> ScoredSystem:
    figures = one.named("scores")
    intervals = {name: of.maybe("ci95", of.interval) for name, of in figures.items()}
    parts = {name: [*map(_parts, of.objects("parts"))] for name, of in figures.items()}
    return ScoredSystem(
        one.text("name"),
        {name: of.number("score") for name, of in figures.items()},
        paired={name: _paired(of) for name, of in one.named("paired").items()},
        files=one.texts("files"),
        seeds={name: of.numbers("seeds") for name, of in figures.items()},
        intervals={name: ci95 for name, ci95 in intervals.items() if ci95 is not None},
        parts={name: of for name, of in parts.items() if of},
    )


def _parts(one: _Object) -> Parts:
    """Numbers, or lists of them, by name: whole ones stay whole."""
    for name, value in one.value.items():
        one.numbers(name) if isinstance(value, list) else one.number(name)
    parts: Parts = one.value
    return parts


def _bucket(one: _Object, n_systems: int) -> ScoredBucket:
    systems = one.objects("systems")
    if len(systems) != n_systems:
        raise foreign(one.source, "a bucket has other systems than the report")
    scores = [
        {name: of.maybe("score", of.number) for name, of in system.named("scores").items()}
        for system in systems
    ]
    paired = [
        {
            name: _paired(of.object("paired"))
            for name, of in system.named("scores").items()
            if "paired" in of.value
        }
        for system in systems
    ]
    limits = one.maybe("low", one.whole), one.maybe("high", one.whole)
    name, by = one.text("name"), one.text("by")
    return ScoredBucket(name, *limits, one.whole("n"), scores, by, paired if any(paired) else [])


def _pair(one: _Object) -> ComparedPair:
    names = (one.text("metric"), one.text("baseline"), one.text("system"))
    return ComparedPair(*names, _paired(one))


def _paired(one: _Object) -> PairedComparison:
    counts = [one.whole(side) for side in SIDES] if "wins" in one.value else None
    return PairedComparison(
        one.text("test"),
        one.text("definition"),
        one.whole("n"),
        one.whole("seed"),
        one.number("delta"),
        one.interval("ci95"),
        one.number("p"),
        corrected=one.maybe("p_corrected", one.number),
        counts=(counts[0], counts[1], counts[2]) if counts else None,
        contradicts=one.get("contradicts_delta", bool),
    )
