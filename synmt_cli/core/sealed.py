"""JSON files that say their format and have a digest, which is checked when they are read."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from synmt_cli.core.run import read_json, write_json
from synmt_cli.errors import ConfigError, DataError, printable

FORMAT = 1


def write(path: Path, values: Mapping[str, Any]) -> None:
    """Writes the values, whole or not at all. Raises WriteError."""
    write_json(path, {"format": FORMAT, "sha256": _digest(values), "state": values})


def read(path: Path, what: str) -> dict[str, Any]:
    """What `write` wrote. what: for the message. Raises ReadError, DataError, ConfigError."""
    sealed = read_json(path)
    if not isinstance(sealed, dict) or not isinstance(sealed.get("state"), dict):
        raise DataError(str(path), 1, f"expected {what}")
    if sealed.get("format") != FORMAT:
        raise ConfigError(f"{printable(str(path))}: format {sealed.get('format')!r}, not {FORMAT}")
    values: dict[str, Any] = sealed["state"]
    if sealed.get("sha256") != _digest(values):
        raise DataError(str(path), 1, "damaged: it does not have the digest it states")
    return values


def _digest(values: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()
