"""What `synmt score` reports: scores, comparisons with the baseline, scores by length."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from synmt_cli.formats.reports.table import ALL, Cell, Notes, Record, Row, Table

TESTS = {
    "bs": "paired bootstrap",
    "ar": "paired approximate randomization",
    "sign": "sign test over sentences",
}
COMPARISON = ("delta", "ci95_low", "ci95_high", "p", "test", "definition", "n", "seed")
MARKS = 3  # characters for the marks of a score: ^ and stars


def stars(p: float) -> str:
    """The marks of significance."""
    return "**" if p < 0.01 else "*" if p < 0.05 else ""


def shown_p(p: float, after: str = "", room: int = 0) -> Cell:
    """A p value with four digits."""
    return Cell("<0.0001", "", after, room) if p < 0.00005 else Cell(p, ".4f", after, room)


@dataclass(frozen=True, slots=True)
class PairedComparison:
    """A comparison with the baseline. delta: system - baseline. ci95: of delta, (low, high).

    n: samples drawn, or in a sign test the sentences that were not ties.
    """

    test: str
    definition: str
    n: int
    seed: int
    delta: float
    ci95: tuple[float, float]
    p: float

    def mark(self) -> str:
        """Stars for significance. No difference is never significant, whatever p says."""
        return stars(self.p) if self.delta else ""

    def record(self) -> Record:
        """The columns of COMPARISON."""
        facts = (self.test, self.definition, self.n, self.seed)
        values = (self.delta, *self.ci95, self.p, *facts)
        return dict(zip(COMPARISON, values, strict=True))


@dataclass(frozen=True, slots=True)
class MetricInfo:
    """A metric as reports name it. digits: how many are printed after the point."""

    name: str
    label: str
    signature: str
    higher_is_better: bool
    digits: int

    def cell(self, score: float | None, after: str = "", room: int = 0) -> Cell:
        """A score."""
        return Cell(score, f".{self.digits}f", after, room)

    def difference(self, delta: float) -> str:
        """A difference of scores, with its sign."""
        return f"{delta:+.{self.digits}f}"


@dataclass(frozen=True, slots=True)
class ScoredSystem:
    """One system: its score by metric name and, except for the baseline, its comparisons."""

    name: str
    scores: dict[str, float]
    paired: dict[str, PairedComparison] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ScoredBucket:
    """The scores by metric name of each system, in the order of systems, or None where n is 0.

    low, high: the least and the greatest length; high is None where there is no limit.
    """

    name: str
    low: int
    high: int | None
    n: int
    scores: Sequence[Mapping[str, float | None]]

    def delta(self, system: int, metric: str) -> float | None:
        """That system's score - the first system's, or None where n is 0."""
        score, baseline = self.scores[system][metric], self.scores[0][metric]
        return None if score is None or baseline is None else score - baseline


@dataclass(frozen=True, slots=True)
class ScoreReport:
    """The results of one run. formula: how p was computed; interval_n: samples behind ci95."""

    n: int
    references: list[str]
    metrics: Sequence[MetricInfo]
    systems: list[ScoredSystem]
    buckets: list[ScoredBucket] = field(default_factory=list)
    formula: str = ""
    interval_n: int = 0

    def sections(self) -> Iterator[Table | Notes]:
        """Scores, comparisons, buckets, then what the marks mean."""
        yield self._scores()
        if any(system.paired for system in self.systems):
            yield self._comparisons()
        if self.buckets:
            yield from map(self._bucket_scores, self.metrics)
        yield [*self._legend()]

    def _scores(self) -> Table:
        room = MARKS if len(self.systems) > 1 else 0
        rows: list[list[Cell]] = [[Cell(system.name)] for system in self.systems]
        for metric in self.metrics:
            scores = [system.scores[metric.name] for system in self.systems]
            best = max(scores) if metric.higher_is_better else min(scores)
            for row, system, score in zip(rows, self.systems, scores, strict=True):
                paired = system.paired.get(metric.name)
                marks = "^" * (room > 0 and score == best) + (paired.mark() if paired else "")
                row.append(metric.cell(score, marks, room))
        labels = [Cell(metric.label, room=room) for metric in self.metrics]
        title = f"{self.n:,} sentences against {', '.join(self.references)}"
        return Table(["system", *labels], rows, title=title)

    def _comparisons(self) -> Table:
        rows: list[Row] = []
        for system in self.systems[1:]:
            for metric in self.metrics:
                paired = system.paired[metric.name]
                low, high = map(metric.difference, paired.ci95)
                shown = (metric.difference(paired.delta), f"[{low}, {high}]", shown_p(paired.p))
                facts = (paired.definition, Cell(paired.n, ","), paired.seed)
                rows.append([system.name, metric.label, *shown, *facts])
        header = ["system", "metric", "delta", "95 % interval", "p", "definition", "n", "seed"]
        title = f"{TESTS[paired.test]} against {self.systems[0].name}"
        return Table(header, rows, left=2, title=title[0].upper() + title[1:])

    def _bucket_scores(self, metric: MetricInfo) -> Table:
        rows = []
        for bucket in self.buckets:
            row = [Cell(bucket.name), Cell(bucket.n, ",")]
            for i in range(len(self.systems)):
                delta = bucket.delta(i, metric.name)
                change = "" if i == 0 or delta is None else f" ({metric.difference(delta)})"
                row.append(metric.cell(bucket.scores[i][metric.name], change))
            rows.append(row)
        header = ["words", "n", *(system.name for system in self.systems)]
        return Table(header, rows, title=f"{metric.label} by source length")

    def _legend(self) -> Iterator[str]:
        baseline = self.systems[0].name
        if len(self.systems) > 1:
            yield "^ the best score"
        for one in [one for system in self.systems for one in system.paired.values()][:1]:
            yield f"* p < 0.05, ** p < 0.01 against {baseline}: {TESTS[one.test]}"
            yield f"p, {one.definition}: {self.formula}"
            yield (
                f"95 % interval of delta = system - {baseline}: percentile bootstrap, "
                f"{self.interval_n:,} samples, seed {one.seed}"
            )
        for metric in self.metrics:
            better = "" if metric.higher_is_better else " (lower is better)"
            yield f"{metric.label}|{metric.signature}{better}"

    def records(self) -> Iterator[Record]:
        """One for each bucket, system and metric; bucket `all` is the whole."""
        whole = ScoredBucket(ALL, 0, None, self.n, [system.scores for system in self.systems])
        for bucket in (whole, *self.buckets):
            for i, system in enumerate(self.systems):
                for metric in self.metrics:
                    comparison: Record = dict.fromkeys(COMPARISON, "")
                    if bucket is not whole and i:
                        comparison["delta"] = bucket.delta(i, metric.name)
                    elif metric.name in system.paired:
                        comparison = system.paired[metric.name].record()
                    yield {
                        "bucket": bucket.name,
                        "sentences": bucket.n,
                        "system": system.name,
                        "metric": metric.name,
                        "score": bucket.scores[i][metric.name],
                        **comparison,
                        "signature": metric.signature,
                    }

    def document(self) -> dict[str, object]:
        """`paired` of the baseline is empty, the score of an empty bucket null."""
        signatures = {metric.name: metric.signature for metric in self.metrics}
        systems = [
            {
                "name": one.name,
                "scores": {
                    name: {"score": score, "signature": signatures[name]}
                    for name, score in one.scores.items()
                },
                "paired": one.paired,
            }
            for one in self.systems
        ]
        buckets = [self._bucket_document(bucket) for bucket in self.buckets]
        head = {"n": self.n, "references": self.references}
        return {**head, "systems": systems, "buckets": buckets}

    def _bucket_document(self, bucket: ScoredBucket) -> dict[str, object]:
        systems = []
        for i, (system, scores) in enumerate(zip(self.systems, bucket.scores, strict=True)):
            figures = {
                name: {"score": score, "delta": bucket.delta(i, name)}
                for name, score in scores.items()
            }
            systems.append({"name": system.name, "scores": figures})
        limits = {"low": bucket.low, "high": bucket.high}
        return {"name": bucket.name, **limits, "n": bucket.n, "systems": systems}
