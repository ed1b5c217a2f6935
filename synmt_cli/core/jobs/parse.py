"""Text, or CoNLL-U with or without trees, to CoNLL-U: what a process of `synmt parse` does."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Literal, NamedTuple

from synmt_cli.core.text import udpipe
from synmt_cli.errors import DataError
from synmt_cli.formats import conllu
from synmt_cli.formats.record import FAILED
from synmt_cli.io import reading

CHUNK = 8  # segments that travel to a worker together
InputKind = Literal["text", "tokens", "conllu"]  # what a segment is
Segmentation = Literal["line", "split"]  # how many trees a line gets


class ParseItem(NamedTuple):
    """One segment and its place. `id` counts from 1 over all inputs."""

    source: str
    line: int
    id: int
    content: str | conllu.Sentence


def segments(files: Sequence[str], kind: InputKind) -> Iterator[ParseItem]:
    """Yields the segments of all files. Raises DataError, ReadError."""
    ids = itertools.count(1)
    for source in reading.sources(files):
        if kind == "conllu":
            for sentence in conllu.read(source, trees=False):
                yield ParseItem(source.name, sentence.line, next(ids), sentence)
        else:
            for line, text in reading.text_lines(source):
                reading.refuse_nul(text, source.name, line)
                yield ParseItem(source.name, line, next(ids), text)


def parsing(
    model: str,
    kind: InputKind,
    segmentation: Segmentation,
    strict: bool,
    beam: int = udpipe.BEAM,
    lemmas: bool = True,
) -> Callable[[ParseItem], udpipe.Parsed]:
    """The function that parses a segment. Raises Unavailable; it DataError, if `strict`."""
    parser = udpipe.Parser(model, beam, lemmas)
    of_text = parser.sentences if segmentation == "split" else parser.line
    if kind == "tokens":
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
