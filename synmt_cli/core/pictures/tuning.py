"""BLEU on dev over the length penalty, from reports of `synmt tune`."""

from collections.abc import Mapping

from synmt_cli.core.pictures.charts import Chart, Series
from synmt_cli.formats.reports.tuning import TuningReport


def chart(reports: Mapping[str, TuningReport]) -> Chart:
    """A line for each model, by its name."""
    series = [
        Series(name, [one.lenpen for one in report.values], [one.bleu for one in report.values])
        for name, report in reports.items()
    ]
    return Chart("length penalty", "BLEU on dev", series)
