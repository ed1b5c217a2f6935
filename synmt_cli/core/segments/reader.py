"""The segments of files, one at a time, whatever their kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from synmt_cli.core.segments import comments
from synmt_cli.core.segments.segment import RecordSegment, Segment, TextSegment, TreeSegment
from synmt_cli.formats import conllu
from synmt_cli.formats.detect import detect, detected
from synmt_cli.io import reading
from synmt_cli.io.reading import Source


def text(source: Source) -> Iterator[TextSegment]:
    """The lines of a source. Raises DataError, ReadError."""
    for number, content in reading.text_lines(source):
        yield TextSegment(content, (source.name, number))


def jsonl(source: Source) -> Iterator[RecordSegment]:
    """The records of a source, not yet parsed. Raises DataError, ReadError."""
    for number, content in enumerate(reading.lines(source), 1):
        yield RecordSegment(content, (source.name, number))


def trees(source: Source) -> Iterator[TreeSegment]:
    """The lines that a source of CoNLL-U parses. Raises DataError, ReadError."""
    return map(TreeSegment, comments.lines(conllu.read(source)))


READERS: dict[str, Callable[[Source], Iterator[Segment]]] = {
    "text": text,
    "jsonl": jsonl,
    "conllu": trees,
}


def read(paths: Sequence[str], kind: str = "auto") -> Iterator[Segment]:
    """The segments of files of one kind, or each of the kind that it shows (auto).

    Raises DataError, ReadError.
    """
    for of_file, source in detected(paths, kind):
        yield from READERS[of_file](source)


@dataclass(frozen=True, slots=True)
class Stream:
    """Files of one kind, of which the first is open."""

    kind: str
    first: Source
    further: Sequence[str]

    def __iter__(self) -> Iterator[Segment]:
        """The segments of all files, one file after the other. Raises DataError, ReadError."""
        yield from READERS[self.kind](self.first)
        if self.further:
            yield from read(self.further, self.kind)


@contextmanager
def opened(paths: Sequence[str], kind: str = "auto") -> Iterator[Stream]:
    """Files of one kind, or of the kind that the first one shows. Raises DataError, ReadError."""
    with reading.open_source(paths[0]) as first:
        if kind == "auto":
            kind, first = detect(first)
        yield Stream(kind, first, paths[1:])
