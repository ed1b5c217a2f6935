"""Files cut into work: whole lines of text, or of CoNLL-U, with their targets.

Only the parent of worker processes cuts; the workers read and check the blocks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice, repeat
from typing import NamedTuple

from synmt_cli.core.jobs.work import Target, Work
from synmt_cli.core.segments.comments import LINE, LineStarts
from synmt_cli.errors import SynmtError, other_number
from synmt_cli.formats import conllu
from synmt_cli.formats.conllu import RawBlocks
from synmt_cli.io import reading
from synmt_cli.io.reading import Source

_MARK = LINE.encode()
# Patterns for comments, the same as `Sentence.metadata` reads.
_LINE, _SENT_ID = (
    re.compile(rb"^#[ \t]*%s[ \t]*= ?(.*)$" % key, re.MULTILINE) for key in (_MARK, b"sent_id")
)
_BLOCK = re.compile(rb"(?:[^\n]+\n)+\n")
# A block that is wrong may have comments after its first word, such as those of a sentence that
# follows without a blank line. They do not say which line the block belongs to.
_COMMENTS = re.compile(rb"(?:#[^\n]*\n)*")


def batches(files: Sequence[str]) -> Iterator[RawBlocks]:
    """Yields the blocks of files of CoNLL-U, one file after the other."""
    for source in reading.sources(files):
        yield from conllu.batches(source)


def text_lines(files: Sequence[str]) -> Iterator[Work]:
    """Yields each line of files of text, one file after the other. Raises DataError, ReadError."""
    first = 1
    for source in reading.sources(files):
        for number, line in enumerate(reading.lines(source), 1):
            yield Work(RawBlocks(source.name, number, line + b"\n"), first, 1, None, is_text=True)
            first += 1


def cut_by_sentence(batches: Iterable[RawBlocks]) -> Iterator[Work]:
    """Work in which each sentence is a line."""
    return _numbered((batch, None) for batch in batches)


def cut_by_line(batches: Iterable[RawBlocks]) -> Iterator[Work]:
    """Work in which every line of text is whole."""
    return _numbered((batch, _sizes(batch)) for batch in _whole_lines(batches))


def _numbered(parts: Iterable[tuple[RawBlocks, list[int] | None]]) -> Iterator[Work]:
    first = 1
    for batch, sizes in parts:
        yield (work := Work(batch, first, len(batch) if sizes is None else len(sizes), sizes))
        first += len(work)


def _whole_lines(batches: Iterable[RawBlocks]) -> Iterator[RawBlocks]:
    """Batches of whole lines.

    The last line waits for the next batch if its blocks have `# synmt_line`: more may follow.
    """
    held: list[RawBlocks] = []  # parts of a line
    for batch in batches:
        if held and (held[0].source != batch.source or batch.line == 1):  # another file
            yield _joined(held)
            held = []
        if held and not batch.data.strip(b"\n"):
            held.append(batch)
            continue
        if not held:
            starts = LineStarts()
        n = _n_whole(batch.data, starts)
        if n is None:
            held.append(batch)
            continue
        if held or n:
            yield _joined([*held, replace(batch, data=batch.data[:n])])
        line = batch.line + batch.data.count(b"\n", 0, n)
        held = [RawBlocks(batch.source, line, batch.data[n:])] if n < len(batch.data) else []
    if held:
        yield _joined(held)


def _n_whole(data: bytes, starts: LineStarts) -> int | None:
    """How many bytes are whole lines: all but the last line, if more of it may follow.

    None if that last line began before `data`.
    """
    last = begin = None
    for last in _blocks(data, starts) if _MARK in data else ():
        begin = last.at if last.begins else begin
    return begin if last is not None and last.marked else len(data)


def _joined(parts: Sequence[RawBlocks]) -> RawBlocks:
    return replace(parts[0], data=b"".join(part.data for part in parts))


def with_targets(parts: Iterable[Work], targets: Source) -> Iterator[Work]:
    """The same work with the target line of each line. Raises DataError if the numbers differ."""
    texts = (text for _, text in reading.text_lines(targets))
    return _paired(parts, texts, targets.name, "line")


def with_target_trees(parts: Iterable[Work], targets: Source) -> Iterator[Work]:
    """The same work with the blocks of each target line, cut into lines as the sources are.

    Raises DataError if the numbers differ.
    """
    return _paired(parts, _lines(conllu.batches(targets)), targets.name, "segment")


def _paired(
    parts: Iterable[Work], targets: Iterator[Target], name: str, unit: str
) -> Iterator[Work]:
    n_targets = n_segments = 0
    parts = iter(parts)
    for work in parts:
        own: list[Target] = []
        try:
            own.extend(islice(targets, len(work)))
        except SynmtError:
            yield replace(work, targets=own)  # `own` holds what came before the error
            raise
        n_targets += len(own)
        n_segments += len(work)
        yield replace(work, targets=own)
        if len(own) < len(work):
            break
    n_segments += sum(map(len, parts))
    n_targets += sum(1 for _ in targets)
    if n_targets != n_segments:
        raise other_number(name, n_targets, unit, "the source", n_segments)


def _lines(batches: Iterable[RawBlocks]) -> Iterator[RawBlocks]:
    """Yields the blocks of one line at a time."""
    for work in cut_by_line(batches):
        sizes = iter(work.sizes or repeat(1))
        line, at = work.batch.line, 0
        blocks = _BLOCK.finditer(work.batch.data)
        for size in sizes:
            if not (own := list(islice(blocks, size))):
                break
            begin, end = own[0].start(), own[-1].end()
            line += work.batch.data.count(b"\n", at, begin)
            yield RawBlocks(work.batch.source, line, work.batch.data[begin:end])
            line += work.batch.data.count(b"\n", begin, end)
            at = end


def _sizes(batch: RawBlocks) -> list[int] | None:
    if _MARK not in batch.data:
        return None
    sizes: list[int] = []
    for block in _blocks(batch.data, LineStarts()):
        if block.begins or not sizes:
            sizes.append(1)
        else:
            sizes[-1] += 1
    return sizes


class _Block(NamedTuple):
    at: int  # the index of its first byte in the batch
    begins: bool  # whether a line of text begins here
    marked: bool  # whether it says which line it belongs to


def _blocks(data: bytes, starts: LineStarts) -> Iterator[_Block]:
    for match in _BLOCK.finditer(data):
        end = _COMMENTS.match(data, match.start()).end()  # type: ignore[union-attr]
        line, sent_id = (
            comment[1].decode("utf-8", "replace") if comment else None
            for comment in (
                pattern.search(data, match.start(), end) for pattern in (_LINE, _SENT_ID)
            )
        )
        yield _Block(match.start(), starts.begins(line, sent_id), line is not None)
