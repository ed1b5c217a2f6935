"""The JSONL record: one segment with its tree, its pieces and its target, one object a line.

    {"id":"1","status":"ok","src":"A dog.","words":["A","dog","."],"heads":[1,-1,1], …}

Unknown fields are kept in `extra` and written again after the known ones. Everything that is
read is checked: types exactly (a boolean is not an integer, 1.0 is not 1), lengths, one tree
for each sentence, no key twice. The checks are operations on whole lists, so that reading
stays near the speed of the JSON parser. Memory is one line.
"""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import orjson

from synmt_cli.errors import DataError, counted, quoted
from synmt_cli.formats.arcs import all_reach_root
from synmt_cli.io import reading

IF_TEXT = "if this is text whose first line only looks like JSON, give"  # and an option
STATUSES = OK, EMPTY, FAILED, SKIPPED = ("ok", "empty", "failed", "skipped")
UNPARSED = (FAILED, SKIPPED)  # lines that have no tree, for a reason
DEPTH_LIMIT = 100  # nested lists and objects in an unknown field
INTEGERS = range(-(2**63), 2**64)  # others arrive as rounded floats
NO_WORD = -1  # in piece_word: a piece that belongs to no word
TREE = ("words", "spans", "heads", "deprels", "upos")
_NAMES = {
    str: "a string",
    int: "an integer",
    float: "a number with a fraction",
    bool: "a boolean",
    list: "a list",
    dict: "an object",
    type(None): "null",
}


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
    status: str = OK
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

    def without_tree(self, pieces: list[str] | None = None) -> Record:
        """The record for models that read no tree: only its pieces, or the given ones."""
        return Record(self.id, self.src, pieces=self.pieces if pieces is None else pieces)


FIELDS = tuple(name for name in Record.__dataclass_fields__ if name != "extra")
# The order in which a line shows them.
_ORDER = tuple(dict.fromkeys(("id", "status", "reason", *FIELDS)))
_values = operator.attrgetter(*_ORDER)


def read(source: reading.Source, first: int = 1) -> Iterator[Record]:
    """Yields the records of a source. Raises DataError, ReadError.

    first: the id of the first record if it has none; the ids after it count on.
    """
    for number, line in enumerate(lines(source), 1):
        yield from_bytes(line, source.name, number, str(first + number - 1))


def lines(source: reading.Source) -> Iterator[bytes]:
    """Yields the lines of a source. Raises DataError, ReadError."""
    for number, line in enumerate(reading.lines(source), 1):
        refuse_text(line, source, number)
        yield line


def refuse_text(line: bytes, source: reading.Source, number: int) -> None:
    """Raises DataError for a first line that is not a record if the kind was guessed."""
    if number == 1 and source.guessed_for:
        try:
            _typed_fields(line, source.name, number)
        except DataError as error:
            problem = f"{error.problem}; {IF_TEXT} {source.guessed_for} text"
            raise DataError(source.name, number, problem) from None


def from_bytes(line: bytes, source: str = "<stdin>", number: int = 1, id: str = "1") -> Record:
    """The record of one line. `id` is for a record that has none. Raises DataError."""
    _, known, extra = _typed_fields(line, source, number)
    known.setdefault("id", id)
    known.setdefault("status", OK if known["src"].strip() else EMPTY)
    problem = tree_problem(known) or status_problem(known["status"]) or extra_problem(extra, line)
    if problem:
        raise DataError(source, number, problem)
    return Record(**known, extra=extra)


def fields_from_bytes(line: bytes, source: str, number: int) -> dict[str, Any]:
    """The fields of one line, `src` among them, each of its type. Raises DataError.

    For filters that add a field and leave the others as they are: no field is filled in, and
    neither the tree nor the status is checked.
    """
    fields, _, extra = _typed_fields(line, source, number)
    if problem := extra_problem(extra, line):
        raise DataError(source, number, problem)
    return fields


def _typed_fields(
    line: bytes, source: str, number: int
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """All fields of a line, the known ones, each of its type, and the others. Raises DataError."""
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
    return fields, known, extra


def to_bytes(record: Record) -> bytes:
    """The line of a record, LF included."""
    fields = {
        name: value
        for name, value in zip(_ORDER, _values(record), strict=True)
        if value is not None and not (name == "sents" and value == [0])
    }
    fields.update(record.extra)
    return orjson.dumps(fields, option=orjson.OPT_APPEND_NEWLINE)


def status_problem(status: str) -> str:
    """What is wrong with the field status, "" if nothing is."""
    if status in STATUSES:
        return ""
    return f"field status: {quoted(status)} is none of {', '.join(STATUSES)}"


def _fields(line: bytes, source: str, number: int) -> dict[str, Any]:
    """The object of a line, no key twice. Raises DataError."""
    try:
        fields = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        text = reading.decode(line, source, number)  # raises where bytes are not UTF-8
        raise DataError(source, number, _json_problem(text, error)) from None
    if type(fields) is not dict:
        raise DataError(source, number, f"not a JSON object: {quoted(line.decode())}")
    # A quote, or white space, stands before every colon outside strings. Without such space
    # `":` occurs at least once for each key; if it occurs once for each, no key is repeated.
    spaced = b" :" in line or b"\t" in line or b"\r" in line
    if spaced or line.count(b'":') != len(fields):
        _refuse_repeated_keys(line, fields, source, number)
    return fields


def _json_problem(text: str, error: orjson.JSONDecodeError) -> str:
    if not text.strip():
        return "empty line, expected a JSON object"
    if text.startswith(("# ", "1\t")):
        return "CoNLL-U, expected a JSON object (`synmt featurize` makes them)"
    return f"invalid JSON at character {error.pos + 1}: {error.msg}"


def _refuse_repeated_keys(line: bytes, fields: dict[str, Any], source: str, number: int) -> None:
    if problem := extra_problem(fields, line):  # too deep to be parsed again below
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


def _not(value: object, expected: str) -> str:
    return f"{_NAMES[type(value)]}, expected {expected}"


def _text(value: object) -> str | None:
    return None if type(value) is str else _not(value, "a string")


def _segment(value: object) -> str | None:
    if type(value) is not str:
        return _not(value, "a string")
    return "a line feed inside a segment" if "\n" in value else None


def _list_of(kind: type, plural: str, value: Any) -> str | None:
    if type(value) is not list:
        return _not(value, f"a list of {plural}")
    if set(map(type, value)) <= {kind}:
        return None
    index = next(index for index, item in enumerate(value) if type(item) is not kind)
    return f"item {index} is {_not(value[index], _NAMES[kind])}"


def _texts(value: Any) -> str | None:
    problem = _list_of(str, "strings", value)
    if problem is None and "" in value:
        return f"item {value.index('')} is empty"
    return problem


_integers = partial(_list_of, int, "integers")
KINDS: dict[str, Callable[[Any], str | None]] = {
    "id": _text,
    "status": _text,
    "reason": _text,
    "src": _segment,
    "words": _texts,
    "spans": partial(_list_of, list, "[begin, end] pairs"),
    "heads": _integers,
    "deprels": _texts,
    "upos": _texts,
    "sents": _integers,
    "pieces": _texts,
    "piece_word": _integers,
    "tgt": _segment,
    "tgt_pieces": _texts,
    "transitions": _texts,
    "vocab": _text,
}


def tree_problem(known: Mapping[str, Any]) -> str | None:
    """A contradiction between known fields that each have the right type, None if there is none."""
    present = [name for name in TREE if name in known]
    if not present:
        if "sents" in known:
            return "field words is missing, but sents is there"
        return _piece_problem(known, 0)
    for name in TREE:
        if name not in known:
            return f"field {name} is missing, but {present[0]} is there"
    n = len(known["words"])
    for name in TREE:
        if len(known[name]) != n:
            return f"field {name}: {counted(len(known[name]), 'item')}, but {counted(n, 'word')}"
    return (
        _span_problem(known["spans"], len(known["src"]))
        or _head_problem(known["heads"], known.get("sents", [0]))
        or _piece_problem(known, n)
    )


def _span_problem(spans: list[list[Any]], n_characters: int) -> str | None:
    if not spans:
        return None
    if set(map(len, spans)) != {2}:
        index = next(index for index, span in enumerate(spans) if len(span) != 2)
        return f"field spans: item {index} is not a [begin, end] pair"
    begins, ends = zip(*spans, strict=True)
    if set(map(type, begins + ends)) != {int}:
        return "field spans: a bound that is not an integer"
    if min(begins) >= 0 and max(ends) <= n_characters and all(map(operator.le, begins, ends)):
        return None
    wrong = (index for index, (b, e) in enumerate(spans) if not 0 <= b <= e <= n_characters)
    index = next(wrong)
    length = counted(n_characters, "character")
    return f"field spans: item {index} is {spans[index]}, but src has {length}"


def _head_problem(heads: list[int], sents: list[int]) -> str | None:
    n = len(heads)
    if not n:
        return None if sents == [0] else "field sents: there are no words"
    if sents[:1] != [0] or sents[-1] >= n or any(map(operator.ge, sents, sents[1:])):
        return f"field sents: not rising from 0 to at most {n - 1}"
    for begin, end in zip(sents, [*sents[1:], n], strict=True):
        own = heads[begin:end]
        if (n_roots := own.count(-1)) != 1:
            return f"field heads: {n_roots} roots (-1) in words {begin} to {end - 1}, expected 1"
        if min(own) < -1 or max(own) >= end or (begin and any(-1 < head < begin for head in own)):
            index = next(i for i, h in enumerate(own) if h != -1 and not begin <= h < end)
            return f"field heads: item {begin + index} is {own[index]}, not in {begin} to {end - 1}"
    if not all_reach_root([*heads, -1], -1):
        return "field heads: a cycle"
    return None


def _piece_problem(known: Mapping[str, Any], n_words: int) -> str | None:
    words_of = known.get("piece_word")
    pieces = known.get("pieces")
    if words_of is None:
        return "field piece_word is missing, but pieces is there" if pieces and n_words else None
    if pieces is None:
        return "field pieces is missing, but piece_word is there"
    if len(words_of) != len(pieces):
        items, of_pieces = counted(len(words_of), "item"), counted(len(pieces), "piece")
        return f"field piece_word: {items}, but {of_pieces}"
    if words_of and not (min(words_of) >= -1 and max(words_of) < n_words):
        index = next(i for i, word in enumerate(words_of) if not -1 <= word < n_words)
        return (
            f"field piece_word: item {index} is {words_of[index]}, but {counted(n_words, 'word')}"
        )
    return None


def extra_problem(extra: Mapping[str, Any], line: bytes) -> str | None:
    """Why an unknown field cannot be written again with the value that was read, None if all can.

    line: the JSON that the fields were read from.
    """
    great: dict[str, Any] = {}  # fields that hold floats beyond the integers
    waiting = [(name, value, 1) for name, value in extra.items()]
    while waiting:
        name, value, depth = waiting.pop()
        if type(value) is float and abs(value) >= -INTEGERS.start:
            great[name] = extra[name]
        if type(value) in (list, dict):
            if depth > DEPTH_LIMIT:
                return f"field {quoted(name)}: nested more than {DEPTH_LIMIT} deep"
            items = value.values() if type(value) is dict else value
            waiting.extend((name, item, depth + 1) for item in items)
    return _rounding_problem(great, line) if great else None


def _rounding_problem(fields: Mapping[str, Any], line: bytes) -> str | None:
    """Names a field with an integer that became a rounded float, unlike a float such as 1e20."""

    def whole(digits: str) -> int | None:
        # The length first: Python makes no number of thousands of digits.
        fits = len(digits) <= len(str(INTEGERS.start)) and int(digits) in INTEGERS
        return int(digits) if fits else None

    exact = json.loads(line, parse_int=whole)
    for name, value in fields.items():
        if exact[name] != value:
            return f"field {quoted(name)}: an integer that 64 bits cannot hold"
    return None
