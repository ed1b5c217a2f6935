"""`synmt vocab decode`: pieces to text."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from synmt_cli import console, pool
from synmt_cli.commands.manual import Files, Jobs, LineBuffered, Manual, Out
from synmt_cli.core.jobs.vocab import CHUNK, decoding, lines, where
from synmt_cli.io import writing

MANUAL = Manual(
    input="Pieces with single spaces between them: `▁The ▁dog s ▁sleep .`",
    output="The text of each line: `The dogs sleep.`",
    memory=f"The longest line, {pool.IN_FLIGHT} N + 2 times {CHUNK} lines with -j N.",
    examples=(
        "synmt vocab encode -m spm.model dev.en | synmt vocab decode -m spm.model | diff - dev.en",
        "synmt vocab encode --ids -m spm.model test.en | synmt vocab decode --ids -m spm.model",
    ),
    see_also=("vocab encode",),
)


def vocab_decode(
    model: Annotated[str, typer.Option("-m", "--model", metavar="MODEL", help="The vocabulary.")],
    files: Files = None,
    ids: Annotated[bool, typer.Option("--ids", help="Read ids instead of pieces.")] = False,
    jobs: Jobs = 1,
    output: Out = "-",
    line_buffered: LineBuffered = False,
) -> None:
    """Join the pieces of each line to text again.

    Pieces that the vocabulary does not know stand for themselves; its symbols are nothing.
    Among ids, 1 to 3 are nothing too, and 0, the unknown piece, is ` ⁇ `.
    """
    recipe = pool.Recipe(
        partial(decoding, model, ids), (model,), pool.Care(where=where, warn=console.warn)
    )
    every = pool.mapped(recipe, lines(files or ()), jobs, CHUNK)
    with writing.output(output, line_buffered) as writer:
        for line in every:
            writer.write(line)
