"""The JSON reports that commands wrote, as values to be read back."""

from typing import Any

import orjson

from synmt_cli.errors import DataError, printable
from synmt_cli.io import reading

LIMIT = 256 * 2**20  # bytes of a report


def load(path: str, command: str) -> tuple[Any, str]:
    """The value in a file, `-` for stdin, and the file's name for messages.

    command: that writes such files, `score`. Raises DataError, ReadError.
    """
    with reading.open_source(path) as source:
        data = reading.whole(source, LIMIT, "a report")
    try:
        return orjson.loads(data.removeprefix(reading.BOM)), source.name
    except orjson.JSONDecodeError as error:
        raise foreign(source.name, command, f"invalid JSON: {printable(str(error))}") from None


def foreign(source: str, command: str, problem: str) -> DataError:
    """The error for a file that this command did not write, or that is not complete."""
    return DataError(source, None, f"not from `synmt {command} --format json`: {problem}")
