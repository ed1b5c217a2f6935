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
    return "".join(f"{name}\t{value}\n" for name, value in _flat(properties)).encode()


def as_object(properties: Properties, ascii_only: bool = False) -> bytes:
    """One JSON object in a line. What JSON does not have, such as TOML's dates, is text.

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


def _flat(properties: Properties, prefix: str = "") -> Iterator[tuple[str, str]]:
    for name, value in properties.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{printable(name)}.")
        else:
            yield prefix + printable(name), _shown(value)


def _shown(value: object) -> str:
    if isinstance(value, list | tuple):
        return " ".join(map(_shown, value))
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else printable(str(value))
