"""The scores of systems, their comparisons with the first system, and scores by length."""

from collections.abc import Sequence

import numpy as np

from synmt_cli.core.evaluation import significance
from synmt_cli.core.evaluation.metrics import Metric
from synmt_cli.core.evaluation.significance import SignificanceTest, Statistics
from synmt_cli.core.segments.buckets import Buckets, n_words
from synmt_cli.formats.reports.scores import ScoredBucket, ScoredSystem, ScoreReport


def evaluate(
    metrics: Sequence[Metric],
    systems: Sequence[tuple[str, Sequence[str]]],
    references: Sequence[str],
    test: SignificanceTest | None = None,
    by_length: tuple[Buckets, Sequence[str]] | None = None,
) -> ScoreReport:
    """The report on these systems, (name, hypotheses) each, the first as the baseline.

    references: the names of the reference files. test: how the others are compared with the
    first, None for not at all. by_length: buckets and the source lines to put into them.
    """
    extracted = [[metric.statistics(lines) for _, lines in systems] for metric in metrics]
    compared = significance.compare(test, metrics, extracted) if test else []
    scored = []
    for i, (name, _) in enumerate(systems):
        scores = {
            metric.name: metric.corpus(statistics[i].sum(axis=0))
            for metric, statistics in zip(metrics, extracted, strict=True)
        }
        paired = {
            metric.name: comparisons[i - 1]
            for metric, comparisons in zip(metrics, compared, strict=False)
            if i > 0
        }
        scored.append(ScoredSystem(name, scores, paired))
    return ScoreReport(
        n=len(systems[0][1]),
        references=list(references),
        metrics=metrics,
        systems=scored,
        buckets=_buckets(metrics, extracted, *by_length) if by_length else [],
        formula=test.formula if test else "",
        interval_n=test.interval_n if test else 0,
    )


def _buckets(
    metrics: Sequence[Metric],
    extracted: Sequence[Statistics],
    buckets: Buckets,
    sources: Sequence[str],
) -> list[ScoredBucket]:
    bucket_of = np.array([buckets.index(n_words(line)) for line in sources])  # (n_sentences,)
    scored = []
    for b, (name, (low, high)) in enumerate(zip(buckets.names, buckets.limits, strict=True)):
        inside = bucket_of == b
        n = int(inside.sum())
        scores = [
            {
                metric.name: metric.corpus(statistics[i][inside].sum(axis=0)) if n else None
                for metric, statistics in zip(metrics, extracted, strict=True)
            }
            for i in range(len(extracted[0]))
        ]
        scored.append(ScoredBucket(name, low, high, n, scores))
    return scored
