"""Compressed streams: recognised by their first bytes when read, by suffix when written."""

import io
import lzma
import zlib
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

MAGIC = {
    b"\x1f\x8b": "gz",
    b"BZh": "bz2",
    b"\xfd7zXZ\x00": "xz",
    b"\x28\xb5\x2f\xfd": "zst",
}
SUFFIXES = {".gz": "gz", ".bz2": "bz2", ".xz": "xz", ".zst": "zst"}
LONGEST = max(map(len, MAGIC))
# Exceptions of xopen's libraries by name, because the libraries are imported only when needed.
FOREIGN = {"ZstdError", "IsalError"}


def decompressed(raw: BinaryIO) -> BinaryIO:
    """The decompressed text of `raw`, a buffered file; `raw` itself if it is not compressed."""
    file = raw = cast(io.BufferedReader, raw)
    start = raw.peek(LONGEST)[:LONGEST]
    if _undecided(start):  # a pipe may bring the first bytes one by one
        start = b""
        while _undecided(start) and (byte := raw.read(1)):
            start += byte
        file = io.BufferedReader(_Rejoined(start, raw))
    for magic, kind in MAGIC.items():
        if start.startswith(magic):
            from xopen import xopen  # imported only where needed: filters start fast

            return xopen(file, "rb", threads=0, format=kind)
    return file


def _undecided(start: bytes) -> bool:
    return any(magic.startswith(start) and magic != start for magic in MAGIC)


class _Rejoined(io.RawIOBase):
    """A stream that gives again the first bytes, which were read to look at them."""

    def __init__(self, start: bytes, rest: io.BufferedReader) -> None:
        self._start = start
        self._rest = rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._start[: len(buffer)] or self._rest.read1(len(buffer))
        self._start = self._start[len(buffer) :]
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._rest.close()
        super().close()


def compressed(raw: IO[bytes], name: str) -> IO[bytes]:
    """A stream that compresses into `raw` by the suffix of `name`; `raw` itself without one."""
    suffix = Path(name).suffix
    if suffix not in SUFFIXES:
        return raw
    from xopen import xopen

    return cast(IO[bytes], xopen(raw, "wb", threads=0, format=SUFFIXES[suffix]))


def is_damage(error: BaseException) -> bool:
    """Whether reading failed because compressed data is cut or corrupt."""
    if isinstance(error, OSError) and error.errno is not None:
        return False  # the system failed, not the data
    return (
        isinstance(error, (OSError, EOFError, zlib.error, lzma.LZMAError))
        or type(error).__name__ in FOREIGN
        or type(error).__module__ == "zlib_ng"
    )
