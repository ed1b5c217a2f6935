"""."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from synmt_cli import signals
from synmt_cli.errors import CreateError, WriteError, printable, reason
from synmt_cli.io import compression
from synmt_cli.io.reading import BUFFER

NAME_LIMIT = 230  # bytes; a longer name has no room beside it for ".", process id and ".tmp"


class Writer:
    """Whole records to a stream. Buffers unless `line_buffered`."""

    def __init__(self, file: IO[bytes], name: str, line_buffered: bool = False) -> None:
        self._file, self.name, self._line_buffered = file, name, line_buffered
        self._records: list[bytes] = []
        self._size = 0

    def write(self, record: bytes) -> None:
        """Takes one whole record, its LF included. Raises WriteError, BrokenPipeError."""
        self._records.append(record)
        self._size += len(record)
        if self._line_buffered or self._size >= BUFFER:
            self.flush()

    def flush(self) -> None:
        """Hands every record over. A signal waits until the last one is whole."""
        with signals.shielded():
            block = memoryview(b"".join(self._records))
            self._records, self._size = [], 0
            try:
                while block:
                    block = block[self._file.write(block) :]
                self._file.flush()
            except BrokenPipeError:
                raise
            except (OSError, ValueError) as error:
                message = f"cannot write {printable(self.name)}: {reason(error)}"
                raise WriteError(message) from error


@contextlib.contextmanager
def output(path: str, line_buffered: bool = False) -> Iterator[Writer]:
    """A Writer to `path`, `-` for stdout. On failure a file is removed, stdout is flushed.

    Raises CreateError before anything is done, WriteError later.
    """
    if path != "-":
        with atomic(path) as writer:
            yield writer
        return
    with open(1, "wb", buffering=0, closefd=False) as file:
        writer = Writer(file, "<stdout>", line_buffered or os.isatty(1))
        try:
            yield writer
        except (BrokenPipeError, WriteError):
            raise
        except BaseException:
            writer.flush()  # every record before the error is whole and written
            raise
        writer.flush()


@contextlib.contextmanager
def atomic(path: str | Path) -> Iterator[Writer]:
    """A Writer to a file that takes its name only when it is complete and on disk.

    Written beside `path` under a name with the process id, compressed by suffix, flushed to
    disk, renamed. Raises CreateError, WriteError; then nothing is left behind.
    """
    name = str(path)  # as the user knows it, whatever it leads to
    try:
        path, beside = _places(Path(path))
        raw = open(beside, "ab" if path == beside else "wb")  # noqa: SIM115
    except (OSError, ValueError) as error:
        raise CreateError(f"cannot create {printable(name)}: {reason(error)}") from error
    try:
        if path != beside and path.exists():  # a private file stays private
            os.fchmod(raw.fileno(), stat.S_IMODE(path.stat().st_mode))
        file = compression.compressed(raw, name)
        writer = Writer(file, name)
        try:
            yield writer
            writer.flush()
        except BaseException:
            with contextlib.suppress(OSError, ValueError):
                file.close()
            with contextlib.suppress(OSError, ValueError):
                raw.close()
            raise
        try:
            _finish(file, raw, beside, path)
        except OSError as error:
            raise WriteError(f"cannot write {printable(name)}: {reason(error)}") from error
    finally:
        if path != beside:
            beside.unlink(missing_ok=True)


def _places(path: Path) -> tuple[Path, Path]:
    """Where a file is to stand, and where it is written until it is whole."""
    if path.is_dir():
        raise IsADirectoryError(21, "Is a directory")
    # A device, a pipe or what is open already cannot be replaced: it is written as it is.
    if (path.exists() and not path.is_file()) or _is_descriptor(path):
        return path, path
    path = Path(os.path.realpath(path))  # a link stays a link
    name = path.name
    if len(os.fsencode(name)) > NAME_LIMIT:
        name = f"{zlib.crc32(os.fsencode(name)):x}"
    return path, path.with_name(f".{name}.{os.getpid()}.tmp")


def _is_descriptor(path: Path) -> bool:
    """True for /dev/stdout, /dev/fd/3 and the like, also where they lead to a plain file."""
    for _ in range(40):  # the system follows no more links either
        folder = os.path.realpath(path.parent)
        if folder == "/dev/fd" or (folder.startswith("/proc/") and folder.endswith("/fd")):
            return True
        if not path.is_symlink():
            break
        path = path.parent / os.readlink(path)
    return False


def _finish(file: IO[bytes], raw: IO[bytes], beside: Path, path: Path) -> None:
    with raw:
        if file is not raw:
            file.close()
        raw.flush()
        if beside != path:
            os.fsync(raw.fileno())
    if beside != path:
        os.replace(beside, path)
        sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Makes a rename in `folder` survive a power failure."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def guard_descriptors() -> None:
    """Keeps closed standard streams closed: no file opened later may take their numbers."""
    for descriptor, mode in ((0, os.O_WRONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, mode)  # takes the lowest free number: this one
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:  # the same bytes in every locale
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")  # type: ignore[union-attr]


@contextmanager
def atomic_folder(folder: Path, replace: bool = False) -> Iterator[Path]:
    """Yields an empty folder beside `folder`, which takes its name when the block is left.

    If the block raises, nothing is left. replace: an older folder is moved aside, as
    `.NAME.PID.old`, until the new one stands in its place; else it is a CreateError. Raises
    WriteError.
    """
    name = printable(str(folder))
    if not replace and (folder.exists() or folder.is_symlink()):
        raise CreateError(f"cannot create {name}: it is there already")
    beside = folder.with_name(f".{folder.name}.{os.getpid()}.tmp")
    aside = beside.with_suffix(".old")
    try:
        beside.mkdir()
    except OSError as error:
        raise CreateError(f"cannot create {name}: {error.strerror}") from error
    try:
        yield beside
        try:
            if replace and folder.exists():
                os.rename(folder, aside)
            os.rename(beside, folder)
            sync_folder(folder.absolute().parent)
        except OSError as error:
            raise WriteError(f"cannot write {name}: {error.strerror}") from error
    finally:
        shutil.rmtree(beside, ignore_errors=True)
        if folder.exists():  # else the old one is all there is
            shutil.rmtree(aside, ignore_errors=True)
