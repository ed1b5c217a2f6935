"""`synmt plot heads`: what each attention head finds of a tree, as heat maps."""

from typing import Annotated, Literal

import typer

from synmt_cli.commands import Manual, chart_output, options
from synmt_cli.commands.options import argument, option
from synmt_cli.core.pictures import heads
from synmt_cli.formats.reports.analysis.heads import DIRECTIONS, read

MANUAL = Manual(
    input="The report of `synmt analyze heads --format json`.",
    output="A picture as SVG, PDF or PNG; as text a row for each layer, `layer 0 | 12  31 |`.",
    memory="The report.",
    examples=(
        "synmt analyze heads -m runs/base -m runs/pascal --format json dev.jsonl > heads.json"
        " && synmt plot heads -o heads.pdf heads.json",
        "synmt analyze heads -m runs/base --format json dev.jsonl"
        " | synmt plot heads --relation det,nsubj --looks up",
    ),
    see_also=("analyze heads", "plot attention"),
)


def plot_heads(
    context: typer.Context,
    file: Annotated[
        str | None, argument("FILE", "Report of synmt analyze heads; none or - is stdin.")
    ] = None,
    relation: Annotated[
        str, option("--relation LIST", "Relations to draw, such as nsubj,det.")
    ] = "all",
    looks: Annotated[
        Literal["up", "down", "both"],
        option("--looks", "From words to their parents (up), from parents to words (down)."),
    ] = "both",
    form: chart_output.Form = None,
    width: chart_output.Width = 5.0,
    font: chart_output.Font = chart_output.FONT,
    output: options.Output = "-",
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Draw how accurately each attention head finds the parents of words, by layer and head.

    A heat map for each run, relation and direction, with accuracies in percent. The relation `all`
    is that of every word that has a parent.

    Without -o or --format the maps are text, for a terminal. Pictures need matplotlib: pip install
    'synmt-cli[plot]'. The same report gives the same bytes.
    """
    options.refuse_clashes([file], output)
    kind = chart_output.kind_of(form, output, context)
    ways = DIRECTIONS if looks == "both" else (looks,)
    maps = heads.maps(read(file or "-"), options.names(relation), ways)
    chart_output.write(maps, kind, output, width, font)
