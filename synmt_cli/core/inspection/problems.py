"""Every problem of a stream, in the words of its reader: a problem does not end the search.

The search goes on with the next sentence of CoNLL-U and the next line of everything else. Where
neither can be found (a line without end, damaged compression) the rest is not checked, which the
last problem says.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import takewhile

from synmt_cli.core.jobs.delinearize import DelinearizeJob, TransitionLine
from synmt_cli.core.segments.comments import LineStarts
from synmt_cli.core.text.vocabulary import Vocabulary
from synmt_cli.core.transitions.delinearizer import Broken, Delinearizer, begins_like_pieces
from synmt_cli.errors import DataError, SynmtError
from synmt_cli.formats import conllu, record
from synmt_cli.formats.detect import TreeKind
from synmt_cli.io import reading


def problem_of(part: Callable[[], object]) -> Iterator[SynmtError]:
    """The error of reading a part, if there is one."""
    try:
        part()
    except SynmtError as error:
        yield error


@dataclass(slots=True)
class ProblemFinder:
    """Looks for problems. n_segments: all so far. is_whole: whether all input was checked.

    counting: whether segments of CoNLL-U, which may be several sentences, are counted.
    vocabulary: of the pieces of transitions.
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
            problem = f"{error.problem}; the rest was not checked"
            yield DataError(error.source, error.line, problem)

    def _of_lines(self, source: reading.Source, kind: TreeKind) -> Iterator[DataError]:
        lines = DelinearizeJob(Delinearizer(self.vocabulary), "text")
        for number, data in enumerate(reading.lines(source), 1):
            self.n_segments += 1
            try:
                if kind == "jsonl":
                    record.refuse_text(data, source, number)
                    one = record.from_bytes(data, source.name, number)
                    _refuse_no_tree(one, source.name, number)
                elif kind == "transitions":
                    lines.run(TransitionLine(source.name, number, "", data, is_json=False))
                else:
                    text = reading.decode(data, source.name, number)
                    reading.refuse_nul(text, source.name, number)
            except DataError as error:
                yield error

    def _of_conllu(self, source: reading.Source) -> Iterator[DataError]:
        starts = LineStarts()
        for batch in conllu.batches(source):
            try:
                starts = self._read(batch, starts)
            except DataError:
                for block in _blocks(batch):
                    try:
                        starts = self._read(block, starts)
                    except DataError as error:
                        self.n_segments += starts.begins_with(_comments_of(block))
                        yield error

    def _read(self, batch: conllu.RawBlocks, starts: LineStarts) -> LineStarts:
        """Counts the segments of a batch. Raises DataError, and then counts none."""
        after = LineStarts(starts.line)
        n = sum(
            self.counting and after.begins_with(sentence) for sentence in conllu.sentences(batch)
        )
        self.n_segments += n
        return after


def _refuse_no_tree(one: record.Record, name: str, number: int) -> None:
    """Raises DataError for a record whose transitions build no tree.

    If a record names no vocabulary, its tokens may be words or pieces.
    """
    if one.transitions is None:
        return
    likely = one.vocab is not None or begins_like_pieces(one.transitions)
    problems = []
    for of_pieces in (likely,) if one.vocab is not None else (likely, not likely):
        try:
            Delinearizer(of_pieces=of_pieces).sentence(one.transitions, escaped=False)
            return
        except Broken as problem:
            problems.append(problem)
    raise DataError(name, number, f"transitions: {problems[0]}")


def _comments_of(block: conllu.RawBlocks) -> conllu.Sentence:
    """The comments of a sentence whose words cannot be read, as a sentence without words."""
    lines = block.data.decode("utf-8", "replace").split("\n")
    return conllu.Sentence([*takewhile(lambda line: line[:1] == "#", lines)], [], [], [])


def _blocks(batch: conllu.RawBlocks) -> Iterator[conllu.RawBlocks]:
    """Yields a batch one block at a time."""
    line = batch.line
    for block in batch.data.split(b"\n\n"):
        rows = block.lstrip(b"\n")
        line += len(block) - len(rows)
        if rows:
            yield conllu.RawBlocks(batch.source, line, rows + b"\n\n")
        line += rows.count(b"\n") + 2
