"""Text, or CoNLL-U with or without trees, to CoNLL-U: what a process of `synmt parse` does."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

from synmt_cli.core.segments.known_trees import NO_FILE, KnownFile, KnownTrees, missing
from synmt_cli.core.text import udpipe
from synmt_cli.errors import DataError
from synmt_cli.formats import conllu
from synmt_cli.formats.record import UNPARSED
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
    known: KnownFile = NO_FILE,
) -> Callable[[ParseItem], udpipe.Parsed]:
    """The function that parses a segment. Raises Unavailable.

    The function raises DataError for a failed or skipped segment, if `strict`. known: a file with
    trees of lines, which are then not parsed. model: "" for none; then a line without a known tree
    is a DataError, and a line whose known tree failed has failed, too.
    """
    trees = KnownTrees(*known) if known.path else None
    if model:
        parse = _by_model(udpipe.Parser(model, beam, lemmas), kind, segmentation)
    else:
        parse = _only_known(known.path, trees)

    def parsed(item: ParseItem) -> udpipe.Parsed:
        block, failure = None, ""
        if trees and isinstance(item.content, str):
            block = trees.block(item.content, str(item.id))
            failure = trees.failure(item.content)
        if block:
            return udpipe.Parsed(block, is_known=True)
        result = parse(item)
        if strict and result.status in UNPARSED:
            raise DataError(item.source, item.line, result.reason)
        return replace(result, known_failure=failure) if failure else result

    return parsed


def _by_model(
    parser: udpipe.Parser, kind: InputKind, segmentation: Segmentation
) -> Callable[[ParseItem], udpipe.Parsed]:
    of_text = parser.sentences if segmentation == "split" else parser.line
    if kind == "tokens":
        of_text = parser.tokens

    def parse(item: ParseItem) -> udpipe.Parsed:
        if isinstance(item.content, conllu.Sentence):
            return parser.again(item.content)
        return of_text(item.content, str(item.id))

    return parse


def _only_known(path: str, trees: KnownTrees | None) -> Callable[[ParseItem], udpipe.Parsed]:
    def parse(item: ParseItem) -> udpipe.Parsed:
        line = str(item.content)
        if blank := udpipe.unparsed(line, str(item.id)):
            return blank
        if trees and (failure := trees.failure(line)):
            return udpipe.failed(line, str(item.id), failure)
        raise DataError(item.source, item.line, missing(path, line))

    return parse
