"""`synmt vocab encode`: text to pieces."""

from __future__ import annotations

from typing import Annotated

import typer

from synmt_cli import streams
from synmt_cli.commands.manual import Files, LineBuffered, Manual, Out
from synmt_cli.core.vocabulary import Vocabulary

MANUAL = Manual(
    input="One segment a line: `The dogs sleep.`",
    output="Its pieces with single spaces between them: `▁The ▁dog s ▁sleep .`",
    memory="One line.",
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
    output: Out = "-",
    line_buffered: LineBuffered = False,
) -> None:
    """Split each line into subword pieces; ▁ begins a word.

    A run of characters that the vocabulary does not know is one piece, and as an id 0.
    """
    vocabulary = Vocabulary.load(model)
    with streams.output(output, line_buffered) as writer:
        for source in streams.sources(files or ()):
            for _, text in streams.text_lines(source):
                pieces = vocabulary.pieces(text)
                words = map(str, vocabulary.ids(pieces)) if ids else pieces
                writer.write(" ".join(words).encode() + b"\n")
