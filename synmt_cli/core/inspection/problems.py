"""Every problem of a stream, as its reader names it: what is wrong never ends the search.

CoNLL-U goes on with the next sentence, everything else with the next line. Where no next one
can be found (a line without end, damaged compression) the rest is not looked at, and it says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from synmt_cli.core.jobs.delinearize import DelinearizeJob, TransitionLine
from synmt_cli.core.segments.alignment import begins_segment
from synmt_cli.core.text.vocabulary import Vocabulary
from synmt_cli.core.transitions.delinearizer import Delinearizer
from synmt_cli.errors import DataError
from synmt_cli.formats import conllu, record
from synmt_cli.formats.detect import TreeKind
from synmt_cli.io import reading


@dataclass(slots=True)
class Search:
    """Looks for problems. n_segments: so far, sound or not. is_whole: False if it gave up.

    counting: whether segments are counted in CoNLL-U, where lines of text may be several
    sentences. vocabulary: of the pieces of transitions.
    """

    counting: bool = False
    vocabulary: Vocabulary | None = None
    n_segments: int = 0
    is_whole: bool = True

    def problems(self, source: reading.Source, kind: TreeKind) -> Iterator[DataError]:
        """Yields each problem of a source. Raises ReadError."""
        each = self._of_conllu(source) if kind == "conllu" else self._of_lines(source, kind)
        try:
            yield from each
        except DataError as error:
            self.is_whole = False
            problem = f"{error.problem}; nothing behind it was checked"
            yield DataError(error.source, error.line, problem)

    def _of_lines(self, source: reading.Source, kind: TreeKind) -> Iterator[DataError]:
        lines = DelinearizeJob(Delinearizer(self.vocabulary), "text")
        for number, data in enumerate(reading.lines(source), 1):
            self.n_segments += 1
            try:
                if kind == "jsonl":
                    record.from_bytes(data, source.name, number)
                elif kind == "transitions":
                    lines.run(TransitionLine(source.name, number, "", data, is_json=False))
                else:
                    reading.decode(data, source.name, number)
            except DataError as error:
                yield error

    def _of_conllu(self, source: reading.Source) -> Iterator[DataError]:
        before: str | None = None
        for batch in conllu.batches(source):
            try:
                before = self._read(batch, before)
            except DataError:
                for block in _blocks(batch):
                    try:
                        before = self._read(block, before)
                    except DataError as error:
                        self.n_segments += 1
                        before = None
                        yield error

    def _read(self, batch: conllu.RawBlocks, before: str | None) -> str | None:
        """Counts the segments of a batch. Raises DataError, and then counts none."""
        if not self.counting:
            for _ in conllu.sentences(batch):
                pass
            return None
        n, before = _count(conllu.sentences(batch), before)
        self.n_segments += n
        return before


def _count(sentences: Iterable[conllu.Sentence], before: str | None) -> tuple[int, str | None]:
    """How many segments begin, and the synmt_line of the last sentence."""
    n = 0
    for sentence in sentences:
        metadata = sentence.metadata()
        line = metadata.get("synmt_line")
        n += begins_segment(before, line, metadata.get("sent_id"))
        before = line
    return n, before


def _blocks(batch: conllu.RawBlocks) -> Iterator[conllu.RawBlocks]:
    """Yields a batch one block at a time."""
    line = batch.line
    for block in batch.data.split(b"\n\n"):
        rows = block.lstrip(b"\n")
        line += len(block) - len(rows)
        if rows:
            yield conllu.RawBlocks(batch.source, line, rows + b"\n\n")
        line += rows.count(b"\n") + 2
