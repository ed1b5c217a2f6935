"""Sentences as drawings: a headline, then a row for each word, then an empty line.

A row is the word's part of the tree (trees/drawing.py), then FORM, UPOS and DEPREL.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING

from synmt_cli.core.jobs.delinearize import DelinearizeJob, TransitionLine
from synmt_cli.core.pictures import sentences as pictures
from synmt_cli.core.pictures.sentences import Picture
from synmt_cli.core.segments.comments import LINE, lines, status_of
from synmt_cli.core.text.display_width import cut, padded, width
from synmt_cli.core.trees.drawing import ASCII, UNICODE, TooLarge, branches
from synmt_cli.errors import DataError, printable
from synmt_cli.formats import conllu, record
from synmt_cli.formats.conllu import Sentence
from synmt_cli.formats.detect import detect_file, detected
from synmt_cli.formats.record import OK, Record
from synmt_cli.io import reading

if TYPE_CHECKING:
    from synmt_cli.formats.attention import Attention

WORD_ROOM = 40  # columns to which words are aligned; a longer word shifts the rest of its row
LEAST_ROOM = 8  # columns of a word that is cut
GAP = 2  # columns between a word, its tag and its label
_RESET = "\x1b[0m"
_BOLD, _DIM, _CYAN, _GREEN, _YELLOW = (f"\x1b[{code}m" for code in (1, 2, 36, 32, 33))


def read(files: Sequence[str], kind: str, job: DelinearizeJob) -> Iterator[Record | Attention]:
    """Yields a record for each segment that is drawn: each block of CoNLL-U is one.

    Or the weights of each segment, where the input is of `analyze attention`.

    Ids that the input does not give count from 1 over all of it. job: reads transitions, its
    format conllu. Raises DataError, ReadError.
    """
    transitions = partial(of_transitions, job=job)
    readers = {"jsonl": record.read, "conllu": of_conllu, "text": _of_text}
    n = 0
    for kind_of_file, source in detected(files, kind, detect_file):
        if kind_of_file == "attention":
            from synmt_cli.formats import attention  # which loads numpy

            yield from attention.read(source)
            continue
        _refuse_others(kind_of_file, source)
        for one in readers.get(kind_of_file, transitions)(source, n + 1):
            n += 1
            yield one


def read_pictures(
    files: Sequence[str], kind: str, job: DelinearizeJob, by_line: bool = False
) -> Iterator[Picture]:
    """Yields the picture of each segment, which also has multiword tokens and empty nodes.

    by_line: whether the sentences of one synmt_line are one segment, as they are in a record. Other
    arguments, ids and errors are those of `read`.
    """
    n = 0
    for kind_of_file, source in detected(files, kind, detect_file):
        _refuse_others(kind_of_file, source)
        if kind_of_file == "conllu":
            found = _of_blocks(source, n + 1, by_line)
        else:
            reader = {"jsonl": record.read, "text": _of_text}.get(
                kind_of_file, partial(of_transitions, job=job)
            )
            found = (
                pictures.of_record(one, (source.name, number))
                for number, one in enumerate(reader(source, n + 1), 1)
            )
        for one in found:
            n += 1
            yield one


def _of_blocks(source: reading.Source, first: int, by_line: bool) -> Iterator[Picture]:
    """first: the id of the first if it has none."""
    sentences = conllu.read(source)
    if by_line:
        for number, line in enumerate(lines(sentences), first):
            yield pictures.of_line(line, str(number))
    else:
        for number, sentence in enumerate(sentences, first):
            yield pictures.of_sentence(sentence, str(number))


OTHERS = {
    "metrics": "the metrics of a run; synmt info shows their course",
    "attention": "attention weights; view draws them as --format text",
    "segment-scores": "scores of segments",
    "table": "a table",
    "json": "JSON; synmt info says of what",
    "config": "settings; synmt info shows them",
}


def _refuse_others(kind: str, source: reading.Source) -> None:
    """Raises DataError for a file that synmt writes and that has no trees."""
    if kind in OTHERS:
        raise DataError(source.name, 1, f"no trees: it is {OTHERS[kind]}")


def of_conllu(source: reading.Source, first: int = 1) -> Iterator[Record]:
    """Yields the record of each block. first: the id of the first if it has none."""
    for number, sentence in enumerate(conllu.read(source), first):
        yield _of_sentence(sentence, str(number))


def _of_sentence(sentence: Sentence, id: str) -> Record:
    metadata = sentence.metadata()
    id = metadata.get("sent_id") or metadata.get(LINE) or id
    text = metadata.get("text")
    status, reason = status_of(sentence)
    if status != OK:
        return Record(id, text or "", status, reason)
    return Record(
        id,
        " ".join(sentence.forms) if text is None else text,
        words=sentence.forms,
        heads=[head - 1 for head in sentence.heads],
        upos=sentence.upos,
        deprels=sentence.deprels,
    )


def of_transitions(source: reading.Source, first: int, job: DelinearizeJob) -> Iterator[Record]:
    """Yields the record of each line. first: the id of the first."""
    for number, data in enumerate(reading.lines(source), 1):
        line = TransitionLine(source.name, number, str(first + number - 1), data, is_json=False)
        batch = conllu.RawBlocks(source.name, number, job.run(line).data)
        yield from (_of_sentence(one, line.id) for one in conllu.sentences(batch))


def _of_text(source: reading.Source, first: int) -> Iterator[Record]:
    """Nothing for an empty source. Raises DataError for any other."""
    for _ in reading.text_lines(source):
        raise DataError(source.name, 1, "text has no trees: synmt parse makes them")
    yield from ()


@dataclass(frozen=True, slots=True)
class Drawing:
    """How segments are drawn. width: the longest line in columns, None for any length."""

    ascii: bool = False
    width: int | None = None
    colour: bool = False

    def block(self, one: Record | Attention) -> str:
        """The lines of a segment, and an empty line."""
        if not isinstance(one, Record):
            from synmt_cli.core.jobs import view_attention

            return view_attention.block(one, self.ascii, self.width)
        status = "" if one.words else "no tree"
        if one.status != OK:
            status = f"{one.status}: {one.reason}" if one.reason else one.status
        parts = [(f"# {printable(one.id)}", _BOLD)]
        if status:
            parts.append((f"  ({printable(status)})", _YELLOW))
        if one.src:
            parts.append((f"  {printable(one.src)}", ""))
        rows = [self._line(parts)]
        if not status:
            try:
                rows += self._rows(one)
            except TooLarge as problem:
                rows.append(self._line([(f"not drawn: {problem}", _YELLOW)]))
        return "\n".join(rows) + "\n\n"

    def _rows(self, one: Record) -> Iterator[str]:
        lines = branches(one.heads or [], ASCII if self.ascii else UNICODE)
        words, tags, labels = (
            [*map(printable, texts or ())] for texts in (one.words, one.upos, one.deprels)
        )
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
