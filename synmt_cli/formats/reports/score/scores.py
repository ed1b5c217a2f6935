"""The report of `synmt score`: systems x seeds x metrics x buckets, with their comparisons.

files.py gives back the report that `--format json` wrote: docs/score-json.md describes its fields.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import mean
from typing import Any

from synmt_cli.errors import counted
from synmt_cli.formats.reports.score.systems import (
    COMPARISON,
    EQUAL_VARIANCE,
    SIDES,
    MetricInfo,
    PairedComparison,
    Parts,
    ScoredSystem,
    shown_p,
)
from synmt_cli.formats.reports.score.verdicts import sentences
from synmt_cli.formats.reports.table import ALL, BEST, Cell, Notes, Record, Row, Table, Value
from synmt_cli.io import reading

KNOWN_BY = frozenset({"n", "references", "systems"})  # fields, for `synmt info`
MARKS = 3  # characters for the marks of a score: ^ and stars
ASSUMED = (
    f"{EQUAL_VARIANCE}: the system with one output is assumed to vary over seeds as much as the "
    "other, which one output cannot show"
)
HOLM, UNCORRECTED = "holm", "none"
LEAST = "p is at least {}: more --samples can show less"
# Shares of p < 0.05 where systems do not differ (benchmarks/RESULTS.md).
FALSE_ALARMS = (
    "at 0.05 this p calls 6 % of equal systems different, 27-44 % where training runs vary much",
    "sacreBLEU's own definition (--p sacrebleu) would give another p: 12 %, and then 34-55 %",
)


@dataclass(frozen=True, slots=True)
class ScoredBucket:
    """A bucket. scores: each system's by metric name, in the order of systems; None if n is 0.

    low, high: the least and the greatest length, depth or distance; high is None if there is no
    limit, and both are None if the bucket is not a range. by: what the segments were divided by.
    paired: each system's comparisons with the first, by metric name; empty for the first, without
    a test, and if there are too few segments.
    """

    name: str
    low: int | None
    high: int | None
    n: int
    scores: Sequence[Mapping[str, float | None]]
    by: str = "length"
    paired: Sequence[Mapping[str, PairedComparison]] = ()

    def delta(self, system: int, metric: str) -> float | None:
        """The system's score - the first system's, or None if n is 0."""
        score, baseline = self.scores[system][metric], self.scores[0][metric]
        return None if score is None or baseline is None else score - baseline

    def comparison(self, system: int, metric: str) -> PairedComparison | None:
        """The comparison of the system with the first, if there is one."""
        return self.paired[system].get(metric) if self.paired else None

    def document(self, systems: Sequence[ScoredSystem]) -> dict[str, object]:
        """The figures of every system."""
        figures = []
        for i, (system, scores) in enumerate(zip(systems, self.scores, strict=True)):
            of_metrics = {
                name: {"score": score, "delta": self.delta(i, name)}
                | ({"paired": paired} if (paired := self.comparison(i, name)) else {})
                for name, score in scores.items()
            }
            figures.append({"name": system.name, "scores": of_metrics})
        limits = {"low": self.low, "high": self.high}
        return {"by": self.by, "name": self.name, **limits, "n": self.n, "systems": figures}


@dataclass(frozen=True, slots=True)
class ComparedPair:
    """One of all pairs of systems, by name, compared by one metric."""

    metric: str
    baseline: str
    system: str
    result: PairedComparison

    def document(self) -> dict[str, object]:
        """The names before the figures."""
        names = {"metric": self.metric, "baseline": self.baseline, "system": self.system}
        return {**names, **self.result.document()}


@dataclass(frozen=True, slots=True)
class Settings:
    """How a report was made. correction: HOLM or UNCORRECTED. n_comparisons: how many p values the
    whole test set has; n_bucket_comparisons: how many the buckets have. interval: how ci95 is
    made. smallest: buckets of fewer segments are not tested, nor is a bucket of all segments.
    options: settings of metrics. versions: those of programs. command: the words that were typed;
    none in reports of early versions.
    """

    correction: str = UNCORRECTED
    n_comparisons: int = 0
    n_bucket_comparisons: int = 0
    interval: str = "percentile bootstrap"
    smallest: int = 0
    options: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    command: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ScoreReport:
    """The results of one run. formula: how p was computed. interval_n: how many samples give ci95.

    pairs: every pair of systems, with --all-pairs. clusters: the systems in groups, best first, by
    metric name, with --all-pairs. detailed: whether tables show what scores are made of.
    """

    n: int
    references: list[str]
    metrics: Sequence[MetricInfo]
    systems: list[ScoredSystem]
    buckets: list[ScoredBucket] = field(default_factory=list)
    formula: str = ""
    interval_n: int = 0
    settings: Settings = field(default_factory=Settings)
    pairs: list[ComparedPair] = field(default_factory=list)
    clusters: dict[str, list[list[str]]] = field(default_factory=dict)
    detailed: bool = field(default=False, compare=False)

    @property
    def several(self) -> bool:
        """Whether a system has several seeds."""
        return max((len(one.files) for one in self.systems), default=1) > 1

    @property
    def n_seeds(self) -> str:
        """How many outputs systems have, `3`, or `1 to 5` where their numbers differ."""
        numbers = {len(one.files) for one in self.systems}
        fewest, most = min(numbers, default=1), max(numbers, default=1)
        return str(most) if fewest == most else f"{fewest} to {most}"

    @property
    def corrected(self) -> bool:
        """Whether p is corrected for the number of comparisons."""
        return self.settings.correction == HOLM

    @property
    def divisions(self) -> list[str]:
        """The SPEC of each --by."""
        return list(dict.fromkeys(bucket.by for bucket in self.buckets))

    def buckets_of(self, by: str) -> list[ScoredBucket]:
        """The buckets of a division that have segments."""
        return [bucket for bucket in self.buckets if bucket.by == by and bucket.n]

    @property
    def correction(self) -> str:
        """A note: how many comparisons p is corrected for, or that it is not; "" for only one."""
        n = self.settings.n_comparisons + self.settings.n_bucket_comparisons
        if self.corrected:
            return f"p (Holm): corrected for {self.families} (Holm 1979)"
        if n > 1:
            return f"p is not corrected: of {n:,} comparisons some may have stars by chance"
        return ""

    @property
    def families(self) -> str:
        """The number of comparisons that p is corrected for, in words."""
        n, in_buckets = self.settings.n_comparisons, self.settings.n_bucket_comparisons
        whole = f"{counted(n, 'comparison')} of the whole test set"
        return f"{whole}; in buckets separately, for {in_buckets:,}" if in_buckets else whole

    @property
    def verdicts(self) -> list[str]:
        """The outcome of the comparisons with the first system, in words; none without a test."""
        n_corrected = self.settings.n_comparisons if self.corrected else 0
        return sentences(self.metrics, self.systems, n_corrected)

    @property
    def _results(self) -> list[PairedComparison]:
        """The comparisons of the whole test set, all by one test."""
        return [one for system in self.systems for one in system.paired.values()]

    @property
    def least(self) -> str:
        """The least p that the samples can show, if it is too large for stars; otherwise ""."""
        if not self._results:
            return ""
        n, in_buckets = self.settings.n_comparisons, self.settings.n_bucket_comparisons
        families = {"": n, " in buckets": in_buckets} if self.corrected else {}
        return self._results[0].least(families)

    def sections(self) -> Iterator[Table | Notes]:
        """Scores, comparisons, buckets, what the marks mean, then the answer in words."""
        yield self._scores()
        if any(system.intervals for system in self.systems):
            yield self._alone()
        if self.detailed:
            yield from self._parts()
        if any(system.paired for system in self.systems):
            yield self._comparisons()
        if self.clusters:
            yield from map(self._cluster_table, self.metrics)
        for by in self.divisions:
            yield from (self._bucket_table(metric, by) for metric in self.metrics)
        yield [*self._legend()]
        if verdicts := self.verdicts:
            yield [f"In words, against {self.systems[0].name}:", *verdicts]

    def _scores(self) -> Table:
        room = MARKS if len(self.systems) > 1 else 0
        rows: list[list[Cell]] = [[Cell(system.name)] for system in self.systems]
        for metric in self.metrics:
            scores = [system.scores[metric.name] for system in self.systems]
            best = max(scores) if metric.higher_is_better else min(scores)
            for row, system, score in zip(rows, self.systems, scores, strict=True):
                paired = system.paired.get(metric.name)
                marks = BEST * (room > 0 and score == best) + (paired.mark() if paired else "")
                row.append(metric.cell(score, marks, room))
        labels = [Cell(metric.label, room=room) for metric in self.metrics]
        seeds = f", means of {self.n_seeds} seeds" if self.several else ""
        references = [*map(reading.source_name, self.references)]
        against = f" against {', '.join(references)}" if references else ""
        title = f"{counted(self.n, 'sentence')}{against}{seeds}"
        return Table(["system", *labels], rows, title=title)

    def _alone(self) -> Table:
        """The interval of each score; with several seeds also their deviation and their scores."""
        rows: list[Row] = []
        for system in self.systems:
            for metric in self.metrics:
                spread: list[Cell] = []
                if self.several:
                    each = " ".join(metric.cell(one).text for one in system.seeds[metric.name])
                    spread = [metric.cell(system.deviation(metric.name)), Cell(each)]
                score = metric.cell(system.scores[metric.name])
                ci95 = system.intervals.get(metric.name)
                interval = metric.interval(ci95) if ci95 else Cell(None)
                rows.append([system.name, metric.label, score, interval, *spread])
        header = ["system", "metric", "score", "95 % interval"] + ["sd", "seeds"] * self.several
        return Table(header, rows, left=2, title="Each system alone")

    def _parts(self) -> Iterator[Table]:
        """The parts of scores; with several seeds their means. A whole mean of counts is an int."""
        for metric in self.metrics:
            rows: list[Row] = []
            for system in self.systems:
                of_seeds = [flat(parts) for parts in system.parts.get(metric.name, [])]
                if of_seeds:
                    names = list(of_seeds[0])
                    values = [mean(one[name] for one in of_seeds) for name in names]
                    rows.append([system.name, *(_part_cell(value) for value in values)])
            if rows:
                yield Table(["system", *names], rows, title=f"{metric.label}: what it is made of")

    def _comparisons(self) -> Table:
        labels = {metric.name: metric for metric in self.metrics}
        first = self.systems[0].name
        pairs = self.pairs or [
            ComparedPair(metric.name, first, system.name, system.paired[metric.name])
            for system in self.systems[1:]
            for metric in self.metrics
        ]
        against = bool(self.pairs)
        counted = pairs[0].result.counts is not None
        # The notes below name a definition that all share.
        mixed = len({pair.result.definition for pair in pairs}) > 1
        rows: list[Row] = []
        for pair in pairs:
            metric, paired = labels[pair.metric], pair.result
            names: list[Cell | Value] = [pair.system, *([pair.baseline] * against), metric.label]
            interval = metric.interval(paired.ci95, "+")
            delta = metric.difference(paired.delta)
            shown: list[Cell | Value] = [delta, interval, *self._p_cells(paired)]
            counts = [Cell(n, ",") for n in paired.counts or ()]
            rows.append([*names, *shown, *counts, *([paired.definition] * mixed)])
        header: list[Value] = ["system", *(["against"] * against), "metric", "delta"]
        header += ["95 % interval", *self._p_names(), *(SIDES if counted else ())]
        header += ["definition"] * mixed
        who = "All pairs" if against else f"Differences from {first}"
        return Table(header, rows, left=2 + against, title=f"{who}: {pairs[0].result.method}")

    def _p_names(self) -> list[str]:
        return ["p", "p (Holm)"] if self.corrected else ["p"]

    def _p_cells(self, paired: PairedComparison) -> list[Cell]:
        return [shown_p(p) for p in (paired.p, paired.corrected)[: 1 + self.corrected]]

    def _cluster_table(self, metric: MetricInfo) -> Table:
        scores = {system.name: system.scores[metric.name] for system in self.systems}
        rows: list[Row] = []
        above = 0
        for group in self.clusters[metric.name]:
            ranks = f"{above + 1}-{above + len(group)}" if len(group) > 1 else str(above + 1)
            rows += [[ranks, name, metric.cell(scores[name])] for name in group]
            above += len(group)
        return Table(["rank", "system", metric.label], rows, 2, f"Clusters by {metric.label}")

    def _bucket_table(self, metric: MetricInfo, by: str) -> Table:
        buckets = self.buckets_of(by)
        title, kind = f"{metric.label} by {by}", by.partition(":")[0]
        if not any(map(any, (bucket.paired for bucket in buckets))):
            names = [system.name for system in self.systems]
            plain = [self._bucket_row(bucket, metric) for bucket in buckets]
            return Table([Cell(kind), Cell("n"), *map(Cell, names)], plain, title=title)
        tested = [row for bucket in buckets for row in self._tested_rows(bucket, metric)]
        label = Cell(metric.label, room=MARKS - 1)
        header: list[Cell | Value] = [
            by,
            "system",
            "n",
            label,
            "delta",
            "95 % interval",
            *self._p_names(),
        ]
        return Table(header, tested, left=2, title=title)

    def _bucket_row(self, bucket: ScoredBucket, metric: MetricInfo) -> Row:
        row: list[Cell] = [Cell(bucket.name), Cell(bucket.n, ",")]
        for i in range(len(self.systems)):
            delta = bucket.delta(i, metric.name)
            change = "" if i == 0 or delta is None else f" ({metric.difference(delta)})"
            row.append(metric.cell(bucket.scores[i][metric.name], change))
        return row

    def _tested_rows(self, bucket: ScoredBucket, metric: MetricInfo) -> Iterator[Row]:
        room = MARKS - 1
        for i, system in enumerate(self.systems):
            paired, delta = bucket.comparison(i, metric.name), bucket.delta(i, metric.name)
            start: list[Cell | Value] = [bucket.name, system.name, Cell(bucket.n, ",")]
            mark = paired.mark() if paired else ""
            start.append(metric.cell(bucket.scores[i][metric.name], mark, room))
            p: Sequence[Cell | Value] = (
                self._p_cells(paired) if paired else [""] * len(self._p_names())
            )
            interval = metric.interval(paired.ci95, "+") if paired else ""
            change = metric.difference(delta) if i and delta is not None else ""
            yield [*start, change, interval, *p]

    def _legend(self) -> Iterator[str]:
        baseline = self.systems[0].name
        if len(self.systems) > 1:
            yield f"{BEST} the best score"
        if self.clusters:
            yield "each system of a cluster is better than all below it, by the test"
        if self._results:
            yield from self._test_notes(baseline, self._results[0])
        elif self.interval_n:
            yield f"95 % interval: {self.settings.interval}, {counted(self.interval_n, 'sample')}"
        for by in self.divisions:
            if empty := [one.name for one in self.buckets if one.by == by and not one.n]:
                yield f"{by}: no sentences in {', '.join(empty)}"
        for metric in self.metrics:
            yield f"{metric.label}|{metric.signature}{metric.direction}"

    def _test_notes(self, baseline: str, one: PairedComparison) -> Iterator[str]:
        p = "p (Holm)" if self.corrected else "p"
        yield f"* {p} < 0.05, ** {p} < 0.01 against {baseline}: {one.method}"
        yield "a star: if the two were equal, so large a difference would be unlikely"
        if self.correction:
            yield self.correction
        results = [*self._results, *(pair.result for pair in self.pairs)]
        definitions = dict.fromkeys(result.definition for result in results)
        yield f"p, {', '.join(definitions)}: {self.formula}"
        if self.least:
            yield LEAST.format(self.least)
        if (one.test, one.definition) == ("bs", "centred"):
            yield from FALSE_ALARMS
        other = baseline
        if self.pairs:
            other = f"against, in buckets system - {baseline}" if self.buckets else "against"
        yield (
            f"95 % interval of delta = system - {other}: {self.settings.interval}, "
            f"{counted(self.interval_n, 'sample')}, seed {one.seed}"
        )
        few = [bucket for bucket in self.buckets if 0 < bucket.n < self.settings.smallest]
        if few:
            yield f"buckets of fewer than {self.settings.smallest} sentences are not tested"
        if any(bucket.n == self.n and not bucket.paired for bucket in self.buckets):
            yield "a bucket of all sentences is not tested again"

    def records(self) -> Iterator[Record]:
        """One for each bucket, system and metric; bucket `all` is the whole."""
        scores = [system.scores for system in self.systems]
        paired = [system.paired for system in self.systems]
        whole = ScoredBucket(ALL, 0, None, self.n, scores, ALL, paired)
        for bucket in (whole, *self.buckets):
            for i, system in enumerate(self.systems):
                for metric in self.metrics:
                    comparison: Record = dict.fromkeys(COMPARISON, "")
                    if result := bucket.comparison(i, metric.name):
                        comparison |= result.record()
                    elif bucket is not whole and i:
                        comparison["delta"] = bucket.delta(i, metric.name)
                    yield {
                        "bucket": bucket.name,
                        "sentences": bucket.n,
                        "system": system.name,
                        "metric": metric.name,
                        "score": bucket.scores[i][metric.name],
                        **comparison,
                        "signature": metric.signature,
                        "by": bucket.by,
                        **(self._alone_record(system, metric.name) if bucket is whole else {}),
                    }
        for pair in self.pairs:
            names: Record = {"bucket": ALL, "sentences": self.n, "system": pair.system}
            names |= {"metric": pair.metric, "by": "pairs", "baseline": pair.baseline}
            yield {**names, **pair.result.record()}

    def _alone_record(self, system: ScoredSystem, metric: str) -> Record:
        low, high = system.intervals.get(metric, ("", ""))
        deviation = system.deviation(metric)
        n = len(system.seeds.get(metric, [0]))
        spread: Record = {"score_low": low, "score_high": high, "seeds": n}
        return {**spread, "sd": "" if deviation is None else deviation}

    def document(self) -> dict[str, object]:
        """The baseline's `paired` is empty, the score of an empty bucket null."""
        systems = [
            {
                "name": one.name,
                "scores": {metric.name: one.figures(metric) for metric in self.metrics},
                "paired": one.paired,
                "files": one.files,
            }
            for one in self.systems
        ]
        return {
            "n": self.n,
            "references": self.references,
            "systems": systems,
            "buckets": [bucket.document(self.systems) for bucket in self.buckets],
            "pairs": self.pairs,
            "clusters": self.clusters,
            "metrics": [metric.document() for metric in self.metrics],
            "formula": self.formula,
            "interval_n": self.interval_n,
            "settings": self.settings,
        }


def flat(parts: Parts) -> dict[str, float]:
    """The parts as columns: a list with one number for each order becomes one column for each.

    >>> flat({"precision": [60.0, 30.0], "BP": 1.0})
    {'precision 1': 60.0, 'precision 2': 30.0, 'BP': 1.0}
    """
    columns = {}
    for name, value in parts.items():
        many = isinstance(value, Sequence)
        values = {f"{name} {i}": one for i, one in enumerate(value, 1)} if many else {name: value}
        columns.update(values)
    return columns


def _part_cell(value: float) -> Cell:
    """A whole count without digits, a small ratio with three, any other number with one."""
    if isinstance(value, int):
        return Cell(value, ",")
    return Cell(value, ".3f" if abs(value) <= 2 else ",.1f")
