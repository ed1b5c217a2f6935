"""SHA-256 digests of files."""

import hashlib

from synmt_cli.errors import ReadError, printable, reason


def size_and_sha256(path: str) -> tuple[int, str]:
    """The number of a file's bytes, and their digest. Raises ReadError."""
    try:
        with open(path, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            return file.tell(), digest
    except (OSError, ValueError) as error:
        raise ReadError(f"cannot read {printable(path)}: {reason(error)}") from error


def sha256(path: str) -> str:
    """The digest of a file's bytes. Raises ReadError."""
    return size_and_sha256(path)[1]
