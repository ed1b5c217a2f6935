"""The scores of systems, their comparisons with each other, and the same in buckets."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import sacrebleu

from synmt_cli import __version__
from synmt_cli.core.evaluation.divisions import Division
from synmt_cli.core.evaluation.metrics.registry import Metric
from synmt_cli.core.evaluation.statistics import multiplicity, seeds, significance
from synmt_cli.core.evaluation.statistics.significance import (
    Findings,
    Pair,
    SignificanceTest,
    Statistics,
    against_first,
)
from synmt_cli.core.evaluation.systems import SystemFiles
from synmt_cli.formats.reports.score.scores import (
    ASSUMED,
    HOLM,
    UNCORRECTED,
    ComparedPair,
    ScoredBucket,
    ScoreReport,
    Settings,
)
from synmt_cli.formats.reports.score.systems import EQUAL_VARIANCE, PairedComparison, ScoredSystem


@dataclass(frozen=True, slots=True)
class Questions:
    """Questions about systems. test: None for scores alone. all_pairs: whether to compare all
    pairs, and not only each system with the first. correction: HOLM or UNCORRECTED. divisions:
    buckets. For the report: options, the settings of the metrics, and command, the words of the
    command line.
    """

    test: SignificanceTest | None = None
    all_pairs: bool = False
    correction: str = HOLM
    divisions: Sequence[Division] = ()
    options: dict[str, Any] = field(default_factory=dict)
    command: Sequence[str] = ()


def evaluate(
    metrics: Sequence[Metric],
    statistics: Sequence[Statistics],
    systems: Sequence[SystemFiles],
    references: Sequence[str],
    questions: Questions,
) -> ScoreReport:
    """The report on these systems, the first as the baseline.

    statistics: for each metric. references: the names of the reference files.
    """
    test = questions.test
    n = len(statistics[0][0][0])
    n_runs = [len(one.files) for one in systems]
    pairs = (significance.all_pairs if questions.all_pairs else against_first)(len(systems))
    found = significance.compare(test, metrics, statistics, pairs) if test else None
    scored = [_scored(metrics, statistics, i, one, found) for i, one in enumerate(systems)]
    buckets = [
        bucket
        for division in questions.divisions
        for bucket in _buckets(metrics, statistics, division, test)
    ]
    table = _Comparisons(metrics, pairs, found, buckets)
    n_comparisons, n_in_buckets = table.correct(questions.correction)
    report = ScoreReport(
        n=n,
        references=list(references),
        metrics=metrics,
        systems=[replace(one, paired=table.against_first(i)) for i, one in enumerate(scored)],
        buckets=table.buckets,
        formula=table.formula(test, n_runs) if test and n_comparisons else "",
        interval_n=test.interval_n if test else 0,
        settings=Settings(
            correction=questions.correction if n_comparisons + n_in_buckets > 1 else UNCORRECTED,
            n_comparisons=n_comparisons,
            n_bucket_comparisons=n_in_buckets,
            interval=test.interval(n_runs) if test else "",
            smallest=significance.SMALLEST,
            options=questions.options,
            versions={
                "synmt": __version__,
                "sacrebleu": sacrebleu.__version__,
                "numpy": np.__version__,
            },
            command=list(questions.command),
        ),
    )
    if not (questions.all_pairs and test):
        return report
    names = [one.name for one in systems]
    ranked = {metric.name: table.clusters(m, scored) for m, metric in enumerate(metrics)}
    return replace(report, pairs=table.named(names), clusters=ranked)


def _scored(
    metrics: Sequence[Metric],
    statistics: Sequence[Statistics],
    i: int,
    files: SystemFiles,
    found: Findings | None,
) -> ScoredSystem:
    sums = [[run.sum(axis=0) for run in of_metric[i]] for of_metric in statistics]
    scores = {
        metric.name: [metric.corpus(one) for one in runs]
        for metric, runs in zip(metrics, sums, strict=True)
    }
    parts = {
        metric.name: [metric.parts(one) for one in runs]
        for metric, runs in zip(metrics, sums, strict=True)
        if metric.parts(runs[0])
    }
    alone = found.alone if found else []
    return ScoredSystem(
        files.name,
        {name: float(np.mean(of_seeds)) for name, of_seeds in scores.items()},
        files=files.files,
        seeds=scores,
        intervals={
            metric.name: interval
            for metric, intervals in zip(metrics, alone, strict=False)
            if (interval := intervals[i]) is not None
        },
        parts=parts,
    )


def _buckets(
    metrics: Sequence[Metric],
    statistics: Sequence[Statistics],
    division: Division,
    test: SignificanceTest | None,
) -> list[ScoredBucket]:
    scored = []
    n_systems = len(statistics[0])
    for b, (name, (low, high)) in enumerate(zip(division.names, division.limits, strict=True)):
        inside = np.flatnonzero(division.bucket_of == b)
        n = len(inside)
        chosen = [[[run[inside] for run in runs] for runs in systems] for systems in statistics]
        scores = [
            {
                metric.name: _mean_score(metric, systems[i]) if n else None
                for metric, systems in zip(metrics, chosen, strict=True)
            }
            for i in range(n_systems)
        ]
        paired: list[dict[str, PairedComparison]] = []
        is_part = significance.SMALLEST <= n < len(division.bucket_of)  # not the whole set again
        if test and is_part and n_systems > 1:
            found = significance.compare(test, metrics, chosen, against_first(n_systems))
            paired = [{}] + [
                {m.name: of_metric[i] for m, of_metric in zip(metrics, found.pairs, strict=True)}
                for i in range(n_systems - 1)
            ]
        scored.append(ScoredBucket(name, low, high, n, scores, division.by, paired))
    return scored


def _mean_score(metric: Metric, runs: Sequence[np.ndarray]) -> float:
    return float(np.mean([metric.corpus(run.sum(axis=0)) for run in runs]))


class _Comparisons:
    """Every comparison of a report: those of the whole test set, and those of buckets."""

    def __init__(
        self,
        metrics: Sequence[Metric],
        pairs: Sequence[Pair],
        found: Findings | None,
        buckets: list[ScoredBucket],
    ) -> None:
        self.metrics = metrics
        self.pairs = pairs
        self.found = [[*of_metric] for of_metric in found.pairs] if found else []
        self.buckets = buckets

    def correct(self, correction: str) -> tuple[int, int]:
        """Sets `corrected` everywhere, unless there is nothing to correct.

        The whole set and the buckets are two families, so that looking into buckets does not change
        the answer for the whole set. Returns how many comparisons each family has.
        """
        whole = [one for of_metric in self.found for one in of_metric]
        inside = [one for bucket in self.buckets for of in bucket.paired for one in of.values()]
        if correction == HOLM:
            of_whole, of_buckets = map(iter, multiplicity.corrected(whole, inside))
            self.found = [[next(of_whole) for _ in of_metric] for of_metric in self.found]
            self.buckets = [
                replace(
                    bucket,
                    paired=[{name: next(of_buckets) for name in of} for of in bucket.paired],
                )
                for bucket in self.buckets
            ]
        return len(whole), len(inside)

    def formula(self, test: SignificanceTest, n_runs: Sequence[int]) -> str:
        """How p is computed, in words, and what is assumed for it. n_runs: of each system."""
        definitions = {one.definition for of_metric in self.found for one in of_metric}
        said = [test.formula]
        if EQUAL_VARIANCE in definitions:
            said.append(ASSUMED)
        if any(seeds.is_of_two(test.definition, n_runs[b], n_runs[s]) for b, s in self.pairs):
            said.append(seeds.OF_TWO)
        return "; ".join(said)

    def against_first(self, system: int) -> dict[str, PairedComparison]:
        """A system's comparisons with the first, by metric name; none of the first itself."""
        if not self.found or system == 0:
            return {}
        i = self.pairs.index((0, system))
        return {
            metric.name: of_metric[i]
            for metric, of_metric in zip(self.metrics, self.found, strict=True)
        }

    def named(self, names: Sequence[str]) -> list[ComparedPair]:
        """Every pair by every metric."""
        return [
            ComparedPair(metric.name, names[b], names[s], result)
            for metric, of_metric in zip(self.metrics, self.found, strict=True)
            for (b, s), result in zip(self.pairs, of_metric, strict=True)
        ]

    def clusters(self, m: int, systems: Sequence[ScoredSystem]) -> list[list[str]]:
        """The systems by one metric, best first, cut where all above beat all below."""
        metric = self.metrics[m]
        results = dict(zip(self.pairs, self.found[m], strict=True))
        sign = -1 if metric.higher_is_better else 1
        scores = [sign * one.scores[metric.name] for one in systems]
        ranking = sorted(range(len(systems)), key=scores.__getitem__)

        def differ(above: int, below: int) -> bool:
            result = results[min(above, below), max(above, below)]
            return bool(result.mark())

        groups = multiplicity.clusters(ranking, differ)
        return [[systems[i].name for i in group] for group in groups]
