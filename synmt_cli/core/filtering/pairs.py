"""Pairs of segments: the main stream, and what stands beside it line by line.

Records hold both sides. To text and CoNLL-U a second file gives the target lines. A third
may give a score for each pair, as an aligner wrote it.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from synmt_cli.core.filtering.digests import Digests, digest
from synmt_cli.core.segments.segment import READERS, Segment, line
from synmt_cli.errors import DataError, UsageError, quoted
from synmt_cli.formats.detect import detect
from synmt_cli.io import reading
from synmt_cli.io.reading import Source

T = TypeVar("T")
SIDES = ("source", "target")
_SCORE = re.compile(r"(?:.*\|\|\|)?\s*([+-]?(?:[0-9]+\.?[0-9]*(?:[eE][+-]?[0-9]+)?|inf))\s*")


@dataclass(frozen=True, slots=True)
class Pair:
    """A segment. texts: the source line, and the target line where there is one.

    beside: the target line if another file gives it. score: as an aligner wrote it.
    """

    segment: Segment
    texts: tuple[str, ...]
    beside: str | None = None
    score: float | None = None

    @property
    def is_empty(self) -> bool:
        """Whether no side has anything but white space, and nothing failed."""
        return self.segment.status in ("ok", "empty") and not any(map(str.strip, self.texts))

    def both(self, option: str) -> tuple[str, str]:
        """Source and target. Raises what a segment without a target raises."""
        if len(self.texts) < len(SIDES):
            raise self.segment.missing("tgt", option)
        return self.texts[0], self.texts[1]

    def written(self) -> tuple[bytes, bytes]:
        """What goes to the main output, and to that of the target lines."""
        return self.segment.written(), b"" if self.beside is None else line(self.beside)

    def rejected(self, reason: str) -> bytes:
        """One record with the reason."""
        return self.segment.rejected(reason, self.beside)

    def annotated(self, reason: str) -> bytes:
        """One record that is skipped if there is a reason."""
        return self.segment.annotated(reason, self.beside)


@contextlib.contextmanager
def opened(
    paths: Sequence[str], kind: str = "auto", target: str | None = None, scores: str | None = None
) -> Iterator[Iterator[Pair]]:
    """The pairs of files of one kind: text, jsonl, conllu, or what the first one shows.

    target, scores: files beside all of them together. Raises ReadError, UsageError; its
    iterator DataError, also where the files do not have as many lines.
    """
    with contextlib.ExitStack() as stack:
        first = stack.enter_context(reading.open_source(paths[0]))
        if kind == "auto":
            kind, first = detect(first)
        if kind == "jsonl" and target is not None:
            raise UsageError("--tgt is for text and CoNLL-U: records have their own field tgt")
        others = [
            None if path is None else stack.enter_context(reading.open_source(path))
            for path in (target, scores)
        ]
        yield pairs(_segments(kind, first, paths[1:]), others[0], others[1])


def _segments(kind: str, first: Source, further: Sequence[str]) -> Iterator[Segment]:
    yield from READERS[kind](first)
    for path in further:
        with reading.open_source(path) as source:
            yield from READERS[kind](source)


def digests_of(paths: Iterable[str]) -> Digests:
    """Of every line of files of any kind, but blank ones; both sides of records.

    Raises DataError, ReadError.
    """
    found = Digests()
    for path in paths:
        with opened([path]) as pairs_of_file:
            for pair in pairs_of_file:
                for text in filter(str.strip, pair.texts):
                    found.add(digest([text]))
    return found


def pairs(
    segments: Iterable[Segment], target: Source | None = None, scores: Source | None = None
) -> Iterator[Pair]:
    """Each segment with its line of the other sources. Raises DataError, ReadError."""
    sources = [source for source in (target, scores) if source is not None]
    for number, (segment, lines) in enumerate(parallel(segments, sources), 1):
        beside = None if target is None else lines[0]
        score = None if scores is None else score_of(lines[-1], scores.name, number)
        other = segment.target if beside is None else beside
        both = (segment.text,) if other is None else (segment.text, other)
        yield Pair(segment, both, beside, score)


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


def score_of(text: str, source: str, number: int) -> float:
    """The score of a line: a number, alone or behind the last `|||` (fast_align -s).

    Raises DataError.

    >>> score_of("0-0 1-2 ||| -12.5", "scores", 1)
    -12.5
    """
    if not (match := _SCORE.fullmatch(text)):
        raise DataError(source, number, f"not a number, alone or behind |||: {quoted(text)}")
    return float(match[1])
