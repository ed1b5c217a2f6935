"""The kind of a stream by its first record: JSONL records, CoNLL-U, transitions, or text.

    jsonl        the first line begins an object: `{"` or `{}`
    conllu       a row with an id (`1<TAB>`, `1-2<TAB>`), or a comment that CoNLL-U has and text
                 does not: sent_id, text, newdoc, newpar, global.columns, synmt_…
    transitions  the first line of several tokens has an arc; only where transitions are expected
    text         anything else, an empty stream included

A broken record that begins like one is taken for one, so that its reader says what is wrong.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, BinaryIO, Literal

from synmt_cli.formats.transitions import is_symbol
from synmt_cli.io import compression
from synmt_cli.io.reading import BOM, BUFFER, Source, fail, sources

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

Kind = Literal["text", "jsonl", "conllu"]
TreeKind = Literal["text", "jsonl", "conllu", "transitions"]

OBJECT = re.compile(rb'\s*\{\s*["}]')
ROW = re.compile(rb"[0-9]+(?:[-.][0-9]+)?\t")
COMMENT = re.compile(rb"#\s*(?:(?:sent_id|text)\s*=|newdoc\b|newpar\b|global\.columns|synmt_)")
LOOK_AHEAD = BUFFER  # bytes; plain comments beyond these are text


def detect(source: Source) -> tuple[Kind, Source]:
    """The kind of a stream, and the stream from its first byte. Waits for one record at most."""
    head = b""
    kind: Kind | None = None
    while kind is None and len(head) < LOOK_AHEAD:
        line = _line(source, head)
        kind = _kind(line.removeprefix(BOM) if not head else line)
        head += line
    return kind or "text", replayed(head, source)


def detect_trees(source: Source) -> tuple[TreeKind, Source]:
    """The same, but with transitions as a kind of their own.

    Waits for one record at most, or for the first line of several tokens.
    """
    kind, source = detect(source)
    if kind != "text":
        return kind, source
    head = b""
    while len(head) < LOOK_AHEAD and (line := _line(source, head)):
        head += line
        tokens = line.rstrip(b"\r\n").split(b" ")
        if len(tokens) > 1:
            has_arc = any(is_symbol(token.decode("utf-8", "replace")) for token in tokens)
            return "transitions" if has_arc else "text", replayed(head, source)
    return "text", replayed(head, source)


def detected(
    paths: Sequence[str],
    kind: str = "auto",
    detect: Callable[[Source], tuple[str, Source]] = detect,
) -> Iterator[tuple[str, Source]]:
    """Yields each input with its kind: the one given, or with `auto` the one that it shows.

    Raises ReadError.
    """
    for source in sources(paths):
        yield detect(source) if kind == "auto" else (kind, source)


def _line(source: Source, head: bytes) -> bytes:
    """The next line; b"" at the end, and where the data is damaged after `head`.

    The reader of what comes before will say so. Raises DataError if nothing does.
    """
    try:
        return source.file.readline(LOOK_AHEAD)
    except compression.Damaged as error:
        if not head:
            fail(source, 1, error)
        return b""


def replayed(head: bytes, source: Source) -> Source:
    """A source that gives `head`, which was read from it, once more before the rest."""
    return Source(source.name, io.BufferedReader(_Replayed(head, source.file), BUFFER))


def _kind(line: bytes) -> Kind | None:
    """The kind that a line shows; None for a comment or blank line before a record."""
    if OBJECT.match(line):
        return "jsonl"
    if ROW.match(line) or COMMENT.match(line):
        return "conllu"
    undecided = line.startswith(b"#") or line in (b"\n", b"\r\n")
    return None if undecided else "text"


class _Replayed(io.RawIOBase):
    """A stream whose beginning has been read already."""

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
