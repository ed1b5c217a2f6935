"""The kind of a stream by its first record: JSONL records, CoNLL-U, transitions, or text.

    jsonl        the first line begins an object: `{"` or `{}`
    conllu       a row of four columns or more that begins with an id (`1<TAB>`, `1-2<TAB>`), or a
                 comment that CoNLL-U has and text does not: sent_id, text, newdoc, newpar,
                 global.columns, synmt_…; three columns may be `20-29<TAB>SOURCE<TAB>TARGET`
    transitions  the first line of several tokens has an arc; only where transitions are expected
    text         anything else, an empty stream included

A broken record that begins like one is taken for one, so that its reader says what is wrong.

`info`, `check` and `view` know the other files that synmt writes as well:

    metrics         metrics.jsonl of a run: `{"event": "train"` or `{"event": "dev"`
    attention       JSONL of `analyze attention`: a segment with `"stack"` and no `"src"`
    segment-scores  `SYSTEM<TAB>0.75`, or the same as JSONL
    table           TSV of a report, by the first columns of its header
    json            a document that begins `{` or `[`: a report, or a small file of a run
    config          settings in TOML: `variant = "`, `preset = "`, or `[model]`, `[training]`
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Literal, TypeVar

from synmt_cli.formats.transitions import is_symbol
from synmt_cli.io import compression
from synmt_cli.io.reading import BOM, BUFFER, Source, fail, sources
from synmt_cli.io.replayed import Replayed

K = TypeVar("K", bound=str)
Kind = Literal["text", "jsonl", "conllu"]
TreeKind = Literal["text", "jsonl", "conllu", "transitions"]

FileKind = Literal["metrics", "attention", "segment-scores", "table", "json", "config"]

STATED_BY = "--from"  # the option that states the kind of the input in most commands
OBJECT = re.compile(rb'\s*\{\s*["}]')
ROW = re.compile(rb"[0-9]+(?:[-.][0-9]+)?\t(?:[^\t]*\t){2}")
COMMENT = re.compile(rb"#\s*(?:(?:sent_id|text)\s*=|newdoc\b|newpar\b|global\.columns|synmt_)")
TEXT = rb'"(?:[^"\\]|\\.)*"'  # of JSON
LINES_OF_JSON: dict[FileKind, re.Pattern[bytes]] = {
    "metrics": re.compile(rb'\{"event": ?"'),
    "attention": re.compile(rb'\{"id":%b,"status":%b,("reason":%b,)?"stack":' % (TEXT, TEXT, TEXT)),
    "segment-scores": re.compile(rb'\{\s*"system":\s*%b,\s*"score":' % TEXT),
}
SEGMENT_SCORE = re.compile(rb"[^\t]+\t-?[0-9]+(\.[0-9]+(e-?[0-9]+)?|e-?[0-9]+)\r?\n?")
# The first columns of the tables that commands write as TSV.
TABLES = {
    b"bucket\tsentences\tsystem\tmetric\t": "score",
    b"group\tmetric\tprecision\t": "evaltree",
    b"parser\tgroup\tmetric\t": "evaltree",
    b"run\tlayer\thead\tvariants\t": "analyze awsl",
    b"run\trelation\tlayer\t": "analyze heads",
    b"group\ttask\tclasses\t": "analyze probe",
    b"run\tlayer\trank\t": "analyze probe",
    b"bucket\tn\t%": "bucket-by-length",
    b"phenomenon\tn\t%": "challenge",
    b"reason\tn\t%": "filter",
    b"system\tset\tmetric\t": "score --sign-over",
    b"system\tconstruction\torder\t": "mixup score",
    b"lenpen\tbleu\t": "tune",
    b"setting\tdefault\tvalues\t": "settings",
    b"variant\tpaper\twhat\t": "variants",
}
TOML = re.compile(rb'(variant|preset) = "|\[(model|training)\]')
LOOK_AHEAD = BUFFER  # bytes; plain comments beyond these are text


def detect(source: Source) -> tuple[Kind, Source]:
    """The kind of a stream, and the stream from its first byte. Waits for one record at most."""
    head, kind = b"", None
    for line, head in _ahead(source):
        is_first = len(line) == len(head)
        if kind := _kind(line.removeprefix(BOM) if is_first else line):
            break
    return kind or "text", replayed(head, source)


def is_empty(source: Source) -> tuple[bool, Source]:
    """Whether there is not even one line, and the stream from its first byte."""
    head = _line(source, b"")
    return head in (b"", BOM), replayed(head, source)


def detect_trees(source: Source) -> tuple[TreeKind, Source]:
    """The same as `detect`, but with transitions as a kind of their own.

    Waits for one record at most, or for the first line of several tokens.
    """
    kind, source = detect(source)
    if kind != "text":
        return kind, source
    head = b""
    for line, head in _ahead(source):
        tokens = line.rstrip(b"\r\n").split(b" ")
        if len(tokens) > 1:
            has_arc = any(is_symbol(token.decode("utf-8", "replace")) for token in tokens)
            return "transitions" if has_arc else "text", replayed(head, source)
    return "text", replayed(head, source)


def detect_file(source: Source) -> tuple[TreeKind | FileKind, Source]:
    """The same as `detect_trees`, with every kind of file that synmt writes.

    Waits for one record at most.
    """
    head = b""
    for _, head in _ahead(source):
        if head[-1:] != b"\n" or not _is_aside(head):
            break
    first = head.removeprefix(BOM)
    kind = _other_kind(first)
    source = replayed(head, source)
    return (kind, source) if kind else detect_trees(source)


def _is_aside(head: bytes) -> bool:
    """Whether the last line tells nothing about a TOML file: a comment, or an empty line."""
    last = head[head.rfind(b"\n", 0, -1) + 1 :].strip()
    return not last or (last.startswith(b"#") and not COMMENT.match(last))


def _other_kind(first: bytes) -> FileKind | None:
    """The kind of a file other than those that all commands read. first: its first lines."""
    for kind, pattern in LINES_OF_JSON.items():
        if pattern.match(first):
            return kind
    if table_of(first):
        return "table"
    if SEGMENT_SCORE.fullmatch(first):
        return "segment-scores"
    last = first[first.rfind(b"\n", 0, -1) + 1 :]
    if TOML.match(last):
        return "config"
    is_document = first.strip() in (b"[", b"{") or re.match(rb'\s*\[\s*["{]', first)
    return "json" if is_document else None


def table_of(header: bytes) -> str:
    """The command that writes a table with this header; "" if none does."""
    return next((name for start, name in TABLES.items() if header.startswith(start)), "")


def detect_brackets(source: Source) -> tuple[str, Source]:
    """The same as `detect`, but `penn` for text whose first line begins with a bracket."""
    kind, source = detect(source)
    if kind != "text":
        return kind, source
    head = b""
    for line, head in _ahead(source):
        if line.strip():
            has_bracket = line.removeprefix(BOM).lstrip().startswith(b"(")
            return "penn" if has_bracket else kind, replayed(head, source)
    return kind, replayed(head, source)


def detected(
    paths: Sequence[str],
    kind: str = "auto",
    detect: Callable[[Source], tuple[str, Source]] = detect,
    option: str = STATED_BY,
) -> Iterator[tuple[str, Source]]:
    """Yields each input with its kind: the one given, or with `auto` the one that `detect` finds.

    option: as for `guessed`. Raises ReadError.
    """
    find = partial(guessed, detect=detect, option=option)
    for source in sources(paths):
        yield find(source) if kind == "auto" else (kind, source)


def guessed(
    source: Source, detect: Callable[[Source], tuple[K, Source]], option: str = STATED_BY
) -> tuple[K, Source]:
    """The same as `detect`.

    option: that of the command which could state that the source is text; "" if there is none.
    Readers of JSONL name it if the first line is not a record.
    """
    kind, source = detect(source)
    return kind, replace(source, guessed_for=option if kind == "jsonl" else "")


def _ahead(source: Source) -> Iterator[tuple[bytes, bytes]]:
    """Yields each next line, and all lines read so far, up to LOOK_AHEAD bytes."""
    head = b""
    while len(head) < LOOK_AHEAD and (line := _line(source, head)):
        head += line
        yield line, head


def _line(source: Source, head: bytes) -> bytes:
    """The next line; b"" at the end, and where the data is damaged after `head`.

    The reader of the lines before reports the damage. Raises DataError if there are none.
    """
    try:
        return source.file.readline(LOOK_AHEAD)
    except compression.Damaged as error:
        if not head:
            fail(source, 1, error)
        return b""


def replayed(head: bytes, source: Source) -> Source:
    """A source that gives `head`, which was read from it, once more before the rest."""
    return Source(source.name, io.BufferedReader(Replayed(head, source.file), BUFFER))


def _kind(line: bytes) -> Kind | None:
    """The kind that a line shows; None for a comment or blank line before a record."""
    if OBJECT.match(line):
        return "jsonl"
    if ROW.match(line) or COMMENT.match(line):
        return "conllu"
    undecided = line.startswith(b"#") or line in (b"\n", b"\r\n")
    return None if undecided else "text"
