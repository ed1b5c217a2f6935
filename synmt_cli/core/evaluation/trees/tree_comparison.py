"""Several parsers against the same gold trees: their scores, and paired tests of the differences.

The unit of a test is the shortest stretch of gold sentences after which gold and every system
end a sentence at the same character: one sentence where the systems keep gold's. A metric's
statistics of a unit are its correct, gold and system words; their sums over any set of units
give the F1 of that set, so `significance` draws and tests them as it does those of BLEU.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import tee
from typing import TYPE_CHECKING

import numpy as np

from synmt_cli.core.evaluation.metrics.registry import PERCENT, Metric
from synmt_cli.core.evaluation.statistics import significance
from synmt_cli.core.evaluation.statistics.multiplicity import corrected
from synmt_cli.core.evaluation.trees.attachment import Attachment
from synmt_cli.core.evaluation.trees.word_alignment import AlignedSpan, aligned_spans
from synmt_cli.formats.conllu import Sentence
from synmt_cli.formats.reports.score.systems import PairedComparison
from synmt_cli.formats.reports.tree_comparison import ComparedParser
from synmt_cli.formats.reports.tree_scores import LABELS, MatchCount

if TYPE_CHECKING:
    from synmt_cli.core.evaluation.metrics.formulas import Array
    from synmt_cli.core.evaluation.statistics.significance import SignificanceTest

Unit = list[list[AlignedSpan]]  # for each system, its spans of the same gold sentences


def units(
    gold: Iterator[Sentence], systems: Sequence[Iterator[Sentence]], names: Sequence[str]
) -> Iterator[Unit]:
    """Cuts gold and all systems where all of them end a sentence.

    names: gold's, then each system's, for messages. Gold is read once. Raises DataError where
    a text differs from gold's.
    """
    copies = tee(gold, len(systems))
    spans = [
        aligned_spans(copy, system, (names[0], name))
        for copy, system, name in zip(copies, systems, names[1:], strict=True)
    ]
    while True:
        unit: Unit = [[] for _ in spans]
        ends = [0] * len(spans)  # gold sentences of this unit, by system
        while not all(ends) or min(ends) < max(ends):
            behind = ends.index(min(ends))
            following = next(spans[behind], None)
            if following is None:
                for others in spans:  # gold has ended: does every system end here?
                    next(others, None)
                return
            unit[behind].append(following)
            ends[behind] += len(following.gold)
        yield unit


class ParserComparison:
    """Counts what each system has right, unit by unit.

    metrics: those whose statistics are kept for tests, keys of LABELS.
    """

    def __init__(
        self, n_systems: int, metrics: Sequence[str], build: Callable[[], Attachment]
    ) -> None:
        self.attachments = [build() for _ in range(n_systems)]
        self._build = build
        self._metrics = metrics
        # for each system and metric, a row (correct, gold, system) of each unit
        self._rows: list[list[list[tuple[int, int, int]]]] = [
            [[] for _ in metrics] for _ in range(n_systems)
        ]

    @property
    def n_units(self) -> int:
        """The units so far."""
        return len(self._rows[0][0])

    def add(self, unit: Unit) -> None:
        """Counts a unit. Raises DataError if its words cannot be aligned."""
        for whole, rows, spans in zip(self.attachments, self._rows, unit, strict=True):
            part = self._build()
            for span in spans:
                part.add(span)
            whole.include(part)
            scores = part.scores()
            for metric, of_metric in zip(self._metrics, rows, strict=True):
                of_metric.append(_row(scores[metric]))

    def compared(self, names: Sequence[str], test: SignificanceTest | None) -> list[ComparedParser]:
        """Every system's scores; with a test, each but the first against the first.

        p is corrected for all metrics and systems together.
        """
        tested: list[dict[str, PairedComparison]] = [{} for _ in names]
        if test is not None:
            tested = self._tested(test)
        scored = zip(names, self.attachments, tested, strict=True)
        return [
            ComparedParser(name, attachment.scores(), attachment.groups(), pairs)
            for name, attachment, pairs in scored
        ]

    def _tested(self, test: SignificanceTest) -> list[dict[str, PairedComparison]]:
        statistics = [
            [[np.array(rows[m], dtype=np.float64)] for rows in self._rows]  # (n_units, 3) each
            for m in range(len(self._metrics))
        ]
        pairs_of = significance.against_first(len(self._rows))
        metrics = [*map(_metric, self._metrics)]
        results = significance.compare(test, metrics, statistics, pairs_of).pairs
        pairs = [pair for of_metric in results for pair in of_metric]
        (tested_together,) = corrected(pairs)
        results_of = iter(tested_together)
        tested: list[dict[str, PairedComparison]] = [{} for _ in self._rows]
        for name, of_metric in zip(self._metrics, results, strict=True):
            for system in range(1, len(of_metric) + 1):
                tested[system][name] = next(results_of)
        return tested


def _row(count: MatchCount) -> tuple[int, int, int]:
    return count.correct, count.gold, count.system or 0


def _metric(name: str) -> Metric:
    """F1 as a metric for `significance`, which never asks it for the statistics of texts."""
    return Metric(
        name,
        LABELS[name],
        "",
        True,
        2,
        statistics=lambda _: np.empty((0, 3)),
        corpus=lambda sums: float(f1(sums[None])[0]),
        scores=f1,
        sentences=f1,
        bounds=PERCENT,
    )


def f1(sums: Array) -> Array:
    """F1 in percent, 0 where there is no word. sums: (m, 3), [correct, gold, system]."""
    words = sums[:, 1] + sums[:, 2]  # (m,)
    return 200 * np.divide(sums[:, 0], words, out=np.zeros_like(words), where=words > 0)
