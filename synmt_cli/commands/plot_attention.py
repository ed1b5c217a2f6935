"""`synmt plot attention`: attention weights as heat maps."""

from typing import Annotated

import typer

from synmt_cli.commands import Manual, chart_output, options
from synmt_cli.commands.options import argument, option
from synmt_cli.core.pictures.sentences import Picture
from synmt_cli.errors import UsageError, quoted

MANUAL = Manual(
    input="The JSONL of `synmt analyze attention`.",
    output="A picture as SVG, PDF or PNG; as text a row for each token, `▁dog |: @ . | 0.61`.",
    memory="The weights of one segment.",
    examples=(
        "echo 'The dog sees the cat.' | synmt analyze attention -m runs/pascal --layers 0"
        " | synmt plot attention",
        "synmt analyze attention -m runs/pascal dev.en.conllu -o heads.jsonl"
        " && synmt plot attention heads.jsonl --id 2 --trees dev.en.conllu --heads 0 -o heads.pdf",
    ),
    see_also=("analyze attention", "plot awsl", "view"),
)


def plot_attention(
    context: typer.Context,
    file: Annotated[
        str | None, argument("FILE", "Weights of synmt analyze attention; none or - is stdin.")
    ] = None,
    id: Annotated[
        str, option("--id ID", "Segment to draw.", shown_default="the first with weights")
    ] = "",
    layers: Annotated[str, option("--layers LIST", "Layers to draw, from 0; all if none.")] = "",
    heads: Annotated[str, option("--heads LIST", "Heads to draw, from 0; all if none.")] = "",
    trees: Annotated[
        str,
        option("--trees FILE", "CoNLL-U or records with the source's trees: frame their edges."),
    ] = "",
    form: chart_output.Form = None,
    width: chart_output.Width = chart_output.WIDTH,
    font: chart_output.Font = chart_output.FONT,
    output: options.Output = "-",
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Draw the attention weights of one segment, a heat map for each layer and head.

    A row shows where its token looks; darker is more. Pictures shade the square root of a weight,
    up to the strongest of all maps, as their colour bar says; text shades its share of the row's
    strongest weight, which stands at the end of the row. --trees frames the cells of each word and
    its parent: an attention head that reads syntax is dark there. The tree is that of the same id,
    and a piece belongs to the word whose letters it has.

    Without -o or --format the maps are text, for a terminal. Pictures need matplotlib: pip install
    'synmt-cli[plot]'. Letters that its font lacks, such as Chinese, are boxes in PDF and PNG.
    """
    options.refuse_clashes([file or "-", trees], output)
    kind = chart_output.kind_of(form, output, context)
    from synmt_cli.core.pictures import attention
    from synmt_cli.formats.attention import read
    from synmt_cli.io import reading

    with reading.open_source(file or "-") as source:
        segment = attention.chosen(read(source), source.name, id)
    wanted = options.numbers("--layers", layers), options.numbers("--heads", heads)
    tree = tree_of(trees, segment.id) if trees else None
    chart_output.write(attention.maps(segment, *wanted, tree), kind, output, width, font)


def tree_of(path: str, id: str) -> Picture:
    """The tree of the segment with this id. Raises UsageError if there is none."""
    from synmt_cli.core.jobs.delinearize import DelinearizeJob
    from synmt_cli.core.jobs.view import read_pictures
    from synmt_cli.core.transitions.delinearizer import Delinearizer

    job = DelinearizeJob(Delinearizer(None), "conllu")
    for one in read_pictures([path], "auto", job, by_line=True):
        if one.id == id:
            return one
    raise UsageError(f"--trees: no tree has the id {quoted(id)}")
