"""SHA-256 digests of files."""

import hashlib

from synmt_cli.errors import cannot_read
from synmt_cli.io import regular_files


def size_and_sha256(path: str, follow: bool = True) -> tuple[int, str]:
    """The number of a regular file's bytes, and their digest. Raises ReadError.

    follow: whether the name may be a link.
    """
    with regular_files.opened(path, follow) as file:
        try:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            return file.tell(), digest
        except OSError as error:
            raise cannot_read(path, error) from error


def sha256(path: str) -> str:
    """The digest of a regular file's bytes. Raises ReadError."""
    return size_and_sha256(path)[1]
