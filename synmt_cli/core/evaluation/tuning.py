"""BLEU of translations that differ in a setting of the search."""

from collections.abc import Sequence

from synmt_cli.core.evaluation.metrics.registry import Metric, TextSettings, build
from synmt_cli.formats.reports.tuning import TunedValue, TuningReport, best_of


class Tuning:
    """Scores translations with each length penalty. references: at least one line.

    beam, patience: of the search; patience is None if the search is exact. tokenize: of BLEU.
    """

    def __init__(
        self, references: Sequence[str], beam: int, patience: float | None, tokenize: str
    ) -> None:
        (self._metric,) = build(["bleu"], [references], TextSettings(tokenize))
        self._n, self._search, self._tokenize = len(references), (beam, patience), tokenize

    def report(
        self,
        lenpens: Sequence[float],
        hypotheses: Sequence[Sequence[str]],
        n_cut: Sequence[int],
        n_closed: Sequence[int | None],
    ) -> TuningReport:
        """The report. hypotheses, n_cut, n_closed: one for each of lenpens."""
        each = zip(lenpens, hypotheses, n_cut, n_closed, strict=True)
        values = [_value(self._metric, *one) for one in each]
        signature, tokenize = self._metric.signature, self._tokenize
        best = best_of(values)
        return TuningReport(self._n, *self._search, best, values, signature, tokenize)


def _value(
    metric: Metric, lenpen: float, lines: Sequence[str], n_cut: int, n_closed: int | None
) -> TunedValue:
    sums = metric.statistics(lines).sum(0)
    parts = metric.parts(sums)
    n_words, n_reference = parts["hypothesis words"], parts["reference words"]
    ratio = n_words / n_reference if n_reference else None
    penalty = parts["brevity penalty"]
    return TunedValue(lenpen, metric.corpus(sums), penalty, ratio, n_cut, n_closed)
