"""The JSON reports that commands wrote, as values to be read back."""

import os
from typing import Any

import orjson

from synmt_cli.errors import DataError, ReadError
from synmt_cli.io import json_files, reading

LIMIT = 256 * 2**20  # bytes of a report
LARGEST = 1e150  # a figure is at most this, so that its sums, squares and charts stay finite


def load(path: str, command: str) -> tuple[Any, str]:
    """The value in a file, `-` for stdin, and the file's name for messages.

    command: the one that writes such files, such as `score`. Raises DataError, ReadError.
    """
    if os.path.isdir(path):  # a run, perhaps
        raise ReadError(f"{path} is a folder: give the report of `synmt {command} --format json`")
    with reading.open_source(path) as source:
        data = reading.whole(source, LIMIT, "a report")
    try:
        return orjson.loads(data.removeprefix(reading.BOM)), source.name
    except orjson.JSONDecodeError as error:
        reading.refuse_not_utf8(data, source.name)
        raise foreign(source.name, command, f"invalid JSON: {error}") from None


def foreign(source: str, command: str, problem: str) -> DataError:
    """The error for a file that this command did not write, or that is not complete."""
    return DataError(source, None, f"not from `synmt {command} --format json`: {problem}")


def text(value: Any) -> str:
    """The value, a string. Raises TypeError."""
    if not isinstance(value, str):
        raise TypeError
    return value


def number(value: Any) -> float:
    """The value, a number within LARGEST. Raises TypeError, ValueError."""
    if not json_files.is_number(value):
        raise TypeError
    if not abs(value) <= LARGEST:
        raise ValueError
    return float(value)


def count(value: Any) -> int:
    """The value, a whole number from 0 on. Raises TypeError."""
    if not json_files.is_count(value):
        raise TypeError
    return int(value)


def share(value: Any) -> float | None:
    """The value, a number from 0 to 1 or null. Raises ValueError."""
    if value is not None and not (json_files.is_number(value) and 0 <= value <= 1):
        raise ValueError
    return None if value is None else float(value)
