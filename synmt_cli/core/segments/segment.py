"""Segments of any kind as a filter sees them, and how each is written again.

text: a line. jsonl: a record, its line kept as it was. conllu: the blocks of one line, read
as `featurize` reads them, so that text, tree and status are those that the record will have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import orjson

from synmt_cli.core.segments import alignment
from synmt_cli.errors import DataError, SynmtError, UsageError, quoted
from synmt_cli.formats import conllu, record
from synmt_cli.formats.conllu import Sentence
from synmt_cli.formats.record import KINDS, STATUSES, Record, tree_problem
from synmt_cli.formats.transitions import is_symbol
from synmt_cli.io import reading
from synmt_cli.io.reading import Source

SKIPPED = "skipped"
# What a test needs and a line of text cannot have.
_NEEDED = {
    "tgt": "both sides: give the other one by --tgt",
    "pieces": "records with pieces (synmt featurize --spm)",
    "tgt_pieces": "records with pieces (synmt featurize --spm --tgt)",
    "heads": "trees: CoNLL-U, or records",
}


class Segment(Protocol):
    """A segment of the main stream. status, reason: as in a record."""

    @property
    def text(self) -> str:
        """The source line."""
        ...

    @property
    def target(self) -> str | None:
        """The target line, where the stream itself has it."""
        ...

    @property
    def status(self) -> str:
        """A value of STATUSES."""
        ...

    @property
    def reason(self) -> str:
        """Why it is failed or skipped."""
        ...

    def heads(self, option: str) -> Sequence[int]:
        """The head of each word, 0-based, -1 a root. Raises `missing` where there is no tree."""
        ...

    def n_pieces(self, side: int, option: str) -> int:
        """Subword pieces of the source (0) or the target (1), transitions not counted."""
        ...

    def missing(self, what: str, option: str) -> SynmtError:
        """The error for a test that needs what is not there. what: a field of the record."""
        ...

    def written(self) -> bytes:
        """As it was."""
        ...

    def rejected(self, reason: str, target: str | None) -> bytes:
        """With the reason, for the file of rejects. target: the line of another file."""
        ...

    def annotated(self, reason: str, target: str | None) -> bytes:
        """With status `skipped` and the reason, if there is one; text has a first column."""
        ...


def line(text: str) -> bytes:
    """The line that is read as `text`: one CR before LF would be dropped again."""
    return f"{text}\r\n".encode() if text.endswith("\r") else f"{text}\n".encode()


@dataclass(frozen=True, slots=True)
class TextSegment:
    """A line of text."""

    text: str
    target: str | None = field(default=None, init=False)
    status: str = field(default="ok", init=False)
    reason: str = field(default="", init=False)

    def heads(self, option: str) -> Sequence[int]:
        """Text has no trees."""
        raise self.missing("heads", option)

    def n_pieces(self, side: int, option: str) -> int:
        """Text has no pieces."""
        raise self.missing("pieces", option)

    def missing(self, what: str, option: str) -> SynmtError:
        """A wrong use, whatever the line."""
        return UsageError(f"{option} needs {_NEEDED[what]}")

    def written(self) -> bytes:
        """The line."""
        return line(self.text)

    def rejected(self, reason: str, target: str | None) -> bytes:
        """`REASON<TAB>SOURCE<TAB>TARGET`."""
        columns = [reason, self.text] if target is None else [reason, self.text, target]
        return line("\t".join(columns))

    def annotated(self, reason: str, target: str | None) -> bytes:
        """The same, with `ok` for a reason where it is kept."""
        return self.rejected(reason or "ok", target)


@dataclass(frozen=True, slots=True)
class RecordSegment:
    """The fields of a record, its line as it was, and the file and number of the line."""

    fields: dict[str, Any]
    json: bytes
    place: tuple[str, int]

    @property
    def text(self) -> str:
        """The field src."""
        return str(self.fields["src"])

    @property
    def target(self) -> str | None:
        """The field tgt."""
        return self.fields.get("tgt")

    @property
    def status(self) -> str:
        """As a reader of records fills it in."""
        return str(self.fields.get("status", "ok" if self.text else "empty"))

    @property
    def reason(self) -> str:
        """The field reason."""
        return str(self.fields.get("reason", ""))

    def heads(self, option: str) -> Sequence[int]:
        """The field heads; raises DataError unless it is a tree, or several."""
        if "heads" not in self.fields:
            raise self.missing("heads", option)
        if problem := tree_problem({k: v for k, v in self.fields.items() if k in KINDS}):
            raise DataError(*self.place, problem)
        heads: list[int] = self.fields["heads"]
        return heads

    def n_pieces(self, side: int, option: str) -> int:
        """Of pieces or tgt_pieces; where only transitions are there, those that are pieces."""
        name = ("pieces", "tgt_pieces")[side]
        if (pieces := self.fields.get(name)) is not None:
            return len(pieces)
        if side and (transitions := self.fields.get("transitions")) is not None:
            return sum(not is_symbol(one) for one in transitions)
        raise self.missing(name, option)

    def missing(self, what: str, option: str) -> SynmtError:
        """Names the record."""
        return DataError(*self.place, f"field {what} is missing, but {option} needs it")

    def written(self) -> bytes:
        """The line."""
        return self.json + b"\n"

    def rejected(self, reason: str, target: str | None) -> bytes:
        """The record with the field `filtered`, the last one unless it was there."""
        fields = {**self.fields, "filtered": reason}
        return orjson.dumps(fields, option=orjson.OPT_APPEND_NEWLINE)

    def annotated(self, reason: str, target: str | None) -> bytes:
        """The record, skipped unless it had a reason before or is kept."""
        if not reason or self.status != "ok":
            return self.written()
        fields = {**self.fields, "status": SKIPPED, "reason": reason}
        return orjson.dumps(fields, option=orjson.OPT_APPEND_NEWLINE)


@dataclass(frozen=True, slots=True)
class TreeSegment:
    """The sentences of one line, and the record that they make."""

    sentences: list[Sentence]
    record: Record
    target: str | None = field(default=None, init=False)

    @property
    def text(self) -> str:
        """The comment text, or what the forms make."""
        return self.record.src

    @property
    def status(self) -> str:
        """`failed` also where the tokens are not those of the text."""
        return self.record.status

    @property
    def reason(self) -> str:
        """Of the comment, or what is wrong with the tokens."""
        return self.record.reason or ""

    def heads(self, option: str) -> Sequence[int]:
        """Of all the sentences together."""
        return self.record.heads or ()

    def n_pieces(self, side: int, option: str) -> int:
        """Trees have no pieces."""
        raise self.missing("pieces", option)

    def missing(self, what: str, option: str) -> SynmtError:
        """A wrong use, whatever the sentence."""
        return UsageError(f"{option} needs {_NEEDED[what]}")

    def written(self) -> bytes:
        """Its blocks."""
        return b"".join(map(conllu.to_bytes, self.sentences))

    def rejected(self, reason: str, target: str | None) -> bytes:
        """Its blocks, the first with the comment synmt_filtered, and synmt_tgt for the target."""
        added = {"synmt_filtered": reason}
        return self._commented(added if target is None else {**added, "synmt_tgt": target})

    def annotated(self, reason: str, target: str | None) -> bytes:
        """Its blocks, the first skipped unless it had a reason before or is kept."""
        if not reason or self.sentences[0].comment("synmt_status") is not None:
            return self.written()
        return self._commented({"synmt_status": SKIPPED, "synmt_reason": reason})

    def _commented(self, values: dict[str, str]) -> bytes:
        first = self.sentences[0]
        kept = [one for one in first.comments if one[1:].partition("=")[0].strip() not in values]
        added = [f"# {key} = {value}" for key, value in values.items()]
        changed = Sentence([*kept, *added], first.rows, first.words, first.heads)
        return b"".join(map(conllu.to_bytes, [changed, *self.sentences[1:]]))


def text(source: Source) -> Iterator[TextSegment]:
    """The lines of a source. Raises DataError, ReadError."""
    for _, content in reading.text_lines(source):
        yield TextSegment(content)


def jsonl(source: Source) -> Iterator[RecordSegment]:
    """The records of a source. Raises DataError, ReadError."""
    for number, content in enumerate(reading.lines(source), 1):
        fields = record.fields_from_bytes(content, source.name, number)
        status = fields.get("status", "ok")
        if status not in STATUSES:
            problem = f"field status: {quoted(status)} is none of {', '.join(STATUSES)}"
            raise DataError(source.name, number, problem)
        yield RecordSegment(fields, content, (source.name, number))


def trees(source: Source) -> Iterator[TreeSegment]:
    """The lines that a source of CoNLL-U parses. Raises DataError, ReadError."""
    for sentences in alignment.segments(conllu.read(source)):
        yield TreeSegment(sentences, alignment.record_of(sentences, "")[0])


READERS: dict[str, Callable[[Source], Iterator[Segment]]] = {
    "text": text,
    "jsonl": jsonl,
    "conllu": trees,
}
