"""SHA-256 of files."""

from __future__ import annotations

import hashlib

from synmt_cli.errors import ReadError, printable


def sha256(path: str) -> str:
    """The digest of a file's bytes. Raises ReadError."""
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise ReadError(f"cannot read {printable(path)}: {error.strerror}") from error
