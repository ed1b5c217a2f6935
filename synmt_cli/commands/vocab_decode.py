"""`synmt vocab decode`: pieces to text."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from synmt_cli import streams
from synmt_cli.commands.manual import Files, LineBuffered, Manual, Out
from synmt_cli.core.vocabulary import Vocabulary
from synmt_cli.errors import DataError, quoted

MANUAL = Manual(
    input="Pieces with single spaces between them: `▁The ▁dog s ▁sleep .`",
    output="The text of each line: `The dogs sleep.`",
    memory="One line.",
    examples=(
        "synmt vocab encode -m spm.model dev.en | synmt vocab decode -m spm.model | diff - dev.en",
        "synmt vocab encode --ids -m spm.model test.en | synmt vocab decode --ids -m spm.model",
    ),
    see_also=("vocab encode",),
)
_ID = re.compile(r"0|[1-9][0-9]{0,8}")


def vocab_decode(
    model: Annotated[str, typer.Option("-m", "--model", metavar="MODEL", help="The vocabulary.")],
    files: Files = None,
    ids: Annotated[bool, typer.Option("--ids", help="Read ids instead of pieces.")] = False,
    output: Out = "-",
    line_buffered: LineBuffered = False,
) -> None:
    """Join the pieces of each line to text again.

    Pieces that the vocabulary does not know stand for themselves; its symbols are nothing.
    Among ids, 1 to 3 are nothing too, and 0, the unknown piece, is ` ⁇ `.
    """
    vocabulary = Vocabulary.load(model)
    with streams.output(output, line_buffered) as writer:
        for source in streams.sources(files or ()):
            for number, line in streams.text_lines(source):
                pieces = [piece for piece in line.split(" ") if piece]
                if ids:
                    text = vocabulary.decode(_ids(pieces, vocabulary.size, source.name, number))
                else:
                    text = vocabulary.join(pieces)
                writer.write(text.encode() + b"\n")


def _ids(words: list[str], size: int, source: str, number: int) -> list[int]:
    for word in words:
        if not _ID.fullmatch(word) or int(word) >= size:
            raise DataError(source, number, f"{quoted(word)} is not an id below {size}")
    return list(map(int, words))
