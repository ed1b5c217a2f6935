"""The JSONL record: one segment with its tree, its pieces and its target, one object a line.

    {"id":"1","status":"ok","src":"A dog.","words":["A","dog","."],"heads":[1,-1,1], …}

Fields that nobody here knows are kept in `extra` and written again behind the known ones.
What is read is checked: types exactly (a boolean is no integer, 1.0 is not 1), lengths, one
tree for each sentence, no key twice. Memory is one line.
"""

from __future__ import annotations

import json
import operator
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import orjson

from synmt_cli.errors import DataError, printable, quoted
from synmt_cli.formats.record_checks import KINDS, extra_problem, tree_problem
from synmt_cli.io import reading

STATUSES = ("ok", "empty", "failed", "skipped")


@dataclass(slots=True)
class Record:
    """One segment. None: the field is absent. Heads and word indices are 0-based, -1 none.

    spans: [begin, end) of each word in characters of `src`; words of a multiword token share
    theirs. heads: -1 is the root. sents: first word of each sentence. piece_word: the word of
    each piece. vocab: fingerprint of the subword model, `SRC+TGT` for two. A record without
    `words` is tree-less.
    """

    id: str
    src: str
    status: str = "ok"
    reason: str | None = None
    words: list[str] | None = None
    spans: list[list[int]] | None = None
    heads: list[int] | None = None
    deprels: list[str] | None = None
    upos: list[str] | None = None
    sents: list[int] = field(default_factory=lambda: [0])
    pieces: list[str] | None = None
    piece_word: list[int] | None = None
    tgt: str | None = None
    tgt_pieces: list[str] | None = None
    transitions: list[str] | None = None
    vocab: str | None = None
    extra: dict[str, Any] = field(default_factory=dict)


FIELDS = tuple(name for name in Record.__dataclass_fields__ if name != "extra")
# The order in which a line shows them.
_ORDER = (
    "id",
    "status",
    "reason",
    *(name for name in FIELDS[1:] if name not in ("status", "reason")),
)


_values = operator.attrgetter(*_ORDER)


def read(source: reading.Source, first: int = 1) -> Iterator[Record]:
    """Yields the records of a source. Raises DataError, ReadError.

    first: the id of the first record if it has none; the next ones count on.
    """
    for number, line in enumerate(reading.lines(source), 1):
        yield from_bytes(line, source.name, number, str(first + number - 1))


def from_bytes(line: bytes, source: str = "<stdin>", number: int = 1, id: str = "1") -> Record:
    """The record of one line. `id` is for a record that has none. Raises DataError."""
    fields = _fields(line, source, number)
    known: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    for name, value in fields.items():
        if (kind := KINDS.get(name)) is None:
            extra[name] = value
        elif problem := kind(value):
            raise DataError(source, number, f"field {name}: {problem}")
        else:
            known[name] = value
    if "src" not in known:
        raise DataError(source, number, "field src is missing")
    known.setdefault("id", id)
    known.setdefault("status", "ok" if known["src"] else "empty")
    if problem := tree_problem(known) or _status_problem(known) or extra_problem(extra):
        raise DataError(source, number, problem)
    return Record(**known, extra=extra)


def fields_from_bytes(line: bytes, source: str, number: int) -> dict[str, Any]:
    """The fields of one line, `src` among them, each of its type. Raises DataError.

    For filters that add a field and leave the others as they are: whether the fields make a
    tree is not looked at, and none is filled in.
    """
    fields = _fields(line, source, number)
    for name, value in fields.items():
        if (kind := KINDS.get(name)) is not None and (problem := kind(value)):
            raise DataError(source, number, f"field {name}: {problem}")
    if "src" not in fields:
        raise DataError(source, number, "field src is missing")
    if problem := extra_problem({name: fields[name] for name in fields if name not in KINDS}):
        raise DataError(source, number, problem)
    return fields


def to_bytes(record: Record) -> bytes:
    """The line of a record, LF included."""
    fields = {
        name: value
        for name, value in zip(_ORDER, _values(record), strict=True)
        if value is not None and not (name == "sents" and value == [0])
    }
    fields.update(record.extra)
    return orjson.dumps(fields, option=orjson.OPT_APPEND_NEWLINE)


def _status_problem(known: dict[str, Any]) -> str | None:
    status = known["status"]
    if status not in STATUSES:
        return f"field status: {quoted(status)} is none of {', '.join(STATUSES)}"
    return None


def _fields(line: bytes, source: str, number: int) -> dict[str, Any]:
    """The object of a line, no key twice. Raises DataError."""
    try:
        fields = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        text = reading.decode(line, source, number)  # names the byte, if that is the trouble
        raise DataError(source, number, _json_problem(text, error)) from None
    if type(fields) is not dict:
        raise DataError(source, number, f"not a JSON object: {quoted(line.decode())}")
    # Before every colon outside strings is a quote, or white space. So if there is no such
    # space, `":` is there at least once for each key: as often as keys means no key twice.
    spaced = b" :" in line or b"\t" in line or b"\r" in line
    if spaced or line.count(b'":') != len(fields):
        _refuse_repeated_keys(line, fields, source, number)
    return fields


def _json_problem(text: str, error: orjson.JSONDecodeError) -> str:
    if not text.strip():
        return "empty line, expected a JSON object"
    if text.startswith(("# ", "1\t")):
        return "CoNLL-U, expected a JSON object (`synmt featurize` makes them)"
    return f"invalid JSON at character {error.pos + 1}: {printable(error.msg)}"


def _refuse_repeated_keys(line: bytes, fields: dict[str, Any], source: str, number: int) -> None:
    if problem := extra_problem(fields):  # too deep for what follows
        raise DataError(source, number, problem)
    if orjson.dumps(fields) == line:  # nothing was lost
        return

    def distinct(pairs: list[tuple[str, Any]]) -> None:
        seen = set()
        for name, _ in pairs:
            if name in seen:
                raise DataError(source, number, f"field {quoted(name)} is there twice")
            seen.add(name)

    json.loads(line, object_pairs_hook=distinct)
