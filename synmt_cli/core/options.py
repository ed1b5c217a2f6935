"""Options: keyword-only parameters that declare their type, default, bounds and meaning once.

    def sisa(spec, *, weight: Annotated[float, "lambda, of the loss", Bounds(0)] = 1.0)

Keyword-only fields of a dataclass can be options, too. Presets, TOML files, `--set` and
`synmt variants` read them here.
"""

import difflib
import inspect
import math
import types
import typing
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

SEED = 12345  # the default of every random choice; sacreBLEU has the same


@dataclass(frozen=True, slots=True)
class Bounds:
    """The numbers low..high, both included.

    >>> f"must be {Bounds(0, 1)}", 0 in Bounds(0), math.inf in Bounds(0)
    ('must be within 0..1', True, False)
    """

    low: float = -math.inf
    high: float = math.inf

    def __contains__(self, number: float) -> bool:
        return self.low <= number <= self.high and number < math.inf

    def __str__(self) -> str:
        if self.high < math.inf:
            return f"within {digits(self.low)}..{digits(self.high)}"
        return f"at least {digits(self.low)} and finite"


def digits(number: float) -> str:
    """A number as people write it: whole ones with all their digits.

    >>> digits(123456789), digits(1e6), digits(0.1), digits(1e-9), digits(1e300)
    ('123456789', '1000000', '0.1', '1e-09', '1e+300')
    """
    return str(int(number)) if number == number // 1 and abs(number) < 1e15 else f"{number:g}"


@dataclass(frozen=True, slots=True)
class Option:
    """One option. hint: its type."""

    hint: Any
    default: Any
    meaning: str
    bounds: Bounds

    def values(self) -> str:
        """The values that it can have, for people.

        >>> Option(float, 0.1, "", Bounds(0, 1)).values(), Option(bool, True, "", Bounds()).values()
        ('a number from 0 to 1', 'true or false')
        """
        kind, bounds = described(self.hint), self.bounds
        if bounds.high < math.inf:
            return f"{kind} from {digits(bounds.low)} to {digits(bounds.high)}"
        return kind if bounds == Bounds() else f"{kind}, at least {digits(bounds.low)}"

    def problem(self, value: Any) -> str:
        """Why the option cannot have `value`; "" if it can."""
        if problem := wrong_type(value, self.hint):
            return problem
        number = self.outside(value)
        if number is None:
            return ""
        low, high = self.bounds.low, self.bounds.high
        bound = f"at least {digits(low)}" if number < low else f"at most {digits(high)}"
        return f"must be {bound}, not {digits(number)}"

    def outside(self, value: Any) -> float | None:
        """The first number of `value` that is not within the bounds."""
        numbers = value if isinstance(value, (list, tuple)) else [value]
        return next((n for n in numbers if not isinstance(n, str) and n not in self.bounds), None)


def options(owner: Callable[..., Any]) -> dict[str, Option]:
    """The options of a function or a dataclass, by name."""
    hints = typing.get_type_hints(owner, include_extras=True)
    return {
        name: _option(hints[name], parameter.default)
        for name, parameter in inspect.signature(owner).parameters.items()
        if parameter.kind is parameter.KEYWORD_ONLY
    }


def _option(hint: Any, default: Any) -> Option:
    """hint: Annotated[type, meaning] or Annotated[type, meaning, Bounds]."""
    kind, meaning, *bounds = typing.get_args(hint)
    return Option(kind, default, meaning, *(bounds or [Bounds()]))


def wrong_type(value: Any, hint: Any) -> str:
    """Why `value` is not of type `hint`, or not finite; "" if it is both.

    A whole number may stand for a real one; a truth value is not a number.

    >>> wrong_type(True, int), wrong_type(3, float)
    ('expected a whole number, not True', '')
    """
    if not _matches(value, hint):
        return f"expected {described(hint)}, not {value!r}"
    for number in value if isinstance(value, (list, tuple)) else [value]:
        if isinstance(number, float) and not math.isfinite(number):
            return f"must be finite, not {number:g}"
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


def described(hint: Any) -> str:
    """The values of a type, for people.

    >>> described(int | typing.Literal["all"]), described(tuple[float, float])
    ('a whole number or all', 'a list of 2 numbers')
    """
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(map(described, arguments))
    if origin is typing.Literal:
        return "one of " * (len(arguments) > 1) + ", ".join(map(str, arguments))
    if origin is tuple:
        return f"a list of {len(arguments)} numbers"
    if origin is list:
        return f"a list of {described(arguments[0]).removeprefix('a ')}s"
    names = {int: "a whole number", float: "a number", bool: "true or false", str: "a string"}
    return names[hint]


def suggestion(key: str, known: Iterable[str], *, shown: str = "") -> str:
    """Advice about an unknown key: the nearest known one, or all, or `shown` in place of all.

    >>> suggestion("dropuot", ["d_model", "dropout"])
    "did you mean 'dropout'?"
    """
    known = list(known)
    near = difflib.get_close_matches(key, known, 1)
    if near:
        return f"did you mean {near[0]!r}?"
    return f"known are {shown or ', '.join(known)}" if known else "there are none"
