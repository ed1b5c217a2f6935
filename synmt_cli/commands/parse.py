"""`synmt parse`: text to CoNLL-U."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Annotated

import typer

from synmt_cli import console, pool
from synmt_cli.commands.manual import Files, Jobs, LineBuffered, Manual, Out, Quiet, Strict
from synmt_cli.core.text import udpipe
from synmt_cli.errors import DataError, UsageError
from synmt_cli.formats import conllu
from synmt_cli.formats.record import FAILED
from synmt_cli.io import reading, writing

CHUNK = 8  # segments that travel to a worker together

MANUAL = Manual(
    input="One segment a line: `The dog sleeps .`",
    output="One block a segment: `2\tdog\tdog\tNOUN\t_\t_\t3\tnsubj\t_\tTokenRange=4:7`",
    memory=f"The model once, shared by the processes of -j, and for each of them at most "
    f"{(pool.IN_FLIGHT + 2) * CHUNK} segments of at most {udpipe.MAX_CHARACTERS:,} characters.",
    examples=(
        "synmt parse -m en.udpipe test.en > test.parsed.conllu",
        "head -3 test.en | synmt parse -m en.udpipe -j 2 --segment split",
        "synmt parse -m en.udpipe --input conllu test.en.conllu -o test.again.conllu",
    ),
    see_also=("parser train", "featurize"),
)


class InputKind(StrEnum):
    """What a segment is."""

    TEXT = "text"
    TOKENS = "tokens"
    CONLLU = "conllu"


class Segmentation(StrEnum):
    """How many trees a line gets."""

    LINE = "line"
    SPLIT = "split"


@dataclass(frozen=True, slots=True)
class ParseItem:
    """One segment and where it stands. `id` runs over all operands."""

    id: int
    content: str | conllu.Sentence
    source: str
    line: int


def parse(
    model: Annotated[
        str, typer.Option("-m", "--model", metavar="MODEL", help="The UDPipe 1 model to apply.")
    ],
    files: Files = None,
    input: Annotated[
        InputKind,
        typer.Option(
            "--input",
            help="text: lines, tokenised by the model. tokens: words with spaces between them. "
            "conllu: tokenised sentences, tagged and parsed again.",
        ),
    ] = InputKind.TEXT,
    segment: Annotated[
        Segmentation,
        typer.Option(
            "--segment", help="line: one tree for each line. split: one for each sentence in it."
        ),
    ] = Segmentation.LINE,
    jobs: Jobs = 1,
    output: Out = "-",
    line_buffered: LineBuffered = False,
    strict: Strict = False,
    quiet: Quiet = False,
) -> None:
    """Parse text with a UDPipe model: one CoNLL-U record for each line, in order.

    Each record has the comments sent_id (the number of the line over all files) and text
    (the line as it is); TokenRange in MISC says where in it a word stands, in characters.
    An empty or blank line becomes a record of one word `_` with synmt_status = empty. So
    does a line that gets no tree, with synmt_status = failed and a synmt_reason; these are
    counted at the end, and --strict stops at the first.

    With --segment split, a line N of k sentences becomes the records N.1 to N.k with
    synmt_line = N, which featurize joins again; their texts together are the line.

    Sentences over 1,000 words are parsed greedily, as the model's beam takes quadratic time.
    """
    if segment is Segmentation.SPLIT and input is not InputKind.TEXT:
        raise UsageError("--segment split is for --input text: other input has its own sentences")
    recipe = pool.Recipe(
        partial(parsing, model, input, segment, strict),
        (model,),
        pool.Care(where=_where, warn=console.warn),
    )
    every = pool.mapped(recipe, _items(files or (), input), jobs, CHUNK)
    failures: Counter[str] = Counter()
    with writing.output(output, line_buffered) as writer, console.progress("parsed") as bar:
        for parsed in every:
            writer.write(conllu.encoded(parsed.conllu))
            if parsed.status == FAILED:
                failures[parsed.reason] += 1
            bar.advance()
    if failures:
        reasons = "; ".join(f"{reason} ({n:,})" for reason, n in failures.most_common(5))
        console.warn(f"{failures.total():,} of {bar.done:,} segments failed: {reasons}")


def _items(files: Sequence[str], kind: InputKind) -> Iterator[ParseItem]:
    ids = itertools.count(1)
    for source in reading.sources(files):
        if kind is InputKind.CONLLU:
            for sentence in conllu.read(source):
                yield ParseItem(next(ids), sentence, source.name, sentence.line)
        else:
            for line, text in reading.text_lines(source):
                if "\0" in text:  # CoNLL-U cannot hold it
                    raise DataError(source.name, line, "NUL character")
                yield ParseItem(next(ids), text, source.name, line)


def _where(items: Sequence[ParseItem]) -> str:
    return pool.span((items[0].source, items[0].line), (items[-1].source, items[-1].line))


def parsing(
    model: str, kind: InputKind, segments: Segmentation, strict: bool
) -> Callable[[ParseItem], udpipe.Parsed]:
    """What a process does with its segments. Raises Unavailable; then DataError if `strict`."""
    parser = udpipe.Parser(model)
    of_text = parser.sentences if segments is Segmentation.SPLIT else parser.line
    if kind is InputKind.TOKENS:
        of_text = parser.tokens

    def parsed(item: ParseItem) -> udpipe.Parsed:
        if isinstance(item.content, conllu.Sentence):
            result = parser.again(item.content)
        else:
            result = of_text(item.content, str(item.id))
        if strict and result.status == FAILED:
            raise DataError(item.source, item.line, result.reason)
        return result

    return parsed
