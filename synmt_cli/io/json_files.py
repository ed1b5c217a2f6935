"""JSON files: plain, or sealed with a format number and a digest that is checked on reading."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from synmt_cli.errors import ConfigError, DataError, ReadError, printable
from synmt_cli.io import writing

FORMAT = 1  # of sealed files


def read(path: Path) -> Any:
    """The value of a JSON file. Raises ReadError, DataError."""
    try:
        return json.loads(path.read_bytes())
    except OSError as error:
        raise ReadError(f"cannot read {printable(str(path))}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise DataError(str(path), 1, f"not JSON: {printable(str(error))}") from None


def write(path: Path, value: Any) -> None:
    """Writes a JSON file, whole or not at all. Raises CreateError, WriteError."""
    with writing.atomic(path) as writer:
        writer.write(json.dumps(value, indent=1, ensure_ascii=False).encode() + b"\n")


def read_sealed(path: Path, what: str) -> dict[str, Any]:
    """The values that `write_sealed` wrote. Raises ReadError, DataError, ConfigError.

    what: names the content in the message.
    """
    sealed = read(path)
    if not isinstance(sealed, dict) or not isinstance(sealed.get("state"), dict):
        raise DataError(str(path), 1, f"expected {what}")
    if sealed.get("format") != FORMAT:
        raise ConfigError(f"{printable(str(path))}: format {sealed.get('format')!r}, not {FORMAT}")
    values: dict[str, Any] = sealed["state"]
    if sealed.get("sha256") != _digest(values):
        raise DataError(str(path), 1, "damaged: it does not have the digest it states")
    return values


def write_sealed(path: Path, values: Mapping[str, Any]) -> None:
    """Writes the values with their digest, whole or not at all. Raises CreateError, WriteError."""
    write(path, {"format": FORMAT, "sha256": _digest(values), "state": values})


def _digest(values: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()
