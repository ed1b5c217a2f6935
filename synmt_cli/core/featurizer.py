"""CoNLL-U to records: trees joined with the line, its pieces, its target, and features.

The unit of work is a Batch of whole lines as bytes, so that a worker process reads, checks
and joins, and its parent only cuts.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import NamedTuple

from synmt_cli import streams
from synmt_cli.core.features import EMITTED, MATRICES, Tree, tree_of
from synmt_cli.core.join import begins_segment, piece_words, record_of
from synmt_cli.core.trees.heads import depths
from synmt_cli.core.vocabulary import Vocabulary
from synmt_cli.errors import DataError, SynmtError, printable
from synmt_cli.formats import conllu, record
from synmt_cli.formats.conllu import Batch, Sentence
from synmt_cli.formats.record import Record
from synmt_cli.streams import Source

LARGEST = 1_000_000  # values of one emitted feature that is not linear in the sentence
_MARK = b"# synmt_line"
_LINE = re.compile(rb"^# synmt_line *= ?(.*)$", re.MULTILINE)
_SENT_ID = re.compile(rb"^# sent_id *= ?(.*)$", re.MULTILINE)
_BLOCK = re.compile(rb"(?:[^\n]+\n)+\n")


@dataclass(frozen=True, slots=True)
class Work:
    """The blocks of some lines. first: the number of the first line over all inputs.

    sizes: how many blocks each line has, None for one each. targets: the target of each
    line, None without targets; if there are fewer, the other lines are left out.
    """

    batch: Batch
    first: int
    sizes: Sequence[int] | None
    targets: Sequence[str] | None = None

    def __len__(self) -> int:
        return len(self.batch) if self.sizes is None else len(self.sizes)


@dataclass(slots=True)
class Done:
    """Records as lines, how many of each status, what failed first, what ended it early."""

    lines: list[bytes] = field(default_factory=list)
    statuses: Counter[str] = field(default_factory=Counter)
    first_failure: str = ""
    error: SynmtError | None = None


@dataclass(frozen=True, slots=True)
class Featurizer:
    """What to add to the trees. emit: names of EMITTED, written in this order."""

    source: Vocabulary | None = None
    target: Vocabulary | None = None
    emit: tuple[str, ...] = ()
    strict: bool = False

    @property
    def fingerprint(self) -> str | None:
        """What the records say about the vocabulary: `SRC`, or `SRC+TGT` if they differ."""
        if self.source is None:
            return None
        if self.target is None or self.target.fingerprint == self.source.fingerprint:
            return self.source.fingerprint
        return f"{self.source.fingerprint}+{self.target.fingerprint}"

    def record(self, sentences: Sequence[Sentence], id: str, target: str | None = None) -> Record:
        """The record of one line. id: for a line whose comments give none."""
        found, tokens = record_of(sentences, id)
        if self.source is not None:
            found.pieces, offsets = self.source.encode(found.src)
            found.piece_word = piece_words(offsets, tokens.spans, tokens.first_words)
            found.vocab = self.fingerprint
        self._add_target(found, target)
        if self.emit:
            self._add_features(found)
        return found

    def text(self, line: str, id: str, target: str | None = None) -> Record:
        """The record of a line without a tree."""
        found = Record(id, line, "empty" if not line.strip() else "ok")
        if self.source is not None:
            found.pieces = self.source.pieces(line)
            found.piece_word = [-1] * len(found.pieces)
            found.vocab = self.fingerprint
        self._add_target(found, target)
        return found

    def _add_target(self, found: Record, target: str | None) -> None:
        if target is not None:
            found.tgt = target
            vocabulary = self.target or self.source
            found.tgt_pieces = None if vocabulary is None else vocabulary.pieces(target)

    def _add_features(self, found: Record) -> None:
        tree = tree_of(found)
        for name in self.emit:
            if (n := _n_values(name, tree)) > LARGEST:
                found.status = "skipped"
                found.reason = f"{name} has {n:,} values, at most {LARGEST:,} are written"
                return
        for name in self.emit:
            found.extra[name] = EMITTED[name](tree)

    def run(self, work: Work) -> Done:
        """The records of a batch. Never raises a SynmtError: what was done before it counts."""
        done = Done()
        try:
            lines = groups(conllu.sentences(work.batch), work.sizes)
            targets = iter(work.targets) if work.targets is not None else None
            for number, sentences in enumerate(lines, work.first):
                target = None
                if targets is not None and (target := next(targets, None)) is None:
                    break
                found = self.record(sentences, str(number), target)
                self._count(done, found, sentences[0])
                done.lines.append(record.to_bytes(found))
        except SynmtError as error:
            done.error = error
        return done

    def _count(self, done: Done, found: Record, sentence: Sentence) -> None:
        done.statuses[found.status] += 1
        if found.status in ("failed", "skipped"):
            where = DataError(sentence.source, sentence.line, printable(found.reason or ""))
            if self.strict and found.status == "failed":
                raise where
            done.first_failure = done.first_failure or str(where)


def _n_values(name: str, tree: Tree) -> int:
    n = len(tree.piece_word)
    if name in MATRICES:
        return n * n
    if name == "path":
        of_word = [*depths(tree.heads), -1]
        return sum(of_word[word] + 1 for word in tree.piece_word)
    return n


def groups(sentences: Iterator[Sentence], sizes: Sequence[int] | None) -> Iterator[list[Sentence]]:
    """The sentences of each line, of which `sizes` says how many they are."""
    if sizes is None:
        for sentence in sentences:
            yield [sentence]
        return
    for size in sizes:
        if group := list(islice(sentences, size)):
            yield group


def works(batches: Iterable[Batch]) -> Iterator[Work]:
    """Cuts batches so that every line is in one piece of work.

    The last line waits for the next batch if its blocks say `# synmt_line`: there may be more.
    """
    first = 1
    held: Batch | None = None
    for batch in batches:
        if held is not None and held.source != batch.source:
            work = _work(held, first)
            first += len(work)
            yield work
            held = None
        if held is not None:
            batch = Batch(held.source, held.line, held.data + batch.data)
            held = None
        if _MARK in batch.data:
            batch, held = _without_last_line(batch)
        if batch.data:
            work = _work(batch, first)
            first += len(work)
            yield work
    if held is not None:
        yield _work(held, first)


def with_targets(parts: Iterable[Work], targets: Source) -> Iterator[Work]:
    """The same work with the target of each line. Raises DataError if the numbers differ."""
    lines = streams.text_lines(targets)
    n_lines = n_segments = 0
    parts = iter(parts)
    for work in parts:
        own: list[str] = []
        try:
            own.extend(text for _, text in islice(lines, len(work)))
        except SynmtError:
            yield replace(work, targets=own)  # `own` holds what came before the error
            raise
        n_lines += len(own)
        n_segments += len(work)
        yield replace(work, targets=own)
        if len(own) < len(work):
            break
    n_segments += sum(map(len, parts))
    n_lines += sum(1 for _ in lines)
    if n_lines != n_segments:
        problem = f"{n_lines:,} lines, but there are {n_segments:,} source segments"
        raise DataError(targets.name, None, problem)


def _work(batch: Batch, first: int) -> Work:
    if _MARK not in batch.data:
        return Work(batch, first, None)
    sizes: list[int] = []
    for block in _blocks(batch.data):
        if block.begins or not sizes:
            sizes.append(1)
        else:
            sizes[-1] += 1
    return Work(batch, first, sizes)


def _without_last_line(batch: Batch) -> tuple[Batch, Batch | None]:
    """(the batch without its last line, that line) if more of the line may follow."""
    last = begin = None
    for last in _blocks(batch.data):
        begin = last.at if last.begins else begin
    if last is None or begin is None or not last.marked:
        return batch, None
    line = batch.line + batch.data.count(b"\n", 0, begin)
    rest = Batch(batch.source, line, batch.data[begin:])
    return Batch(batch.source, batch.line, batch.data[:begin]), rest


class _Block(NamedTuple):
    at: int  # where in the batch
    begins: bool  # whether a line of text begins here
    marked: bool  # whether it says which line it belongs to


def _blocks(data: bytes) -> Iterator[_Block]:
    before: str | None = None
    for match in _BLOCK.finditer(data):
        line, sent_id = (
            found[1].decode("utf-8", "replace") if found else None
            for found in (pattern.search(match[0]) for pattern in (_LINE, _SENT_ID))
        )
        yield _Block(match.start(), begins_segment(before, line, sent_id), line is not None)
        before = line
