"""CoNLL-U cut into work: blocks of whole lines of text as bytes, with their targets.

Worker processes read and check the blocks; their parent only cuts.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, repeat
from typing import Any, NamedTuple

from synmt_cli import pool
from synmt_cli.core.segments.bad_trees import INSTEAD, OnBadTree, located
from synmt_cli.core.segments.comments import LINE, LineStarts
from synmt_cli.errors import DataError, SynmtError, counted, quoted
from synmt_cli.formats import conllu
from synmt_cli.formats.conllu import RawBlocks, Sentence
from synmt_cli.formats.record import UNPARSED
from synmt_cli.io import reading
from synmt_cli.io.reading import Source

_MARK = LINE.encode()
# As `Sentence.metadata` reads comments.
_LINE, _SENT_ID = (
    re.compile(rb"^#[ \t]*%s[ \t]*= ?(.*)$" % key, re.MULTILINE) for key in (_MARK, b"sent_id")
)
_BLOCK = re.compile(rb"(?:[^\n]+\n)+\n")
Target = str | RawBlocks


@dataclass(frozen=True, slots=True)
class Work:
    """The blocks of `n` lines. first: the number of the first line over all inputs, from 1.

    is_text: the batch is one line of text without a tree. sizes: how many blocks each line has,
    None for one each. targets: the target of each line, its text or the blocks of its trees; None
    without targets. If there are fewer targets than lines, the other lines are left out.
    """

    batch: RawBlocks
    first: int
    n: int
    sizes: Sequence[int] | None
    targets: Sequence[Target] | None = None
    is_text: bool = False

    def __len__(self) -> int:
        return self.n


@dataclass(slots=True)
class Done:
    """Records made from some work, and what was counted on the way.

    statuses: how many lines of each. first_failure: the first that failed or was skipped, with
    its place. counts: other figures by name. unknown: transitions that are not symbols of the
    vocabulary, how many of each. error: the one that ended the work early.
    """

    records: list[bytes] = field(default_factory=list)
    statuses: Counter[str] = field(default_factory=Counter)
    first_failure: str = ""
    counts: Counter[str] = field(default_factory=Counter)
    unknown: Counter[str] = field(default_factory=Counter)
    error: SynmtError | None = None

    def count(self, status: str, reason: str | None, place: tuple[str, int], strict: bool) -> None:
        """Counts a line. Raises DataError if it failed or was skipped, and `strict` is set."""
        self.statuses[status] += 1
        if status in UNPARSED:
            where = located(place, reason or "")
            if strict:
                raise where
            self.first_failure = self.first_failure or str(where)

    def count_lifted(self, n_words: int) -> None:
        """Counts a tree by the words of it that got another head to make it projective."""
        if n_words:
            self.counts["lifted words"] += n_words
            self.counts["lifted trees"] += 1

    def add(self, other: Done) -> None:
        """Adds the counts of another one, not its records or its error."""
        self.statuses += other.statuses
        self.first_failure = self.first_failure or other.first_failure
        self.counts += other.counts
        self.unknown += other.unknown

    def warnings(self, unit: str) -> Iterator[str]:
        """The warnings of the end. unit: `lines`, `segments`."""
        of_all = f"of {self.statuses.total():,}"
        if n_trees := self.counts["lifted trees"]:
            yield (
                f"{n_trees:,} {of_all} trees were not projective and lifted: "
                f"other heads for {counted(self.counts['lifted words'], 'word')}"
            )
        for status in UNPARSED:
            if n := self.statuses[status]:
                yield f"{n:,} {of_all} {unit} {status}"
        if self.first_failure:
            yield f"the first of them: {self.first_failure}"
        if self.unknown:
            yield (
                f"{self.unknown.total():,} transitions of {len(self.unknown):,} kinds are not in "
                f"the vocabulary, such as {quoted(min(self.unknown))}: synmt linearize "
                "--format symbols writes those needed for synmt vocab train --symbols"
            )


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


def do(make: Callable[[Work, Done], Iterator[bytes]], work: Work) -> Done:
    """The records that `make` yields. An error of it is kept in the result, after the records."""
    result = Done()
    try:
        for record in make(work, result):
            result.records.append(record)
    except SynmtError as error:
        result.error = error
    return result


def tallied(parts: Iterable[Done], total: Done) -> Iterator[list[bytes]]:
    """Yields the records of each part, counted in `total`; then raises the part's error."""
    for part in parts:
        total.add(part)
        yield part.records
        if part.error is not None:
            raise part.error


def where(parts: Sequence[Work]) -> str:
    """The lines of some pieces of work, for messages."""
    first, last = parts[0].batch, parts[-1].batch
    end = last.line + last.data.count(b"\n") - 1
    return pool.span((first.source, first.line), (last.source, end))


def where_of_lines(items: Sequence[tuple[Any, ...]]) -> str:
    """The lines of items that begin with their file and line, for messages."""
    return pool.span(items[0][:2], items[-1][:2])


def contents(
    work: Work, on_bad_tree: OnBadTree = "error"
) -> Iterator[tuple[int, list[Sentence] | str]]:
    """The number of each line and its sentences, or its text. Raises DataError."""
    if work.is_text:
        batch = work.batch
        yield work.first, reading.decode(batch.data[:-1], batch.source, batch.line)
    else:
        yield from lines(work, on_bad_tree)


def lines(work: Work, on_bad_tree: OnBadTree = "error") -> Iterator[tuple[int, list[Sentence]]]:
    """The number and the sentences of each line. Raises DataError."""
    sentences = conllu.sentences(work.batch, instead=INSTEAD[on_bad_tree])
    if work.sizes is None:
        groups: Iterable[list[Sentence]] = ([sentence] for sentence in sentences)
    else:
        groups = filter(None, (list(islice(sentences, size)) for size in work.sizes))
    return enumerate(groups, work.first)


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
    """How many bytes end lines, without the last line if more of it may follow.

    None where everything belongs to a line that began before.
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
        problem = f"{counted(n_targets, unit)}, but the source has {n_segments:,}"
        raise DataError(name, None, problem)


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
    at: int  # where in the batch
    begins: bool  # whether a line of text begins here
    marked: bool  # whether it says which line it belongs to


def _blocks(data: bytes, starts: LineStarts) -> Iterator[_Block]:
    for match in _BLOCK.finditer(data):
        line, sent_id = (
            comment[1].decode("utf-8", "replace") if comment else None
            for comment in (pattern.search(match[0]) for pattern in (_LINE, _SENT_ID))
        )
        yield _Block(match.start(), starts.begins(line, sent_id), line is not None)
