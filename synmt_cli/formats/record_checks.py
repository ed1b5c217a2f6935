"""What is wrong with the fields of a record, in words; None where nothing is.

Whole-list operations on types and values: reading stays near the speed of the JSON parser.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

from synmt_cli.errors import quoted
from synmt_cli.formats.arcs import all_reach_root

DEPTH_LIMIT = 100  # nested lists and objects in a field that only passes through
LARGEST = 2**63  # greater integers arrive as rounded floats
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


def _not(value: object, expected: str) -> str:
    return f"{_NAMES[type(value)]}, expected {expected}"


def _text(value: object) -> str | None:
    return None if type(value) is str else _not(value, "a string")


def _segment(value: object) -> str | None:
    if type(value) is not str:
        return _not(value, "a string")
    return "a line feed inside a segment" if "\n" in value else None


def _list_of(kind: type, value: object, plural: str) -> str | None:
    if type(value) is not list:
        return _not(value, f"a list of {plural}")
    if set(map(type, value)) <= {kind}:
        return None
    index = next(index for index, item in enumerate(value) if type(item) is not kind)
    return f"item {index} is {_not(value[index], _NAMES[kind])}"


def _texts(value: Any) -> str | None:
    problem = _list_of(str, value, "strings")
    if problem is None and "" in value:
        return f"item {value.index('')} is empty"
    return problem


def _integers(value: object) -> str | None:
    return _list_of(int, value, "integers")


def _pairs(value: object) -> str | None:
    return _list_of(list, value, "[begin, end] pairs")


KINDS: dict[str, Callable[[Any], str | None]] = {
    "id": _text,
    "status": _text,
    "reason": _text,
    "src": _segment,
    "words": _texts,
    "spans": _pairs,
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
    """What contradicts what among the known fields, each of the right type by itself."""
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
            return f"field {name}: {len(known[name])} items, but {n} words"
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
    return f"field spans: item {index} is {spans[index]}, but src has {n_characters} characters"


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
        return f"field piece_word: {len(words_of)} items, but {len(pieces)} pieces"
    if words_of and not (min(words_of) >= -1 and max(words_of) < n_words):
        index = next(i for i, word in enumerate(words_of) if not -1 <= word < n_words)
        return f"field piece_word: item {index} is {words_of[index]}, but {n_words} words"
    return None


def extra_problem(extra: Mapping[str, Any]) -> str | None:
    """Why a field that only passes through cannot be written again as it was read."""
    waiting = [(name, value, 1) for name, value in extra.items()]
    while waiting:
        name, value, depth = waiting.pop()
        if type(value) is float and abs(value) >= LARGEST:
            return f"field {quoted(name)}: a number that 64 bits cannot hold exactly"
        if type(value) in (list, dict):
            if depth > DEPTH_LIMIT:
                return f"field {quoted(name)}: nested more than {DEPTH_LIMIT} deep"
            items = value.values() if type(value) is dict else value
            waiting.extend((name, item, depth + 1) for item in items)
    return None
