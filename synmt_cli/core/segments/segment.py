"""Segments of any kind: a line of text, a JSONL record, or the CoNLL-U blocks of one line.

Whatever takes time is made on demand: the fields of a record; the text, status and heads of
blocks, which are those of the record that `featurize` makes of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import orjson

from synmt_cli.core.segments.alignment import record_of
from synmt_cli.core.segments.buckets import n_words
from synmt_cli.core.segments.comments import commented, is_placeholder
from synmt_cli.errors import DataError, Place
from synmt_cli.formats import conllu, record
from synmt_cli.formats.conllu import Sentence
from synmt_cli.formats.record import EMPTY, KINDS, OK, Record, tree_problem
from synmt_cli.formats.transitions import is_symbol

BUCKET = "bucket"  # the field, and in CoNLL-U the comment synmt_bucket


class Segment(ABC):
    """One segment. place: the file, and the line where the segment begins."""

    def __init__(self, place: Place) -> None:
        self.place = place

    @property
    @abstractmethod
    def text(self) -> str:
        """The source line."""

    @property
    def target(self) -> str | None:
        """The target line, where the stream itself has it."""
        return None

    @property
    def status(self) -> str:
        """As in a record."""
        return OK

    @property
    def reason(self) -> str:
        """Why the status is failed or skipped."""
        return ""

    @property
    def heads(self) -> Sequence[int] | None:
        """The head of each word, 0-based, -1 for a root; None where there is no tree."""
        return None

    @property
    def length(self) -> int:
        """Source words: of the tree, or where there is none, those between white space."""
        return n_words(self.text)

    def n_pieces(self, side: int) -> int | None:
        """Pieces of the source (0) or the target (1), transitions not counted; None without."""
        return None

    @abstractmethod
    def written(self) -> bytes:
        """The segment as it was read."""

    @abstractmethod
    def marked(self, values: Mapping[str, str], target: str | None = None) -> bytes:
        """The segment with further values. target: a line of another file to add as well."""

    @property
    def parts(self) -> Sequence[bytes]:
        """The bytes for each output of a bucket."""
        return (self.written(),)

    def labelled(self, bucket: str) -> bytes:
        """The segment with the name of its bucket."""
        return self.marked({BUCKET: bucket})


def line(text: str) -> bytes:
    """The line that is read as `text`: one CR before LF would be dropped again."""
    return conllu.encoded(f"{text}\n")


class TextSegment(Segment):
    """A line of text. Marked, it has the values in columns before it."""

    def __init__(self, text: str, place: Place) -> None:
        super().__init__(place)
        self._text = text

    @property
    def text(self) -> str:
        """The line."""
        return self._text

    def written(self) -> bytes:
        """The line."""
        return line(self._text)

    def marked(self, values: Mapping[str, str], target: str | None = None) -> bytes:
        """`VALUE<TAB>SOURCE<TAB>TARGET`."""
        return line(
            "\t".join([*values.values(), self._text, *([] if target is None else [target])])
        )


class RecordSegment(Segment):
    """A line of JSONL. Raises DataError for a bad one when a field is asked for.

    Marked, it has the values as its last fields, or in place of those of the same name.
    """

    def __init__(self, json: bytes, place: Place) -> None:
        super().__init__(place)
        self.json = json

    @cached_property
    def fields(self) -> dict[str, Any]:
        """The fields, each of its type."""
        return record.fields_from_bytes(self.json, *self.place)

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
        """The field status, or what a reader of records fills in. Any string."""
        return str(self.fields.get("status", OK if self.text else EMPTY))

    @property
    def reason(self) -> str:
        """The field reason."""
        return str(self.fields.get("reason", ""))

    @property
    def heads(self) -> Sequence[int] | None:
        """The field heads. Raises DataError unless it is a tree, or several."""
        if "heads" not in self.fields:
            return None
        if problem := tree_problem({k: v for k, v in self.fields.items() if k in KINDS}):
            raise DataError(*self.place, problem)
        heads: list[int] = self.fields["heads"]
        return heads

    @property
    def length(self) -> int:
        """The number of words; without the field, of words between white space in src."""
        words = self.fields.get("words")
        return n_words(self.text) if words is None else len(words)

    def n_pieces(self, side: int) -> int | None:
        """The number of pieces or tgt_pieces; with transitions alone, of those that are pieces."""
        if (pieces := self.fields.get(("pieces", "tgt_pieces")[side])) is not None:
            return len(pieces)
        if side and (transitions := self.fields.get("transitions")) is not None:
            return sum(not is_symbol(one) for one in transitions)
        return None

    def written(self) -> bytes:
        """The line as it was."""
        return self.json + b"\n"

    def marked(self, values: Mapping[str, str], target: str | None = None) -> bytes:
        """The record with further fields."""
        return orjson.dumps({**self.fields, **values}, option=orjson.OPT_APPEND_NEWLINE)


class TreeSegment(Segment):
    """The sentences of one line. Marked, the first has the values as comments, `synmt_NAME`."""

    def __init__(self, sentences: list[Sentence]) -> None:
        super().__init__((sentences[0].source, sentences[0].line))
        self.sentences = sentences

    @cached_property
    def record(self) -> Record:
        """The record of the line. Its id is "" unless the comments give one."""
        return record_of(self.sentences, "")[0]

    @property
    def text(self) -> str:
        """The comment text, or the text that the forms make."""
        return self.record.src

    @property
    def status(self) -> str:
        """`failed` also where the tokens are not those of the text."""
        return self.record.status

    @property
    def reason(self) -> str:
        """The comment, or what is wrong with the tokens."""
        return self.record.reason or ""

    @property
    def heads(self) -> Sequence[int] | None:
        """The heads of all sentences together."""
        return self.record.heads or ()

    @property
    def length(self) -> int:
        """Syntactic words; of a placeholder the words of its text."""
        return sum(
            n_words(one.comment("text") or "") if is_placeholder(one) else len(one.words)
            for one in self.sentences
        )

    def written(self) -> bytes:
        """The blocks."""
        return b"".join(map(conllu.to_bytes, self.sentences))

    def marked(self, values: Mapping[str, str], target: str | None = None) -> bytes:
        """The blocks, the first with further comments; the target is synmt_tgt."""
        added = dict(values) if target is None else {**values, "tgt": target}
        comments = {f"synmt_{name}": value for name, value in added.items()}
        first = commented(self.sentences[0], comments)
        return b"".join(map(conllu.to_bytes, [first, *self.sentences[1:]]))

    def labelled(self, bucket: str) -> bytes:
        """The blocks, each with the comment synmt_bucket."""
        label = {f"synmt_{BUCKET}": bucket}
        return b"".join(conllu.to_bytes(commented(one, label)) for one in self.sentences)
