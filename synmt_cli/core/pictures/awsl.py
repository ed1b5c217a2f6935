"""Figure 3 of Xie et al. (2021): the weight of syntax, and of plain attention, by layer."""

from collections.abc import Sequence

from synmt_cli.core.pictures.charts import Chart, Series
from synmt_cli.formats.reports.analysis.awsl import RunWeights

PlottedLine = tuple[str, list[tuple[int, float]]]  # name in the legend, and (layer, AWSL)


def lines(runs: Sequence[RunWeights]) -> list[PlottedLine]:
    """One line for each run, through the layers that its variant changes.

    If all runs have the same variant and one such layer each, all different, they form one line
    together, as in the paper, which varies the layer of syntax.
    """
    lines: list[PlottedLine] = []
    for run in runs:
        points = [(o.layer, o.weight) for o in run.layers if o.weight is not None and o.variants]
        if points:
            lines.append((run.run, points))
    layers = [layer for _, points in lines for layer, _ in points]
    variants = {run.variant for run in runs}
    if len(lines) > 1 and len(variants) == 1 and len({*layers}) == len(layers) == len(lines):
        return [("", sorted(points[0] for _, points in lines))]
    return lines


def chart(runs: Sequence[RunWeights]) -> Chart:
    """AWSL and the weight of plain attention, as in the paper; AWSL alone for several lines."""
    drawn = lines(runs)
    n_layers = max((len(run.layers) for run in runs), default=0)
    series = []
    for name, points in drawn:
        layers, shares = [float(layer) for layer, _ in points], [share for _, share in points]
        if len(drawn) == 1:
            series.append(Series("standard", layers, [1 - share for share in shares]))
        series.append(Series(name if len(drawn) > 1 else "AWSL", layers, shares))
    label = "AWSL" if len(drawn) > 1 else "weight of logits"
    ticks = [str(layer) for layer in range(n_layers)]
    return Chart("layer (0 is the bottom one)", label, series, ticks, limits=(0, 1))
