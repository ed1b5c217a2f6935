"""How outputs become files: whole records, and names that stand for complete files.

`-` is stdout. A file or a folder is written under a temporary name next to its own, flushed
to disk and renamed, so that it appears whole or not at all.
"""

import contextlib
import errno
import io
import logging
import os
import secrets
import shutil
import stat
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO

from synmt_cli import signals
from synmt_cli.errors import CreateError, WriteError, cannot_create, cannot_write
from synmt_cli.io import compression
from synmt_cli.io.reading import BUFFER
from synmt_cli.io.standard import Patient

_log = logging.getLogger(__name__)

NAME_LIMIT = 220  # bytes; a longer name leaves no room for ".", process id and ".tmp"


class Writer:
    """Writes whole records to a stream. Buffers them unless `line_buffered`."""

    def __init__(
        self,
        file: IO[bytes],
        name: str,
        line_buffered: bool = False,
        seal: Callable[[], None] | None = None,
    ) -> None:
        """seal: writes the end of a file to disk and closes it; None if it stays open."""
        self.name = name
        self._seal = seal
        self._file = file
        self._line_buffered = line_buffered
        self._records: list[bytes] = []
        self._size = 0

    def write(self, record: bytes) -> None:
        """Takes one whole record with its LF. Raises WriteError, BrokenPipeError."""
        self._records.append(record)
        self._size += len(record)
        if self._line_buffered or self._size >= BUFFER:
            self.flush()

    def complete(self) -> None:
        """Writes every record and the end of the file. Nothing can be added after that.

        All that is left to do is to give the file its name. Raises WriteError.
        """
        self.flush()
        if self._seal is not None:
            try:
                self._seal()
            except OSError as error:
                raise cannot_write(self.name, error) from error

    def flush(self) -> None:
        """Writes every record. A signal waits until the last one is written whole."""
        if not self._records:  # all are written
            return
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
                raise cannot_write(self.name, error) from error


@contextmanager
def output(path: str, line_buffered: bool = False) -> Iterator[Writer]:
    """A Writer to `path`, or to stdout for `-`. On failure a file is removed, stdout flushed.

    Raises CreateError at once, WriteError later.
    """
    if path != "-":
        with atomic(path, line_buffered=line_buffered) as writer:
            yield writer
        return
    with Patient(1, "wb", closefd=False) as file:
        writer = Writer(file, "<stdout>", line_buffered or os.isatty(1))
        try:
            yield writer
        except (BrokenPipeError, WriteError):
            raise
        except BaseException:
            writer.flush()  # the records before the error are whole
            raise
        writer.flush()


@contextmanager
def together(paths: Iterable[str], line_buffered: bool = False) -> Iterator[list[Writer]]:
    """Writers to paths, as `output` gives them. All files take their names at the end, or none.

    No file has its name before all are complete, so that a full disk leaves all the old files.
    Raises CreateError, WriteError.
    """
    with contextlib.ExitStack() as stack:
        writers = [stack.enter_context(output(path, line_buffered)) for path in paths]
        yield writers
        for writer in writers:
            writer.complete()
        with signals.shielded():
            stack.close()


@contextmanager
def atomic(path: str | Path, follow: bool = True, line_buffered: bool = False) -> Iterator[Writer]:
    """A Writer to a file that takes its name only when it is complete and on disk.

    It is compressed by its suffix. follow: whether the name may be a pipe, a device, or a link,
    which stays one. line_buffered: whether a pipe or a device gets each record at once. Raises
    CreateError, WriteError. On any error no file is left; a pipe or a device has the records
    before it.
    """
    name = str(path)  # as the user gave it, even if it is a link
    with contextlib.ExitStack() as stack:
        try:
            if name.endswith(("/", "/.")):  # Path drops these
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
            path = _final(Path(path)) if follow else _regular(Path(path))
            raw, temporary = _opened(path, stack)
        except (OSError, ValueError) as error:
            raise cannot_create(name, error) from error
        if temporary and path.exists():  # keep the permissions of a file that exists
            with contextlib.suppress(OSError):  # some file systems have none
                os.fchmod(raw.fileno(), stat.S_IMODE(path.stat().st_mode))
        file = compression.compressed(raw, name)
        seal = partial(_seal, file, raw, to_disk=temporary is not None)
        writer = Writer(file, name, line_buffered and temporary is None, seal)
        try:
            yield writer
            writer.complete()
        except BaseException as error:
            takes_more = not isinstance(error, (BrokenPipeError, WriteError))
            _end_early(writer, file, raw, is_read=temporary is None and takes_more)
            raise
        if temporary:
            try:
                os.replace(temporary, path)
                sync_folder(path.parent)
            except OSError as error:
                raise cannot_write(name, error) from error
        _log.debug("wrote %s", name)


def _final(path: Path) -> Path:
    """The place where a file will be: a link stays a link."""
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    return path if _is_written_directly(path) else Path(os.path.realpath(path))


def _regular(path: Path) -> Path:
    """The path itself, where there is a regular file or nothing. Raises OSError."""
    if os.path.lexists(path) and not stat.S_ISREG(path.lstat().st_mode):
        raise OSError(errno.EINVAL, "it is there, and not a regular file")
    return path


def _is_written_directly(path: Path) -> bool:
    """True for a device, a pipe or an open descriptor: it cannot be replaced."""
    return (path.exists() and not path.is_file()) or _is_descriptor(path)


def _opened(path: Path, stack: contextlib.ExitStack) -> tuple[IO[bytes], Path | None]:
    """A new file next to the final one, which the stack removes, and its path.

    If the final one cannot be replaced: the final one, open, and None.
    """
    if _is_written_directly(path):
        number = _own_descriptor(path)
        if number is None:
            return open(path, "ab"), None
        # Opened by name, a plain file would be written from an offset of its own.
        return io.BufferedWriter(Patient(os.dup(number), "wb")), None
    for temporary in _temporary_names(path):
        with contextlib.suppress(FileExistsError), signals.shielded():
            file = open(temporary, "xb")  # noqa: SIM115
            stack.callback(temporary.unlink, missing_ok=True)
            return file, temporary
    raise FileExistsError(errno.EEXIST, "no temporary name is free")


def _temporary_names(path: Path) -> Iterator[Path]:
    """Yields names next to a path; the first free one is to be taken, exclusively.

    A name other than the first is needed after a crash, if a process id comes again.
    """
    name = path.name
    if len(os.fsencode(name)) > NAME_LIMIT:
        name = f"{zlib.crc32(os.fsencode(name)):x}"
    yield path.with_name(f".{name}.{os.getpid()}.tmp")
    for _ in range(10):
        yield path.with_name(f".{name}.{os.getpid()}.{secrets.token_hex(4)}.tmp")


def _is_descriptor(path: Path) -> bool:
    """True for /dev/stdout, /dev/fd/3 and the like, even if they lead to a plain file."""
    return _descriptor(path) is not None


def _own_descriptor(path: Path) -> int | None:
    """The number of an open descriptor of this process, None for anything else."""
    found = _descriptor(path)
    own = ("/dev/fd", os.path.realpath("/dev/fd"))
    if found is None or str(found.parent) not in own or not found.name.isdecimal():
        return None
    return int(found.name)


def _descriptor(path: Path) -> Path | None:
    """The descriptor that a path leads to, such as /proc/7/fd/1; None for anything else."""
    for _ in range(40):  # the system follows no more links, either
        folder = os.path.realpath(path.parent)
        if folder == "/dev/fd" or (folder.startswith("/proc/") and folder.endswith("/fd")):
            return Path(folder, path.name)
        if not path.is_symlink():
            break
        path = path.parent / os.readlink(path)
    return None


def _end_early(writer: Writer, file: IO[bytes], raw: IO[bytes], is_read: bool) -> None:
    """Closes an output after an error.

    is_read: whether somebody reads it already, who gets the records so far, and after compressed
    ones an error in place of an end.
    """
    with contextlib.suppress(OSError, ValueError, WriteError):
        if is_read:
            writer.flush()
            if file is not raw:
                file.close()
                raw.write(compression.cut(writer.name))
    for one in (file, raw):
        with contextlib.suppress(OSError, ValueError):
            one.close()


def _seal(file: IO[bytes], raw: IO[bytes], to_disk: bool) -> None:
    """Closes a file, and the compressor that writes to it. Does nothing if it is closed."""
    if raw.closed:
        return
    with raw:
        if file is not raw:
            file.close()
        raw.flush()
        if to_disk:
            os.fsync(raw.fileno())


@contextmanager
def atomic_folder(folder: Path, replace: bool = False) -> Iterator[Path]:
    """Yields an empty temporary folder, which takes the name `folder` when the block ends.

    If the block raises, no new folder is left. Missing folders above it are made, and CreateError
    is raised if the name is taken. replace: no folders above are made, and an older folder is
    moved aside, as `.NAME.PID.old`, until the new one has taken its name. Raises WriteError.
    Errors of files in the temporary folder name them as in the final one: the other is gone then.
    """
    name = str(folder)
    if not replace and os.path.lexists(folder):
        raise CreateError(f"cannot create {name}: it already exists")
    with contextlib.ExitStack() as stack:
        try:
            if not replace and not folder.parent.exists():  # a file there is refused below
                folder.parent.mkdir(parents=True, exist_ok=True)
            temporary = _new_folder(folder, stack)
        except OSError as error:
            raise cannot_create(name, error) from error
        try:
            yield temporary
        except (CreateError, WriteError) as error:
            raise type(error)(str(error).replace(str(temporary), name)) from error
        except OSError as error:
            if isinstance(error.filename, str | os.PathLike):
                error.filename = str(error.filename).replace(str(temporary), name)
            raise
        try:
            with signals.shielded():  # either the older folder has the name or the new one
                _take_place(temporary, folder, replace)
        except OSError as error:
            raise cannot_write(name, error) from error


def _take_place(temporary: Path, folder: Path, replace: bool) -> None:
    aside = temporary.with_suffix(".old")
    if replace and folder.exists():
        os.rename(folder, aside)
    os.rename(temporary, folder)
    sync_folder(folder.absolute().parent)
    shutil.rmtree(aside, ignore_errors=True)


def _new_folder(folder: Path, stack: contextlib.ExitStack) -> Path:
    """A new folder next to the final one, which the stack removes."""
    for temporary in _temporary_names(folder):
        with contextlib.suppress(FileExistsError), signals.shielded():
            temporary.mkdir()
            stack.callback(shutil.rmtree, temporary, ignore_errors=True)
            return temporary
    raise FileExistsError(errno.EEXIST, "no temporary name is free")


def sync_folder(folder: Path) -> None:
    """Makes a rename in `folder` survive a power failure, where the system lets folders do so."""
    with contextlib.suppress(PermissionError):  # it may be written, but not read
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.ENOTSUP):
                raise
        finally:
            os.close(descriptor)


class _Closed(io.TextIOBase):
    """Standard output that was closed before the program began: nothing can be written."""

    def write(self, text: str) -> int:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))


def guard_descriptors() -> None:
    """Keeps closed standard streams closed: no file opened later can take their numbers."""
    for descriptor, mode in ((0, os.O_WRONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, mode)  # takes the lowest free number: this one
    if sys.stdout is None:
        sys.stdout = _Closed()
    for stream in (sys.stdout, sys.stderr):
        if stream is not None and not isinstance(
            stream, _Closed
        ):  # help is the same bytes in every locale
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")  # type: ignore[union-attr]
