"""Segments of any kind: a line of text, a JSONL record, or the CoNLL-U blocks of one line.

Each has

    place           the file, and the line where it begins
    text, target    the source line, and the target line where the stream itself has it
    status, reason  as in a record
    heads           the head of each word, 0-based, -1 for a root; None or empty without a tree
    length          source words: of the tree, or without one, those between white space
    n_pieces        pieces of the source (0) or the target (1), without transitions; None if none
                    are given
    written         its bytes, as they were read
    marked          its bytes with further values, and with a target line of another file

Whatever takes time is made on demand: the fields of a record; the text, status and heads of
blocks, which are the same as in the record that `featurize` makes of them.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import orjson

from synmt_cli.core.segments.alignment import record_of
from synmt_cli.core.segments.buckets import n_words
from synmt_cli.core.segments.comments import REASON, STATUS, commented, is_placeholder
from synmt_cli.errors import DataError, Place
from synmt_cli.formats import conllu, record
from synmt_cli.formats.conllu import Sentence
from synmt_cli.formats.record import EMPTY, KINDS, OK, SKIPPED, Record, tree_problem
from synmt_cli.formats.transitions import length_in_pieces


def line(text: str) -> bytes:
    """The line that is read as `text`."""
    return ended(text.encode())


def ended(text: bytes) -> bytes:
    """The line that is read as these bytes. One CR at its end would be lost, so it gets another."""
    return text + (b"\r\n" if text.endswith(b"\r") else b"\n")


def side_by_side(texts: Sequence[str], *marks: str) -> bytes:
    """One line of parallel texts, with TABs between them, after the marks.

    A TAB inside one of several texts becomes a space, because it would shift the columns. One text
    alone is the last column and stays as it is.
    """
    if len(texts) > 1:
        texts = [text.replace("\t", " ") for text in texts]
    return line("\t".join([*marks, *texts]))


class TextSegment:
    """A line of text. Marked, it is `VALUE<TAB>SOURCE<TAB>TARGET`."""

    target: str | None = None
    status: str = OK
    reason: str = ""
    heads: Sequence[int] | None = None

    def __init__(self, text: str, place: Place) -> None:
        self.text = text
        self.place = place

    @property
    def length(self) -> int:
        return n_words(self.text)

    def n_pieces(self, side: int) -> int | None:
        return None

    def written(self) -> bytes:
        return line(self.text)

    def marked(self, values: Mapping[str, str], target: str | None = None) -> bytes:
        texts = [self.text] if target is None else [self.text, target]
        return side_by_side(texts, *values.values())


class RecordSegment:
    """A line of JSONL. Marked, it has the values as fields, which come last if they are new.

    Its properties raise DataError for a bad line.
    """

    def __init__(self, json: bytes, place: Place) -> None:
        self.json = json
        self.place = place

    @cached_property
    def fields(self) -> dict[str, Any]:
        """The fields, each of its type."""
        return record.fields_from_bytes(self.json, *self.place)

    @property
    def text(self) -> str:
        return str(self.fields["src"])

    @property
    def target(self) -> str | None:
        return self.fields.get("tgt")

    @property
    def status(self) -> str:
        """The field, or what a reader of records fills in; any string."""
        return str(self.fields.get("status", OK if self.text.strip() else EMPTY))

    @property
    def reason(self) -> str:
        return str(self.fields.get("reason", ""))

    @property
    def heads(self) -> Sequence[int] | None:
        """The field. Raises DataError unless it is a tree, or several."""
        if "heads" not in self.fields:
            return None
        if problem := tree_problem({k: v for k, v in self.fields.items() if k in KINDS}):
            raise DataError(*self.place, problem)
        heads: list[int] = self.fields["heads"]
        return heads

    @property
    def length(self) -> int:
        words = self.fields.get("words")
        return n_words(self.text) if words is None else len(words)

    def n_pieces(self, side: int) -> int | None:
        """The number of pieces or tgt_pieces; with transitions alone, how many are pieces."""
        if (pieces := self.fields.get(("pieces", "tgt_pieces")[side])) is not None:
            return len(pieces)
        if side and (transitions := self.fields.get("transitions")) is not None:
            return length_in_pieces(transitions)
        return None

    def written(self) -> bytes:
        return self.json + b"\n"

    def marked(self, values: Mapping[str, str], target: str | None = None) -> bytes:
        return orjson.dumps({**self.fields, **values}, option=orjson.OPT_APPEND_NEWLINE)


class TreeSegment:
    """The blocks of one line. Marked, each has the values as comments, `synmt_NAME`.

    The first also has the target.
    """

    target: str | None = None

    def __init__(self, sentences: list[Sentence]) -> None:
        self.sentences = sentences
        self.place = sentences[0].source, sentences[0].line

    @cached_property
    def record(self) -> Record:
        """The record of the line. Its id is "" unless the comments give one."""
        return record_of(self.sentences, "")[0]

    @property
    def text(self) -> str:
        return self.record.src

    @property
    def status(self) -> str:
        """`failed` also where the tokens are not those of the text."""
        return self.record.status

    @property
    def reason(self) -> str:
        return self.record.reason or ""

    @property
    def heads(self) -> Sequence[int] | None:
        return self.record.heads or ()

    @property
    def tree(self) -> Record:
        """The record, with the tree even of a line that `filter` marked as skipped."""
        if self.status != SKIPPED or any(map(is_placeholder, self.sentences)):
            return self.record
        unmarked = dict.fromkeys((STATUS, REASON))
        return record_of([commented(one, unmarked) for one in self.sentences], "")[0]

    @property
    def length(self) -> int:
        """The number of syntactic words; for a placeholder, of the words in its text."""
        return sum(
            n_words(one.comment("text") or "") if is_placeholder(one) else len(one.words)
            for one in self.sentences
        )

    def n_pieces(self, side: int) -> int | None:
        return None

    def written(self) -> bytes:
        return b"".join(map(conllu.to_bytes, self.sentences))

    def marked(self, values: Mapping[str, str], target: str | None = None) -> bytes:
        comments = {f"synmt_{name}": value for name, value in values.items()}
        blocks = [commented(one, comments) for one in self.sentences]
        if target is not None:
            blocks[0] = commented(blocks[0], {"synmt_tgt": target})
        return b"".join(map(conllu.to_bytes, blocks))


Segment = TextSegment | RecordSegment | TreeSegment
