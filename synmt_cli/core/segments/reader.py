"""The segments of files, one at a time, whatever their kind, and lines parallel to them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, TypeVar

from synmt_cli.core.segments import comments
from synmt_cli.core.segments.bad_trees import INSTEAD, OnBadTree
from synmt_cli.core.segments.segment import RecordSegment, Segment, TextSegment, TreeSegment
from synmt_cli.errors import other_number
from synmt_cli.formats import conllu, record
from synmt_cli.formats.detect import STATED_BY, detect, detected, guessed, is_empty
from synmt_cli.io import reading
from synmt_cli.io.reading import Source

T = TypeVar("T")
_END = object()  # where a column has no more items


def text(source: Source) -> Iterator[TextSegment]:
    """The lines of a source. Raises DataError, ReadError."""
    for number, content in reading.text_lines(source):
        yield TextSegment(content, (source.name, number))


def jsonl(source: Source) -> Iterator[RecordSegment]:
    """The records of a source, not yet parsed. Raises DataError, ReadError."""
    for number, content in enumerate(record.lines(source), 1):
        yield RecordSegment(content, (source.name, number))


def trees(source: Source, on_bad_tree: OnBadTree = "error") -> Iterator[TreeSegment]:
    """The lines of text whose trees are in a source of CoNLL-U. Raises DataError, ReadError."""
    return map(TreeSegment, comments.lines(conllu.read(source, instead=INSTEAD[on_bad_tree])))


READERS: dict[str, Callable[[Source], Iterator[Segment]]] = {
    "text": text,
    "jsonl": jsonl,
    "conllu": trees,
}


def _of_kind(kind: str, source: Source, on_bad_tree: OnBadTree) -> Iterator[Segment]:
    return trees(source, on_bad_tree) if kind == "conllu" else READERS[kind](source)


def read(
    paths: Sequence[str],
    kind: str | None = None,
    on_bad_tree: OnBadTree = "error",
    option: str = STATED_BY,
) -> Iterator[Segment]:
    """The segments of files of one kind; with auto, the kind of each file is detected.

    kind: what the user gave by `option`. A command without such an option gives None, which means
    auto. Raises DataError, ReadError.
    """
    for of_file, source in detected(paths, kind or "auto", option=option if kind else ""):
        yield from _of_kind(of_file, source, on_bad_tree)


@dataclass(frozen=True, slots=True)
class Stream:
    """Files of one kind. opened: the first ones, which are open. further: the other ones."""

    kind: str
    opened: Sequence[Source]
    further: Sequence[str]
    on_bad_tree: OnBadTree = "error"

    def __iter__(self) -> Iterator[Segment]:
        """The segments of all files, one file after the other. Raises DataError, ReadError."""
        for source in self.opened:
            yield from _of_kind(self.kind, source, self.on_bad_tree)
        if self.further:
            yield from read(self.further, self.kind, self.on_bad_tree)


@contextmanager
def opened(
    paths: Sequence[str],
    kind: str = "auto",
    on_bad_tree: OnBadTree = "error",
    option: str = STATED_BY,
) -> Iterator[Stream]:
    """Opens files of one kind; with auto, it is detected from the first one that is not empty.

    option: that of the command which gives the kind. Raises DataError, ReadError.
    """
    with ExitStack() as stack:
        opened = [stack.enter_context(reading.open_source(paths[0]))]
        while kind == "auto":
            nothing, opened[-1] = is_empty(opened[-1])
            if nothing and len(opened) < len(paths):
                opened.append(stack.enter_context(reading.open_source(paths[len(opened)])))
            else:
                kind, opened[-1] = guessed(opened[-1], detect, option)
        yield Stream(kind, opened, paths[len(opened) :], on_bad_tree)


def parallel(segments: Iterable[T], sources: Sequence[Source]) -> Iterator[tuple[T, list[str]]]:
    """Each segment with its line of each source.

    Raises DataError at the end of the shortest if a source has another number of lines.
    """
    columns = [segments, *map(reading.text_lines, sources)]
    names = [source.name for source in sources]
    for segment, *lines in rows(columns, names, "the source"):
        yield segment, [content for _, content in lines]


def text_rows(paths: Sequence[str]) -> Iterator[list[str]]:
    """The lines of parallel files of text, side by side. Raises DataError, ReadError."""
    with ExitStack() as stack:
        sources = [stack.enter_context(reading.open_source(path)) for path in paths]
        names = [source.name for source in sources]
        for row in rows([*map(reading.text_lines, sources)], names[1:], names[0]):
            yield [text for _, text in row]


def rows(
    columns: Iterable[Iterable[Any]], names: Sequence[str], first: str
) -> Iterator[tuple[Any, ...]]:
    """Yields the first items of all columns, then the second ones, and so on.

    first, names: the name of the first column and those of the others, for messages. Raises
    DataError at the end of the shortest column if one has another number of items than the first.
    """
    iterators = [*map(iter, columns)]
    for n, row in enumerate(zip_longest(*iterators, fillvalue=_END)):
        if _END in row:
            pairs = zip(row, iterators, strict=True)
            counts = (n + (item is not _END) + sum(1 for _ in rest) for item, rest in pairs)
            n_first = next(counts)
            for name, count in zip(names, counts, strict=True):
                if count != n_first:
                    raise other_number(name, count, "line", first, n_first)
        yield row
