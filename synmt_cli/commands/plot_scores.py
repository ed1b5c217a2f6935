"""`synmt plot scores`: a comparison of systems as a figure."""

from typing import Annotated

import typer

from synmt_cli import console
from synmt_cli.commands import Manual, chart_output, options
from synmt_cli.commands.options import argument, option
from synmt_cli.core.pictures import score_charts
from synmt_cli.formats.reports.score import files as score_files

MANUAL = Manual(
    input="The report of `synmt score --format json`.",
    output="A picture as SVG, PDF or PNG; as text a row for each system and bucket,"
    " `pascal.de  27.31   ---o---`.",
    memory="The report.",
    examples=(
        "synmt score --by length:10,20,30 --format json --src test.en -o score.json"
        " ref.de base.de pascal.de && synmt plot scores score.json",
        "synmt score --format json ref.de base.de pascal.de | synmt plot scores --format svg"
        " > scores.svg",
    ),
    see_also=("score", "plot curves", "report"),
)


def plot_scores(
    context: typer.Context,
    file: Annotated[
        str | None, argument("FILE", "Report of synmt score; none or - is stdin.")
    ] = None,
    metric: Annotated[
        str, option("--metric NAME", "Metric to draw.", shown_default="the report's first")
    ] = "",
    by: Annotated[
        str,
        option(
            "--by SPEC",
            "Draw only these buckets of the report; systems: the whole test set only.",
            shown_default="all",
        ),
    ] = "",
    form: chart_output.Form = None,
    width: chart_output.Width = chart_output.WIDTH,
    font: chart_output.Font = chart_output.FONT,
    output: options.Output = "-",
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Draw the scores of systems and their differences, with 95 % intervals, whole and by bucket.

    A system of several seeds is drawn by its mean, with the score of each seed as a small dot.
    The differences from the first system have the stars of score's table, if score tested them.
    Look at these: intervals of scores may overlap where the difference is significant, because all
    systems have the same test set. Buckets have both charts, without stars. An interval that
    includes 0 does not show a difference; all p values are in the tables of score.

    Without -o or --format the charts are text, for a terminal. Pictures need matplotlib: pip
    install 'synmt-cli[plot]'. The same report gives the same bytes.
    """
    options.refuse_clashes([file], output)
    kind = chart_output.kind_of(form, output, context)
    report = score_files.read(file or "-")
    charts = score_charts.charts(report, metric, by)
    drawn, *others = report.metrics
    if others and not metric:
        console.info(f"{drawn.label} is drawn; --metric draws {', '.join(o.name for o in others)}")
    chart_output.write(charts, kind, output, width, font)
