"""`synmt plot curves`: training curves."""

from typing import Annotated

import typer

from synmt_cli.commands import Manual, chart_output, options
from synmt_cli.commands.options import argument, option
from synmt_cli.core.pictures import curves
from synmt_cli.errors import UsageError, quoted

MANUAL = Manual(
    input="Run directories of `synmt train`: their metrics.jsonl.",
    output="A picture as SVG, PDF or PNG; as text a grid of characters, `24.81 |   o  x`.",
    memory="The validations and reports of all runs.",
    examples=(
        "synmt plot curves runs/base runs/pascal",
        "synmt plot curves --show metric -o bleu.pdf --width 3.03 runs/base runs/pascal",
        "synmt plot curves --show perplexity,training --format svg runs/base > curves.svg",
    ),
    see_also=("train", "info", "plot scores", "report"),
)


def plot_curves(
    context: typer.Context,
    runs: Annotated[list[str], argument("RUN", "Run directories.")],
    show: Annotated[
        str,
        option(
            "--show LIST",
            "Any of metric and perplexity (on dev) and training (its loss, nats per token).",
        ),
    ] = "metric,perplexity",
    form: chart_output.Form = None,
    width: chart_output.Width = chart_output.WIDTH,
    font: chart_output.Font = chart_output.FONT,
    output: options.Output = "-",
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Draw the validations of training runs: the metric and perplexity on development data.

    Runs whose names differ in a number at the end, as runs/pascal.1 and runs/pascal.2, are seeds of
    one system if they have the same settings and data: in pictures they look alike and are one
    entry of the legend. Lines differ in colour, dashes and marks, so that a figure can be read
    without colour. The colours are after Okabe and Ito.

    Without -o or --format the curves are text, for a terminal. Pictures need matplotlib: pip
    install 'synmt-cli[plot]'. The same runs give the same bytes.
    """
    wanted = options.names(show)
    for one in wanted:
        if one not in curves.WHAT:
            raise UsageError(f"--show {quoted(one)}: expected some of {', '.join(curves.WHAT)}")
    kind = chart_output.kind_of(form, output, context)
    charts = curves.charts([curves.read(run) for run in runs], wanted)
    if not charts:
        raise UsageError(f"no run has reported {show} yet")
    chart_output.write(charts, kind, output, width, font)
