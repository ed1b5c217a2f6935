"""`synmt vocab encode`: text to pieces."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from synmt_cli import console, pool
from synmt_cli.commands.manual import Files, Jobs, LineBuffered, Manual, Out
from synmt_cli.core.jobs.vocab import CHUNK, encoding, lines, where
from synmt_cli.io import writing

MANUAL = Manual(
    input="One segment a line: `The dogs sleep.`",
    output="Its pieces with single spaces between them: `▁The ▁dog s ▁sleep .`",
    memory=f"The longest line, {pool.IN_FLIGHT} N + 2 times {CHUNK} lines with -j N.",
    examples=(
        "synmt vocab encode -m spm.model test.en > test.pieces.en",
        "head -2 test.en | synmt vocab encode -m spm.model --ids",
    ),
    see_also=("vocab decode", "vocab train"),
)


def vocab_encode(
    model: Annotated[str, typer.Option("-m", "--model", metavar="MODEL", help="The vocabulary.")],
    files: Files = None,
    ids: Annotated[bool, typer.Option("--ids", help="Write ids instead of pieces.")] = False,
    jobs: Jobs = 1,
    output: Out = "-",
    line_buffered: LineBuffered = False,
) -> None:
    """Split each line into subword pieces; ▁ begins a word.

    A run of characters that the vocabulary does not know is one piece, and as an id 0.
    """
    recipe = pool.Recipe(
        partial(encoding, model, ids), (model,), pool.Care(where=where, warn=console.warn)
    )
    every = pool.mapped(recipe, lines(files or ()), jobs, CHUNK)
    with writing.output(output, line_buffered) as writer:
        for line in every:
            writer.write(line)
