"""Sentences as drawings: a headline, then a row for each word, then an empty line.

A row is the word's part of the tree (trees/drawing.py), then FORM, UPOS and DEPREL.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

from synmt_cli.core.jobs.delinearize import DelinearizeJob, TransitionLine
from synmt_cli.core.pictures import sentences as pictures
from synmt_cli.core.pictures.sentences import Picture
from synmt_cli.core.segments.comments import lines
from synmt_cli.core.trees.drawing import ASCII, UNICODE, TooLarge, branches
from synmt_cli.core.trees.heads import ROOT
from synmt_cli.errors import DataError, printable
from synmt_cli.formats import conllu, record
from synmt_cli.formats.detect import detect_file, detected
from synmt_cli.io import reading
from synmt_cli.io.display_width import cut, padded, width

if TYPE_CHECKING:
    from synmt_cli.formats.attention import Attention

WORD_ROOM = 40  # columns to which words are aligned; a longer word shifts the rest of its row
LEAST_ROOM = 8  # columns of a word that is cut
GAP = 2  # columns between a word, its tag and its label
_RESET = "\x1b[0m"
_BOLD, _DIM, _CYAN, _GREEN, _YELLOW = (f"\x1b[{code}m" for code in (1, 2, 36, 32, 33))


def read(files: Sequence[str], kind: str, job: DelinearizeJob) -> Iterator[Picture | Attention]:
    """Yields a picture of each segment; each block of CoNLL-U is a segment.

    For input from `analyze attention`, yields the weights of each segment instead.

    Ids that the input does not give count from 1 over all of it. job: reads transitions; its
    format is conllu. Raises DataError, ReadError.
    """
    n = 0
    for kind_of_file, source in detected(files, kind, detect_file, option=""):
        if kind_of_file == "attention":
            from synmt_cli.formats import attention  # which loads numpy

            yield from attention.read(source)
            continue
        for one in _of_source(source, kind_of_file, n + 1, job):
            n += 1
            yield one


def read_pictures(
    files: Sequence[str], kind: str, job: DelinearizeJob, by_line: bool = False
) -> Iterator[Picture]:
    """Yields pictures as `read` does, but refuses attention weights.

    by_line: whether the sentences of one synmt_line are one segment, as they are in a record.
    """
    n = 0
    for kind_of_file, source in detected(files, kind, detect_file, option=""):
        for one in _of_source(source, kind_of_file, n + 1, job, by_line):
            n += 1
            yield one


def _of_source(
    source: reading.Source, kind: str, first: int, job: DelinearizeJob, by_line: bool = False
) -> Iterator[Picture]:
    """The pictures of a source. first: the id of the first if it has none. Raises DataError."""
    if kind in OTHERS:
        raise DataError(source.name, 1, f"no trees: it is {OTHERS[kind]}")
    match kind:
        case "conllu":
            return of_conllu(source, first, by_line)
        case "jsonl":
            return of_records(source, first)
        case "text":
            return _of_text(source)
        case _:
            return _of_transitions(source, first, job)


def of_conllu(source: reading.Source, first: int = 1, by_line: bool = False) -> Iterator[Picture]:
    """Yields the picture of each block, or of each line.

    first: the id of the first if it has none.
    """
    if by_line:
        for number, line in enumerate(lines(conllu.read(source)), first):
            yield pictures.of_line(line, str(number))
    else:
        for number, sentence in enumerate(conllu.read(source), first):
            yield pictures.of_sentence(sentence, str(number))


def of_records(source: reading.Source, first: int = 1) -> Iterator[Picture]:
    """Yields the picture of each record. first: the id of the first if it has none."""
    for number, one in enumerate(record.read(source, first), 1):
        yield pictures.of_record(one, (source.name, number))


def _of_transitions(source: reading.Source, first: int, job: DelinearizeJob) -> Iterator[Picture]:
    for number, data in enumerate(reading.lines(source), 1):
        line = TransitionLine(source.name, number, str(first + number - 1), data, is_json=False)
        batch = conllu.RawBlocks(source.name, number, job.run(line).data)
        yield from (pictures.of_sentence(one, line.id) for one in conllu.sentences(batch))


def _of_text(source: reading.Source) -> Iterator[Picture]:
    """Yields nothing for an empty source. Raises DataError for any other."""
    for _ in reading.text_lines(source):
        raise DataError(source.name, 1, "text has no trees: synmt parse makes them")
    yield from ()


OTHERS = {
    "metrics": "the metrics of a run; synmt info shows their course",
    "attention": "attention weights; view draws them as --format text",
    "segment-scores": "scores of segments",
    "table": "a table",
    "json": "JSON; synmt info says of what",
    "config": "settings; synmt info shows them",
}


@dataclass(frozen=True, slots=True)
class Drawing:
    """How segments are drawn. width: the longest line in columns, None for any length."""

    ascii: bool = False
    width: int | None = None
    colour: bool = False

    def block(self, one: Picture | Attention) -> str:
        """The lines of a segment, and an empty line."""
        if not isinstance(one, Picture):
            from synmt_cli.core.jobs import view_attention

            return view_attention.block(one, self.ascii, self.width)
        parts = [(f"# {printable(one.id)}", _BOLD)]
        if one.problem:
            parts.append((f"  ({printable(one.problem)})", _YELLOW))
        if one.text:
            parts.append((f"  {printable(one.text)}", ""))
        rows = [self._line(parts)]
        if not one.problem:
            try:
                rows += self._rows(one)
            except TooLarge as problem:
                rows.append(self._line([(f"not drawn: {problem}", _YELLOW)]))
        return "\n".join(rows) + "\n\n"

    def _rows(self, one: Picture) -> Iterator[str]:
        """A row for each word; empty nodes have none."""
        tree = sorted(one.tree().items())
        word_of = {column: word for word, (column, _) in enumerate(tree)} | {ROOT: ROOT}
        heads = [word_of[arc.head] for _, arc in tree]
        lines = branches(heads, ASCII if self.ascii else UNICODE)
        words = [printable(one.columns[column].form) for column, _ in tree]
        tags = [printable(one.columns[column].tag) or "_" for column, _ in tree]
        labels = [printable(arc.label) for _, arc in tree]
        first = next(lines)
        taken = len(first) + 1 + 2 * GAP + _widest(tags) + _widest(labels)
        if self.width is not None:
            words = [cut(word, max(self.width - taken, LEAST_ROOM)) for word in words]
        columns = [min(_widest(texts), WORD_ROOM) for texts in (words, tags)]
        for line, word, tag, label in zip([first, *lines], words, tags, labels, strict=True):
            parts = (
                (f"{line} ", _DIM),
                (padded(word, columns[0]) + " " * GAP, ""),
                (padded(tag, columns[1]) + " " * GAP, _CYAN),
                (label, _GREEN),
            )
            yield self._line(parts)

    def _line(self, parts: Sequence[tuple[str, str]]) -> str:
        """A line of (text, colour), cut to the width."""
        if self.width is not None:
            text = cut("".join(text for text, _ in parts), self.width)
            ends = accumulate(len(part) for part, _ in parts)
            begins = [0, *ends]
            parts = [
                (text[begin : begin + len(part)], colour)
                for begin, (part, colour) in zip(begins, parts, strict=False)
            ]
        if not self.colour:
            return "".join(text for text, _ in parts).rstrip(" ")
        return "".join(f"{colour}{text}{_RESET}" if colour else text for text, colour in parts)


def _widest(texts: Sequence[str]) -> int:
    return max(map(width, texts), default=0)
