"""The properties of one thing, as lines for people and as a JSON object for programs."""

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

from synmt_cli.errors import printable

Properties = Mapping[str, Any]  # name -> figure, text, list, or properties again


def as_lines(properties: Properties) -> bytes:
    r"""`name<TAB>value` a line; the properties of an object as `object.name`.

    >>> as_lines({"words": 3, "tree": {"projective": True, "labels": ["nsubj", "obj"]}})
    b'words\t3\ntree.projective\ttrue\ntree.labels\tnsubj obj\n'
    """
    return "".join(f"{name}\t{value}\n" for name, value in flat(properties)).encode()


def as_object(properties: Properties, ascii_only: bool = False) -> bytes:
    """One JSON object in a line. Values that JSON does not have, such as TOML's dates, are text.

    Bytes of file names that are not UTF-8 are escaped.
    """
    known = _in_json(properties)
    return json.dumps(known, ensure_ascii=ascii_only, allow_nan=False).encode() + b"\n"


def _in_json(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode(errors="backslashreplace").decode()
    if isinstance(value, Mapping):
        return {_in_json(name): _in_json(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_in_json(one) for one in value]
    is_known = value is None or isinstance(value, int)
    return value if is_known or (isinstance(value, float) and math.isfinite(value)) else str(value)


def flat(
    properties: Properties, separator: str = " ", prefix: str = ""
) -> Iterator[tuple[str, str]]:
    """Yields each property as its dotted name and its text. separator: between items of a list."""
    for name, value in properties.items():
        if isinstance(value, Mapping):
            yield from flat(value, separator, f"{prefix}{printable(name)}.")
        else:
            yield prefix + printable(name), _shown(value, separator)


def _shown(value: object, separator: str) -> str:
    if isinstance(value, list | tuple):
        return separator.join(_shown(one, separator) for one in value)
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else printable(str(value))
