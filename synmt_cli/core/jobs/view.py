"""Sentences as drawings: a headline, then a row for each word, then an empty line.

# 1  The dog sees the cat .
   ╭─ The   DET    det
 ╭─┴─ dog   NOUN   nsubj
─┼─── sees  VERB   root
 │ ╭─ the   DET    det
 ├─┴─ cat   NOUN   obj
 ╰─── .     PUNCT  punct
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from synmt_cli.core.jobs.delinearize import DelinearizeJob, TransitionLine
from synmt_cli.core.text.display_width import cut, padded, width
from synmt_cli.core.trees.drawing import ASCII, UNICODE, TooLarge, branches
from synmt_cli.errors import printable
from synmt_cli.formats import conllu, record
from synmt_cli.formats.conllu import Sentence
from synmt_cli.formats.record import Record
from synmt_cli.io import reading

WORD_ROOM = 40  # columns to which words are aligned; longer ones push what is behind them
LEAST_ROOM = 8  # columns of a word that is cut
GAP = 2  # columns between a word, its tag and its label
_RESET = "\x1b[0m"
_BOLD, _DIM, _CYAN, _GREEN, _YELLOW = (f"\x1b[{code}m" for code in (1, 2, 36, 32, 33))


@dataclass(slots=True)
class View:
    """What is drawn of a segment. status: why there is nothing to draw, or "".

    heads: 0-based, -1 for a root. tags may be "_".
    """

    id: str
    text: str
    status: str = ""
    words: list[str] = field(default_factory=list)
    heads: list[int] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)


def of_sentences(source: reading.Source, first: int = 1) -> Iterator[View]:
    """Yields what each block of CoNLL-U shows. first: the id of the first without one."""
    for number, sentence in enumerate(conllu.read(source), first):
        yield _of_sentence(sentence, str(number))


def _of_sentence(sentence: Sentence, id: str) -> View:
    metadata = sentence.metadata()
    id = metadata.get("sent_id") or metadata.get("synmt_line") or id
    text = metadata.get("text")
    status = metadata.get("synmt_status", "ok")
    if status != "ok":
        return View(id, text or "", _why(status, metadata.get("synmt_reason")))
    heads = [head - 1 for head in sentence.heads]
    text = " ".join(sentence.forms) if text is None else text
    return View(id, text, "", sentence.forms, heads, sentence.upos, sentence.deprels)


def of_records(source: reading.Source, first: int = 1) -> Iterator[View]:
    """Yields what each record shows."""
    return map(_of_record, record.read(source, first))


def _of_record(one: Record) -> View:
    if one.status != "ok":
        return View(one.id, one.src, _why(one.status, one.reason))
    if not one.words:
        return View(one.id, one.src, "no tree")
    return View(one.id, one.src, "", one.words, one.heads or [], one.upos or [], one.deprels or [])


def _why(status: str, reason: str | None) -> str:
    return f"{status}: {reason}" if reason else status


def of_transitions(source: reading.Source, lines: DelinearizeJob, first: int = 1) -> Iterator[View]:
    """Yields what each line of transitions shows. lines: with `format` conllu."""
    for number, data in enumerate(reading.lines(source), 1):
        line = TransitionLine(source.name, number, str(first + number - 1), data, is_json=False)
        batch = conllu.RawBlocks(source.name, number, lines.run(line).data)
        yield from (_of_sentence(one, line.id) for one in conllu.sentences(batch))


@dataclass(frozen=True, slots=True)
class Drawing:
    """How segments are drawn. width: the longest line in columns, None for any length."""

    ascii: bool = False
    width: int | None = None
    colour: bool = False

    def block(self, view: View) -> str:
        """The lines of a segment, the empty one behind it included."""
        rows = [self._headline(view)]
        if not view.status:
            try:
                rows += self._rows(view)
            except TooLarge as problem:
                rows.append(self._line([(f"not drawn: {problem}", _YELLOW)]))
        return "\n".join(rows) + "\n\n"

    def _headline(self, view: View) -> str:
        parts = [(f"# {printable(view.id)}", _BOLD)]
        if view.status:
            parts.append((f"  ({printable(view.status)})", _YELLOW))
        if view.text:
            parts.append((f"  {printable(view.text)}", ""))
        return self._line(parts)

    def _rows(self, view: View) -> Iterator[str]:
        lines = branches(view.heads, ASCII if self.ascii else UNICODE)
        words, tags, labels = (
            [*map(printable, texts)] for texts in (view.words, view.tags, view.labels)
        )
        first = next(lines)
        taken = len(first) + 1 + 2 * GAP + _widest(tags) + _widest(labels)
        room = None if self.width is None else max(self.width - taken, LEAST_ROOM)
        words = words if room is None else [cut(word, room) for word in words]
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
