"""What a stream holds, by its first record: JSONL records, CoNLL-U, or text.

    jsonl    the first line begins an object: `{"` or `{}`
    conllu   a row with an id (`1<TAB>`, `1-2<TAB>`), or a comment that CoNLL-U has and text
             does not: sent_id, text, newdoc, newpar, global.columns, synmt_…
    text     anything else, an empty stream included

What begins like a record and is broken is taken for one, so that the reader says what is wrong.
"""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING, BinaryIO, Literal

from synmt_cli.streams import BOM, BUFFER, Source

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

Kind = Literal["text", "jsonl", "conllu"]

OBJECT = re.compile(rb'\s*\{\s*["}]')
ROW = re.compile(rb"[0-9]+(?:[-.][0-9]+)?\t")
COMMENT = re.compile(rb"#\s*(?:(?:sent_id|text)\s*=|newdoc\b|newpar\b|global\.columns|synmt_)")
LOOK_AHEAD = BUFFER  # bytes; plain comments beyond these are text


def detect(source: Source) -> tuple[Kind, Source]:
    """The kind of a stream, and the stream from its first byte. Waits for one record at most."""
    head = b""
    kind: Kind | None = None
    while kind is None and len(head) < LOOK_AHEAD:
        line = source.file.readline(LOOK_AHEAD)
        kind = _kind(line.removeprefix(BOM) if not head else line)
        head += line
    replayed = io.BufferedReader(_Replayed(head, source.file), BUFFER)
    return kind or "text", Source(source.name, replayed)


def _kind(line: bytes) -> Kind | None:
    """What the line decides, None for nothing: comments and blank lines before a record."""
    if OBJECT.match(line):
        return "jsonl"
    if ROW.match(line) or COMMENT.match(line):
        return "conllu"
    undecided = line.startswith(b"#") or line in (b"\n", b"\r\n")
    return None if undecided else "text"


class _Replayed(io.RawIOBase):
    """A stream whose beginning was already read."""

    def __init__(self, head: bytes, file: BinaryIO) -> None:
        self._head, self._file = head, file

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        view = memoryview(buffer).cast("B")
        data = self._head[: len(view)] or self._file.read1(len(view))  # type: ignore[attr-defined]
        self._head = self._head[len(view) :]
        view[: len(data)] = data
        return len(data)
