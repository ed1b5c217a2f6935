"""`synmt plot awsl`: the weight of syntax by layer as a figure."""

from typing import Annotated

import typer

from synmt_cli.commands import Manual, chart_output, options
from synmt_cli.commands.options import argument
from synmt_cli.core.pictures import awsl
from synmt_cli.formats.reports.analysis.awsl import read

MANUAL = Manual(
    input="The report of `synmt analyze awsl --format json`.",
    output="A picture as SVG, PDF or PNG; as text a row for each layer, `0  AWSL  0.48  o`.",
    memory="The report.",
    examples=(
        "synmt analyze awsl -m runs/pascal --format json dev.jsonl > awsl.json"
        " && synmt plot awsl -o awsl.pdf awsl.json",
    ),
    see_also=("analyze awsl", "plot attention"),
)


def plot_awsl(
    context: typer.Context,
    file: Annotated[
        str | None, argument("FILE", "Report of synmt analyze awsl; none or - is stdin.")
    ] = None,
    form: chart_output.Form = None,
    width: chart_output.Width = 5.0,
    font: chart_output.Font = chart_output.FONT,
    output: options.Output = "-",
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Draw the Average Weight of Syntax Logits by layer: Figure 3 of Xie et al. (2021).

    For one run it shows AWSL and the remainder, the weight of plain attention, over the layers that
    the variant changes. Several runs are a line each, of AWSL alone; runs of one variant with one
    such layer each, all different, are one line together, as in the paper.

    Without -o or --format the chart is text, for a terminal. Pictures need matplotlib: pip install
    'synmt-cli[plot]'. The same report gives the same bytes.
    """
    options.refuse_clashes([file], output)
    kind = chart_output.kind_of(form, output, context)
    chart = awsl.chart(read(file or "-").runs)
    chart_output.write([chart] if chart.series else [], kind, output, width, font)
