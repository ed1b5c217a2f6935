"""Options as typed, bounded fields: one check for presets, TOML files and `--set`."""

from __future__ import annotations

import dataclasses
import difflib
import math
import types
import typing
from collections.abc import Iterable
from typing import Any

LOW, HIGH = "low", "high"


def bounded(default: Any, low: float | None = None, high: float | None = None) -> Any:
    """A dataclass field whose value must lie within low..high, both included."""
    return dataclasses.field(default=default, metadata={LOW: low, HIGH: high})


def problem(value: Any, hint: Any, low: float | None = None, high: float | None = None) -> str:
    """Why `value` is no value of type `hint` within its bounds; "" if it is one.

    A whole number may stand for a real one; a truth value is not a number.

    >>> problem(True, int), problem(3, float), problem(-1, int, 0)
    ('expected a whole number, not True', '', 'must be at least 0, not -1')
    """
    if not _matches(value, hint):
        return f"expected {_described(hint)}, not {value!r}"
    numbers = value if isinstance(value, (list, tuple)) else [value]
    for number in numbers:
        if isinstance(number, float) and not math.isfinite(number):
            return f"must be finite, not {number:g}"
        if low is not None and not number >= low:
            return f"must be at least {low:g}, not {number:g}"
        if high is not None and not number <= high:
            return f"must be at most {high:g}, not {number:g}"
    return ""


def _matches(value: Any, hint: Any) -> bool:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return any(_matches(value, one) for one in arguments)
    if origin is typing.Literal:
        return value in arguments
    if origin is tuple:
        return (
            isinstance(value, (list, tuple))
            and len(value) == len(arguments)
            and all(map(_matches, value, arguments))
        )
    if origin is list:
        return isinstance(value, list) and all(_matches(item, arguments[0]) for item in value)
    if isinstance(value, bool):
        return hint is bool
    return isinstance(value, (int, float) if hint is float else hint)


def _described(hint: Any) -> str:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(map(_described, arguments))
    if origin is typing.Literal:
        return "one of " + ", ".join(map(str, arguments))
    if origin is tuple:
        return f"a list of {len(arguments)} numbers"
    if origin is list:
        return f"a list of {_described(arguments[0]).removeprefix('a ')}s"
    names = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}
    return names[hint]


def suggestion(key: str, known: Iterable[str]) -> str:
    """What to say about an unknown key: the nearest known one, or all of them.

    >>> suggestion("dropuot", ["d_model", "dropout"])
    "did you mean 'dropout'?"
    """
    known = list(known)
    near = difflib.get_close_matches(key, known, 1)
    if near:
        return f"did you mean {near[0]!r}?"
    return f"known are {', '.join(known)}" if known else "there are none"
