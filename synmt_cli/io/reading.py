"""How inputs are opened and cut into lines.

`-` is stdin. Compressed input is recognised by its first bytes. Only LF ends a line; one CR
before it is dropped, and a byte-order mark at the very start of a file.
"""

import codecs
import contextlib
import io
import logging
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO, NoReturn

from synmt_cli.errors import DataError, cannot_read
from synmt_cli.io import compression
from synmt_cli.io.standard import Patient

LINE_LIMIT = 64 * 2**20  # bytes; a longer line is refused, so that memory stays bounded
BUFFER = 2**16  # bytes
BOM = b"\xef\xbb\xbf"
UTF16_ADVICE = "it looks like UTF-16, which iconv -f UTF-16 -t UTF-8 converts"
_log = logging.getLogger(__name__)
_open: list[tuple[str, BinaryIO]] = []  # the inputs being read, as they are on disk
_finished: dict[str, int] = {}  # bytes read of the inputs that were closed


@dataclass(frozen=True, slots=True)
class Source:
    """An open input, and its name for messages.

    guessed_for: the option that states the kind, such as --from, if the source was taken for JSONL
    by its beginning alone; "" otherwise, and where no option does.
    """

    name: str
    file: BinaryIO
    guessed_for: str = ""


def source_name(path: str) -> str:
    """The name of an input in messages: `<stdin>` for `-`."""
    return "<stdin>" if path == "-" else path


def sources(paths: Sequence[str]) -> Iterator[Source]:
    """Yields each input in turn, decompressed, and closes it when the next is asked for.

    No paths mean stdin. Raises ReadError.
    """
    for path in paths or ("-",):
        with open_source(path) as source:
            yield source


@contextlib.contextmanager
def open_source(path: str) -> Iterator[Source]:
    """One input, decompressed. Raises ReadError, and DataError for a zip archive."""
    name = source_name(path)
    try:
        raw: BinaryIO = (
            io.BufferedReader(Patient(0, closefd=False), BUFFER)
            if path == "-"
            else open(path, "rb", buffering=BUFFER)  # noqa: SIM115
        )
    except (OSError, ValueError) as error:
        raise cannot_read(name, error) from error
    with _watched(path, raw), _closed(raw):
        try:
            file = compression.decompressed(raw)
        except OSError as error:
            raise cannot_read(name, error) from error
        except compression.Archive:
            problem = "this is a zip archive; unpack it first (unzip -p writes what it holds)"
            raise DataError(name, None, problem) from None
        _log.debug("reads %s%s", name, "" if file is raw else ", decompressed")
        yield Source(name, file)
        _finished[path] = _finished.get(path, 0) + _position(raw)  # before it is closed


@contextlib.contextmanager
def _watched(path: str, raw: BinaryIO) -> Iterator[None]:
    """Lets `bytes_read` know how far an input is read."""
    _open.append((path, raw))
    try:
        yield
    finally:
        _open.remove((path, raw))


@contextlib.contextmanager
def _closed(raw: BinaryIO) -> Iterator[None]:
    """Closes an input at the end, except a pipe after an error.

    A thread may be waiting for more of it, and closing it would wait, too: a signal could not end
    the program.
    """
    is_file = stat.S_ISREG(os.fstat(raw.fileno()).st_mode)
    try:
        yield
    except BaseException:
        if is_file:
            raw.close()
        raise
    raw.close()


def _position(raw: BinaryIO) -> int:
    """How many bytes were read, 0 for a pipe and for a file that is closed."""
    try:
        return raw.tell()
    except (OSError, ValueError):
        return 0


def bytes_read(paths: Sequence[str]) -> int:
    """The bytes of these inputs that this process has read so far, as they are on disk.

    Compressed bytes count as they are. What was read from a pipe does not count.
    """
    names = set(paths)
    closed = sum(_finished.get(name, 0) for name in names)
    return closed + sum(_position(raw) for path, raw in tuple(_open) if path in names)


def bytes_in(paths: Sequence[str]) -> int | None:
    """The bytes of these inputs on disk; None where one of them is not a regular file."""
    total = 0
    for path in paths:
        try:
            about = os.fstat(0) if path == "-" else os.stat(path)
        except (OSError, ValueError):  # whoever reads it says why
            return None
        if not stat.S_ISREG(about.st_mode):
            return None
        total += about.st_size
    return total


def file_identity(path: str) -> tuple[int, int, int]:
    """Size in bytes, time of change (ns) and inode of a file, to see if it is still the same.

    Files from one archive can share all but the inode. Raises ReadError.
    """
    try:
        about = os.stat(path)
    except (OSError, ValueError) as error:
        raise cannot_read(path, error) from error
    return about.st_size, about.st_mtime_ns, about.st_ino


def refuse_changed(path: str, before: tuple[int, int, int]) -> None:
    """Raises DataError if a file is no longer in the state `before`, ReadError if it is gone."""
    if file_identity(path) != before:
        raise DataError(path, None, "changed while it was read")


def is_streamed(paths: Sequence[str]) -> bool:
    """Whether these inputs come from a pipe or a terminal. No paths mean stdin."""
    return bytes_in(paths or ("-",)) is None


def absolute(path: str) -> str:
    """The absolute path of a file. `link/..` stays if the path without it names another file."""
    whole = os.path.join(os.getcwd(), path)
    short = os.path.normpath(whole)
    return short if os.path.realpath(short) == os.path.realpath(whole) else whole


def is_among(path: str, inputs: Sequence[str]) -> bool:
    """Whether a file is one of these inputs. Pipes, devices and missing files never are."""
    if path == "-" or not os.path.isfile(path):
        return False
    return any(_is_stdin(path) if one == "-" else _are_same(path, one) for one in inputs)


def _is_stdin(path: str) -> bool:
    """Whether stdin comes from this file: `< FILE`."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(0))
    except OSError:  # stdin is closed
        return False


def _are_same(path: str, other: str) -> bool:
    return os.path.isfile(other) and os.path.samefile(path, other)


def lines(source: Source, unfinished: bool = True) -> Iterator[bytes]:
    """Yields the lines of a source without their ends. Raises DataError, ReadError.

    A last line without LF counts, unless unfinished is False; a last LF begins no further line.
    Memory is one line.
    """
    for number, line in enumerate(_physical_lines(source), 1):
        ended = line.endswith(b"\n")
        if not ended and len(line) > LINE_LIMIT:
            limit = LINE_LIMIT // 2**20
            raise DataError(source.name, number, f"line longer than {limit} MiB")
        if not (ended or unfinished):
            return
        if number == 1 and line.startswith(BOM):
            line = line[len(BOM) :]
            if not line:  # a file of nothing but the mark is empty
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
        fail(source, number + 1, error)


def text_lines(source: Source) -> Iterator[tuple[int, str]]:
    """Yields (line number from 1, text) of a source. Raises DataError, ReadError."""
    for number, line in enumerate(lines(source), 1):
        yield number, decode(line, source.name, number)


def decode(line: bytes, source: str, number: int) -> str:
    """The text of a line. Raises DataError at its first byte that is not UTF-8 (from 1)."""
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(source, number, not_utf8(error.start + 1, line, number)) from None


def refuse_not_utf8(data: bytes, source: str) -> None:
    """Raises DataError at the first byte of a whole file that is not UTF-8."""
    for number, line in enumerate(data.split(b"\n"), 1):
        decode(line, source, number)


def not_utf8(byte: int, line: bytes = b"", number: int = 0) -> str:
    """The message for a line in which this byte, counted from 1, is not UTF-8."""
    is_utf16 = _looks_like_utf16(line, number)
    advice = UTF16_ADVICE if is_utf16 else "iconv -f LATIN1 -t UTF-8 converts text in Latin-1"
    return f"invalid UTF-8 at byte {byte} ({advice})"


def refuse_nul(text: str, source: str, number: int) -> None:
    """Raises DataError for a line that CoNLL-U could not hold."""
    if "\0" in text:
        advice = f" ({UTF16_ADVICE})" if _looks_like_utf16(text.encode(), number) else ""
        raise DataError(source, number, f"NUL character{advice}")


def _looks_like_utf16(line: bytes, number: int) -> bool:
    """Whether a line begins as a file in UTF-16 does, or mostly every second byte is NUL."""
    if number == 1 and line.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return not line.startswith(codecs.BOM_UTF32_LE)
    few, many = sorted(half.count(0) / max(1, len(half)) for half in (line[::2], line[1::2]))
    return len(line) > 3 and few < 0.2 and many > 0.6


def chunks(source: Source) -> Iterator[bytes]:
    """Yields the bytes of a source as they arrive, at most BUFFER at a time.

    For readers that find their own boundaries. Raises DataError, ReadError.
    """
    number = 1
    try:
        while data := source.file.read1(BUFFER):  # type: ignore[attr-defined]
            number += data.count(b"\n")
            yield data
    except Exception as error:
        fail(source, number, error)


def whole(source: Source, limit: int, what: str) -> bytes:
    """All bytes of a source. what: its name in the message, such as `a vocabulary`.

    Raises ReadError, and DataError, also for more bytes than the limit.
    """
    data = bytearray()
    for chunk in chunks(source):
        data += chunk
        if len(data) > limit:
            raise DataError(
                source.name, None, f"more than the {limit:,} bytes that {what} may have"
            )
    return bytes(data)


def fail(source: Source, line: int, error: Exception) -> NoReturn:
    """Raises the error for what reading raised at `line`; `error` itself if that is a bug."""
    if isinstance(error, MemoryError):
        problem = "line too long for the available memory"
        raise DataError(source.name, line, problem) from error
    if isinstance(error, OSError) and error.errno is not None:
        raise cannot_read(source.name, error) from error
    if isinstance(error, compression.Damaged):
        problem = f"damaged compressed data: {error}"
        raise DataError(source.name, line, problem) from error
    raise error
