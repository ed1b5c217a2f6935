"""JSON files: plain, or sealed with a format number and a digest that is checked on reading.

They are the small files of run directories: regular files of a limited size, never links. Their
values are limited to what every program reads alike: each key once, integers of 64 bits,
finite numbers, texts of whole characters, nesting of a limited depth.
"""

import hashlib
import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from synmt_cli.errors import QUOTE_LIMIT, ConfigError, DataError, quoted
from synmt_cli.io import regular_files, writing

FORMAT = 1  # of sealed files
LIMIT = 16 * 2**20  # bytes of a file
DEPTH = 16  # lists and objects nested in one another
Fields = Mapping[str, tuple[Callable[[Any], bool], str]]  # name -> (whether a value fits, kind)


def read(path: Path) -> Any:
    """The value of a JSON file. Raises ReadError, DataError."""
    return parsed(regular_files.read(path, LIMIT), path, 1)


def read_object(path: Path, what: str) -> dict[str, Any]:
    """The object in a JSON file. Raises ReadError, DataError. what: names it in the message."""
    value = read(path)
    if not isinstance(value, dict):
        raise DataError(str(path), 1, f"expected {what}")
    return value


def parsed(data: bytes, path: Path, line: int) -> Any:
    """The value of a JSON text. Raises DataError at `line`."""
    try:
        value = json.loads(data.decode("utf-8"), object_pairs_hook=_with_each_key_once)
    except UnicodeDecodeError as error:
        raise DataError(str(path), line, f"invalid UTF-8 at byte {error.start + 1}") from None
    except (ValueError, RecursionError) as error:
        raise DataError(str(path), line, f"not JSON: {error}") from None
    if problem := unusual(value):
        raise DataError(str(path), line, f"not JSON that synmt writes: {problem}")
    return value


def _with_each_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key, value in pairs:
        if key in values:
            raise ValueError(f"key {quoted(key)} twice")
        values[key] = value
    return values


def unusual(value: Any, depth: int = 0, finite: bool = True, bits: int = 64) -> str:
    """The part of a JSON or TOML value that programs would not read alike, or "".

    finite: whether numbers have to be finite. bits: how many an integer may have.
    """
    match value:
        case str() if not is_whole(value):
            return "half a character (a surrogate)"
        case int() if not -(1 << bits - 1) <= value < 1 << bits - 1:
            return f"an integer of more than {bits} bits"
        case float() if finite and not math.isfinite(value):
            return "a number that is not finite"
        case dict() | list() if depth == DEPTH:
            return f"more than {DEPTH} lists and objects in one another"
        case dict() | list():
            keys = value if isinstance(value, dict) else ()
            parts = value.values() if isinstance(value, dict) else value
            problems = (unusual(part, depth + 1, finite, bits) for part in (*keys, *parts))
            return next(filter(None, problems), "")
    return ""


def is_whole(text: str) -> bool:
    """Whether a text has no half characters (surrogates), which UTF-8 cannot write."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def as_text(path: str) -> str:
    """A file's name as a text: bytes that are not UTF-8 are escaped, as in `caf\\xe9`."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def write(path: Path, value: Any) -> None:
    """Writes a JSON file, whole or not at all. Raises CreateError, WriteError."""
    with writing.atomic(path, follow=False) as writer:
        writer.write(json.dumps(value, indent=1, ensure_ascii=False).encode() + b"\n")


def read_sealed(path: Path, what: str) -> dict[str, Any]:
    """The values that `write_sealed` wrote. Raises ReadError, DataError, ConfigError.

    what: names the content in the message.
    """
    return unsealed(read_object(path, what), path, what)


def unsealed(sealed: dict[str, Any], path: Path, what: str) -> dict[str, Any]:
    """The values in the object of a sealed file. Raises DataError, ConfigError."""
    if not isinstance(sealed.get("state"), dict):
        raise DataError(str(path), 1, f"expected {what}")
    values: dict[str, Any] = sealed["state"]
    if sealed.get("format") != FORMAT:
        stated = repr(sealed.get("format"))[:QUOTE_LIMIT]
        raise ConfigError(f"{path}: format {stated}, not {FORMAT}")
    if sealed.get("sha256") != _digest(values):
        raise DataError(str(path), 1, "damaged: it does not have the digest it states")
    return values


def refuse_other_fields(
    values: Mapping[str, Any], fields: Fields, path: Path, optional: Sequence[str] = ()
) -> None:
    """Raises DataError unless the values have these fields, each of its kind, and no others.

    optional: those that may be missing.
    """
    for name, (fits, kind) in fields.items():
        if name in optional and name not in values:
            continue
        if name not in values:
            raise DataError(str(path), 1, f"field {name} is missing")
        if not fits(values[name]):
            raise DataError(str(path), 1, f"field {name} is not {kind}")
    for name in values:
        if name not in fields:
            raise DataError(str(path), 1, f"unknown field {quoted(name)}")


def is_count(value: Any) -> bool:
    """Whether a value is an integer from 0 on; booleans are not."""
    return type(value) is int and value >= 0


def is_number(value: Any) -> bool:
    """Whether a value is a number; booleans are not."""
    return type(value) in (int, float)


def is_texts(value: Any) -> bool:
    """Whether a value is a list of texts."""
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def write_sealed(path: Path, values: Mapping[str, Any]) -> None:
    """Writes the values with their digest, whole or not at all. Raises CreateError, WriteError."""
    write(path, {"format": FORMAT, "sha256": _digest(values), "state": values})


def _digest(values: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()
