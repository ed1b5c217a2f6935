"""Inputs that are parallel, segment by segment."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from synmt_cli.core.segments.buckets import n_words
from synmt_cli.errors import DataError, printable
from synmt_cli.io import reading
from synmt_cli.io.reading import Source

T = TypeVar("T")


def parallel(segments: Iterable[T], sources: Sequence[Source]) -> Iterator[tuple[T, list[str]]]:
    """Each segment with its line of each source.

    Raises DataError where a source has another number of lines, at the end of the shortest.
    """
    segments = iter(segments)
    readers = [reading.text_lines(source) for source in sources]
    n = 0
    while True:
        segment = next(segments, None)
        row = [next(reader, None) for reader in readers]
        lines = [one[1] for one in row if one is not None]
        if segment is None or len(lines) < len(row):
            break
        n += 1
        yield segment, lines
    n_segments = n + (segment is not None) + sum(1 for _ in segments)
    for source, taken, reader in zip(sources, row, readers, strict=True):
        n_lines = n + (taken is not None) + sum(1 for _ in reader)
        if n_lines != n_segments:
            problem = f"{n_lines:,} lines, but there are {n_segments:,} source segments"
            raise DataError(source.name, None, problem)


class ParallelLines(NamedTuple):
    """One line of each of several texts. length: words of the first. lines: those to write."""

    length: int
    lines: list[bytes]


def text(sources: Sequence[Source], n_hidden: int = 0) -> Iterator[ParallelLines]:
    """Parallel lines; the first source gives the length. Raises DataError, ReadError.

    n_hidden: how many of the first sources are not to be written. Sources of different
    lengths are an error, at the end of the shortest, that names both counts.
    """
    readers = [reading.lines(source) for source in sources]
    number, row = 0, [next(reader, None) for reader in readers]
    while None not in row:
        number += 1
        lines = [line for line in row if line is not None]
        texts = [
            reading.decode(line, source.name, number)
            for source, line in zip(sources, lines, strict=True)
        ]
        yield ParallelLines(n_words(texts[0]), lines[n_hidden:])
        row = [next(reader, None) for reader in readers]
    counts = [
        number + (line is not None) + sum(1 for _ in reader)
        for line, reader in zip(row, readers, strict=True)
    ]
    for source, count in zip(sources, counts, strict=True):
        if count != counts[0]:
            expected = f"{counts[0]:,} in {printable(sources[0].name)}"
            raise DataError(source.name, None, f"{count:,} lines, but {expected}")
