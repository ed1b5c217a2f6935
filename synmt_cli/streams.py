"""Streams of bytes: what a line is, how inputs are opened, how outputs become files.

Only LF ends a line; one CR before it is dropped, and a byte-order mark at the very start.
`-` is stdin or stdout. Compressed input is known by its first bytes, compressed output by
its suffix. A file named by `-o` appears whole or not at all.
"""

from __future__ import annotations

import contextlib
import os
import stat
import sys
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, BinaryIO

from synmt_cli import compression, signals
from synmt_cli.errors import CreateError, DataError, ReadError, WriteError, printable

LINE_LIMIT = 64 * 2**20  # bytes; a longer line is refused, so that memory stays bounded
BUFFER = 2**16
BOM = b"\xef\xbb\xbf"
NAME_LIMIT = 230  # bytes; a longer name has no room beside it for ".", process id and ".tmp"


@dataclass(frozen=True, slots=True)
class Source:
    """An open input and the name to blame in messages."""

    name: str
    file: BinaryIO


def sources(paths: Sequence[str]) -> Iterator[Source]:
    """Yields each input in turn, decompressed, closed when the next is asked for.

    No path at all is stdin. Raises ReadError.
    """
    for path in paths or ("-",):
        with open_source(path) as source:
            yield source


@contextlib.contextmanager
def open_source(path: str) -> Iterator[Source]:
    """One input, decompressed. Raises ReadError."""
    name = "<stdin>" if path == "-" else path
    try:
        raw = open(0 if path == "-" else path, "rb", buffering=BUFFER, closefd=path != "-")  # noqa: SIM115
    except (OSError, ValueError) as error:
        raise ReadError(f"cannot read {printable(name)}: {_reason(error)}") from error
    with raw:
        try:
            file = compression.decompressed(raw)
        except OSError as error:
            raise ReadError(f"cannot read {printable(name)}: {_reason(error)}") from error
        with file:
            yield Source(name, file)


def lines(source: Source) -> Iterator[bytes]:
    """Yields the lines of a source without their ends. Raises DataError, ReadError.

    Memory is one line. A last line without LF counts; nothing after the last LF does not.
    """
    for number, line in enumerate(_physical_lines(source), 1):
        ended = line.endswith(b"\n")
        if not ended and len(line) > LINE_LIMIT:
            limit = LINE_LIMIT // 2**20
            raise DataError(source.name, number, f"line longer than {limit} MiB")
        if number == 1 and line.startswith(BOM):
            line = line[len(BOM) :]
            if not line:  # a mark alone is an empty file
                return
        if ended:
            line = line[:-1]
        if line.endswith(b"\r"):
            line = line[:-1]
        yield line


def _physical_lines(source: Source) -> Iterator[bytes]:
    number = 0
    try:
        while line := source.file.readline(LINE_LIMIT + 1):
            number += 1
            yield line
    except Exception as error:
        failure = read_failure(source, number + 1, error)
        if failure is error:
            raise
        raise failure from error


def chunks(source: Source, size: int = BUFFER) -> Iterator[bytes]:
    """Yields the bytes of a source as they arrive, at most `size` at a time.

    For readers that look for their own boundaries. Raises DataError, ReadError.
    """
    number = 1
    try:
        while data := source.file.read1(size):  # type: ignore[attr-defined]
            number += data.count(b"\n")
            yield data
    except Exception as error:
        failure = read_failure(source, number, error)
        if failure is error:
            raise
        raise failure from error


def read_failure(source: Source, line: int, error: Exception) -> Exception:
    """What to raise when reading `source` failed at `line`; `error` itself if that is a bug."""
    if isinstance(error, MemoryError):
        return DataError(source.name, line, "line too long for the memory there is")
    if isinstance(error, OSError) and error.errno is not None:
        return ReadError(f"cannot read {printable(source.name)}: {_reason(error)}")
    if compression.is_damage(error):
        return DataError(source.name, line, f"damaged compressed data: {printable(str(error))}")
    return error


def decode(line: bytes, source: str, number: int) -> str:
    """The text of a line. Raises DataError at its first byte that is not UTF-8 (from 1)."""
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        problem = f"invalid UTF-8 at byte {error.start + 1}"
        raise DataError(source, number, problem) from None


def text_lines(source: Source) -> Iterator[tuple[int, str]]:
    """Yields (line number from 1, text) of a source. Raises DataError, ReadError."""
    for number, line in enumerate(lines(source), 1):
        yield number, decode(line, source.name, number)


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
                message = f"cannot write {printable(self.name)}: {_reason(error)}"
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
        raise CreateError(f"cannot create {printable(name)}: {_reason(error)}") from error
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
            raise WriteError(f"cannot write {printable(name)}: {_reason(error)}") from error
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


def _reason(error: BaseException) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
