"""Regular files only: never a pipe that waits, a device that never ends, a folder, or a link.

Links are followed in a name that the user gave, and refused in a folder that may come from
somewhere else, such as a run directory.
"""

import contextlib
import errno
import io
import logging
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from synmt_cli.errors import DataError, ReadError, cannot_read

_log = logging.getLogger(__name__)
_KINDS = {
    stat.S_IFLNK: "a link",
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
}


def problem(path: str | Path, is_folder: bool = False) -> ReadError | None:
    """The error if a name is a link or of another kind; None if it is right or nothing is there."""
    try:
        mode = os.lstat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        return cannot_read(path, error)
    return _problem(path, mode, is_folder)


def _problem(path: str | Path, mode: int, is_folder: bool = False) -> ReadError | None:
    if stat.S_ISDIR(mode) if is_folder else stat.S_ISREG(mode):
        return None
    kind = "a folder" if is_folder else "a regular file"
    what = _KINDS.get(stat.S_IFMT(mode), "a device")
    return ReadError(f"cannot read {path}: it is {what}, not {kind}")


def _open(path: str | Path, follow: bool) -> tuple[io.BufferedReader | None, int]:
    """The open file, None for anything but a regular one, and the mode. Raises OSError."""
    mode = os.stat(path, follow_symlinks=follow).st_mode
    if stat.S_ISREG(mode):  # a device is never opened; what takes its place now does not block
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
        file = os.fdopen(os.open(path, flags), "rb")
        mode = os.fstat(file.fileno()).st_mode
        if stat.S_ISREG(mode):
            _log.debug("reads %s", path)
            return file, mode
        file.close()
    return None, mode


def opened(path: str | Path, follow: bool = True) -> io.BufferedReader:
    """An open regular file. Raises ReadError, at once, for anything else.

    follow: whether the name may be a link.
    """
    try:
        file, mode = _open(path, follow)
    except (OSError, ValueError) as error:
        raise cannot_read(path, error) from error
    if file is not None:
        return file
    wrong = _problem(path, mode)
    assert wrong is not None
    raise wrong


def named(path: str, limit: int | None = None) -> BinaryIO:
    """An open regular file of at most `limit` bytes that the user named; it may be a link.

    Raises OSError and ValueError, as `open` does, for callers with a message of their own.
    """
    file, _ = _open(path, follow=True)
    if file is None:
        raise OSError(errno.EINVAL, "it is not a regular file", path)
    size = os.fstat(file.fileno()).st_size
    if limit is not None and size > limit:
        file.close()
        raise OSError(errno.EFBIG, f"{size:,} bytes, at most {limit:,} are possible", path)
    return file


def read(path: str | Path, limit: int, follow: bool = False) -> bytes:
    """The bytes of a regular file. Raises ReadError, and DataError for more than `limit`."""
    with opened(path, follow) as file:
        try:
            size = os.fstat(file.fileno()).st_size
            data = file.read(min(size, limit) + 1)
        except OSError as error:
            raise cannot_read(path, error) from error
    if len(data) > limit:
        raise DataError(str(path), None, f"{size:,} bytes, more than the {limit:,} it may have")
    return data


def lines(path: Path, limit: int) -> Iterator[tuple[int, bytes]]:
    """Yields (number from 1, line with its LF) of a regular file that is not a link.

    Raises ReadError, and DataError for a line of more than `limit` bytes.
    """
    with opened(path, follow=False) as file:
        number = 0
        while True:
            number += 1
            try:
                line = file.readline(limit + 1)
            except OSError as error:
                raise cannot_read(path, error) from error
            if not line:
                return
            if len(line) > limit:
                raise DataError(str(path), number, f"line longer than {limit:,} bytes")
            yield number, line


def append(path: Path, data: bytes) -> None:
    """Adds all of the data to the end of a regular file that is not a link, or none of it.

    The file is made if it is missing. Raises OSError.
    """
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
    with io.FileIO(os.open(path, flags, 0o666), "ab") as file:
        before = os.fstat(file.fileno())
        if not stat.S_ISREG(before.st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file")
        rest = memoryview(data)
        try:
            while rest:  # a full disk takes a part, and refuses what is left
                rest = rest[file.write(rest) or 0 :]
        except OSError:
            with contextlib.suppress(OSError):
                file.truncate(before.st_size)
            raise
