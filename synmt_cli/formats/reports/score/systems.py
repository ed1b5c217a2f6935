"""Systems as `synmt score` reports them, and the results of tests that compare two of them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import stdev
from typing import Any

from synmt_cli.formats.reports.table import Cell, Record, Value

TESTS = {
    "bs": "paired bootstrap",
    "ar": "paired approximate randomization",
    "sign": "sign test over sentences",
}
SIDES = ("wins", "losses", "ties")
COMPARISON = (
    *("delta", "ci95_low", "ci95_high", "p", "test", "definition", "n", "seed"),
    *("p_corrected", *SIDES),
)
EQUAL_VARIANCE = "equal-variance"  # the definition of p where one of two systems has one output
OVER_SEEDS = ("seeds", "matched", EQUAL_VARIANCE)  # definitions by which p comes from a t test
OF_T = "t test over seeds and sentences"
SAMPLED = ("centred", "sacrebleu", "two-sided", "stratified")  # by these p is at least 1 / (n + 1)
MOST_DIGITS = 30  # after the point, in a report that is read
Interval = tuple[float, float]
Parts = Mapping[str, Any]  # what a score is made of: numbers, or lists with one for each order


def stars(p: float) -> str:
    """The marks of significance."""
    return "**" if p < 0.01 else "*" if p < 0.05 else ""


def shown_p(p: float | None, after: str = "", room: int = 0) -> Cell:
    """A p value with four digits."""
    if p is not None and p < 0.00005:
        return Cell("<0.0001", "", after, room)
    return Cell(p, ".4f", after, room)


@dataclass(frozen=True, slots=True)
class PairedComparison:
    """A comparison with a baseline. delta: system - baseline. ci95: (low, high) of delta.

    n: samples drawn, or in a sign test the sentences that were not ties. p: as the test gives
    it. corrected: p corrected for all comparisons of the report; None if there is only one or
    nothing is corrected. counts: wins, losses and ties of a sign test. contradicts: whether the
    test and delta disagree on which system is better.
    """

    test: str
    definition: str
    n: int
    seed: int
    delta: float
    ci95: Interval
    p: float
    corrected: float | None = None
    counts: tuple[int, int, int] | None = None
    contradicts: bool = False

    @property
    def method(self) -> str:
        """The name that readers know the test by."""
        return OF_T if self.definition in OVER_SEEDS else TESTS[self.test]

    @property
    def decisive(self) -> float:
        """The p that stars follow: the corrected one, if there is one."""
        return self.p if self.corrected is None else self.corrected

    def mark(self) -> str:
        """Stars for a difference that the test confirms. A difference of 0 never has any."""
        return stars(self.decisive) if self.delta and not self.contradicts else ""

    def least(self, families: Mapping[str, int]) -> str:
        """The least p that its samples can show, or "" where that is small enough for stars.

        families: a name for readers -> how many comparisons are corrected together; empty if p is
        not corrected.
        """
        if self.definition not in SAMPLED:
            return ""
        p = 1 / (self.n + 1)
        if not families:
            return f"{p:.2g}" if p >= 0.01 else ""
        least = [f"{min(n * p, 1):.2g}{name}" for name, n in families.items() if n * p >= 0.01]
        return f"{p:.2g}, p (Holm) {' and '.join(least)}" if least else ""

    def record(self) -> Record:
        """The columns of COMPARISON that apply."""
        facts = (self.test, self.definition, self.n, self.seed)
        corrected = () if self.corrected is None else (self.corrected,)
        first = zip(COMPARISON, (self.delta, *self.ci95, self.p, *facts, *corrected), strict=False)
        return {**dict(first), **dict(zip(SIDES, self.counts or (), strict=False))}

    def document(self) -> dict[str, object]:
        """p_corrected is null where p is not corrected."""
        facts = {"test": self.test, "definition": self.definition, "n": self.n, "seed": self.seed}
        values = {"delta": self.delta, "ci95": self.ci95, "p": self.p}
        counts = dict(zip(SIDES, self.counts, strict=True)) if self.counts else {}
        verdict = {"p_corrected": self.corrected, "contradicts_delta": self.contradicts}
        return {**facts, **values, **verdict, **counts}


@dataclass(frozen=True, slots=True)
class MetricInfo:
    """A metric as reports name it. digits: how many are printed after the point."""

    name: str
    label: str
    signature: str
    higher_is_better: bool
    digits: int

    @property
    def direction(self) -> str:
        """What follows its name where readers may take higher scores for better ones."""
        return "" if self.higher_is_better else " (lower is better)"

    def cell(self, score: float | None, after: str = "", room: int = 0) -> Cell:
        """A score."""
        return Cell(score, f".{self.digits}f", after, room)

    def difference(self, delta: float) -> str:
        """A difference of scores, with its sign."""
        return f"{delta:+.{self.digits}f}"

    def interval(self, ci95: Interval, sign: str = "") -> str:
        """An interval of scores, or, with the sign `+`, of differences."""
        return f"[{ci95[0]:{sign}.{self.digits}f}, {ci95[1]:{sign}.{self.digits}f}]"

    def document(self) -> dict[str, Value | bool]:
        """The fields."""
        better = {"higher_is_better": self.higher_is_better, "digits": self.digits}
        return {"name": self.name, "label": self.label, "signature": self.signature, **better}


@dataclass(frozen=True, slots=True)
class ScoredSystem:
    """One system: its score by metric name and, except for the baseline, its comparisons.

    scores: with several seeds their mean. files: one for each seed. seeds: the score of each.
    intervals: those of its own scores; none for a single output among systems with several. parts:
    what the score of each seed is made of.
    """

    name: str
    scores: dict[str, float]
    paired: dict[str, PairedComparison] = field(default_factory=dict)
    files: list[str] = field(default_factory=list)
    seeds: dict[str, list[float]] = field(default_factory=dict)
    intervals: dict[str, Interval] = field(default_factory=dict)
    parts: dict[str, list[Parts]] = field(default_factory=dict)

    def deviation(self, metric: str) -> float | None:
        """The standard deviation of the seeds' scores; None for one seed."""
        seeds = self.seeds.get(metric, ())
        return stdev(seeds) if len(seeds) > 1 else None

    def figures(self, metric: MetricInfo) -> dict[str, object]:
        """Every figure of one metric."""
        name = metric.name
        return {
            "score": self.scores[name],
            "signature": metric.signature,
            "sd": self.deviation(name),
            "ci95": self.intervals.get(name),
            "seeds": self.seeds.get(name, [self.scores[name]]),
            "parts": self.parts.get(name, []),
        }
