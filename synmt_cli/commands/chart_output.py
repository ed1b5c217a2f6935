"""The options of `synmt plot`, and how its commands write charts."""

import os
from pathlib import PurePath
from typing import Annotated, Literal

import typer

from synmt_cli.commands import options
from synmt_cli.commands.options import option
from synmt_cli.core.pictures import figures, text_charts
from synmt_cli.core.pictures.charts import Charts
from synmt_cli.errors import UsageError
from synmt_cli.io import writing

Form = Annotated[
    Literal["svg", "pdf", "png", "text"] | None,
    option(
        "--format",
        "What to write; text is for a terminal.",
        shown_default="by the name of -o; text without one",
    ),
]
Width = Annotated[
    float, option("--width INCHES", "Width of the picture; 3.03 is a column of ACL.", min=1, max=50)
]
Font = Annotated[float, option("--font-size POINTS", "Size of all text.", min=3, max=30)]
WIDTH, FONT = 6.3, 8.0  # inches: the text width of ACL; points
COLUMNS = 80  # width of text in a file


def kind_of(form: str | None, output: str, context: typer.Context) -> str:
    """What to write: svg, pdf, png or text. Raises UsageError, Unavailable without matplotlib."""
    is_text = output == "-" or PurePath(output).suffix.lower() == ".txt"
    if form == "text" or (form is None and is_text):
        sizes = {"width": "--width", "font": "--font-size"}
        options.refuse_given(context, sizes, "is for pictures, and text is written: see --format")
        return "text"
    if form is None:
        return figures.kind_of(output, other=", or in .txt for text")
    figures.require(f"--format {form}")
    return form


def write(charts: Charts, kind: str, output: str, width: float, font: float) -> None:
    """Writes charts as `kind`. Raises UsageError where there is nothing to draw."""
    if not charts:
        raise UsageError("there is nothing to draw")
    if kind == "text":
        on_terminal = output == "-" and os.isatty(1)
        columns = (on_terminal and os.get_terminal_size(1).columns) or COLUMNS
        data = text_charts.text(charts, columns).encode()
    else:
        data = figures.picture(charts, kind, figures.Size(width, font))
    with writing.output(output) as writer:
        writer.write(data)
