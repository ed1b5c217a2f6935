"""Compressed streams: recognised by their first bytes when read, by suffix when written."""

import bz2
import io
import lzma
import re
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

from synmt_cli.io.replayed import Replayed

BZIP2_MARKS = b"1AY", b"\x17\x72\x45"
MAGIC = {
    b"\x1f\x8b": "gz",
    # "BZh" alone may begin a text, so the size and the mark of a block or of the end follow it.
    **{b"BZh%d" % size + mark: "bz2" for size in range(1, 10) for mark in BZIP2_MARKS},
    b"\xfd7zXZ\x00": "xz",
    b"\x28\xb5\x2f\xfd": "zst",
    **{bytes([0x50 + i]) + b"\x2a\x4d\x18": "zst" for i in range(16)},  # a frame to skip
    b"PK\x03\x04": "zip",  # an archive of files, and no stream
}
SUFFIXES = {".gz": "gz", ".bz2": "bz2", ".xz": "xz", ".zst": "zst"}
LONGEST = max(map(len, MAGIC))
FURTHER = {  # how a stream that follows another one begins
    "gz": re.compile(rb"\x1f\x8b"),
    "bz2": re.compile(rb"BZh[1-9]"),
    "xz": re.compile(rb"\xfd7zXZ\x00"),
    "zst": re.compile(rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18"),  # a frame, or one to skip
}
PADDING = {"gz": 1, "xz": 4}  # zeros may follow a stream, a multiple of so many
BLOCK = 2**16  # bytes
ZST_LEVEL = 3  # what zstd and xopen take, too
# The header of a gz member: the place of its flags, and the flags of nothing, a name, extra data.
FLAGS, SIMPLE = 3, (0, 8, 4)


class Damaged(Exception):
    """Compressed data that is cut, corrupt, or followed by something else."""


class Archive(Exception):
    """A zip archive, which holds files rather than a stream."""


def cut(name: str) -> bytes:
    """A cut stream, compressed by the suffix of `name`: at its end, readers see an error."""
    whole = io.BytesIO()
    compressed(whole, name).close()
    return whole.getvalue()[:-1]


def decompressed(raw: BinaryIO) -> BinaryIO:
    """The decompressed text of `raw`, a buffered file; `raw` itself if it is not compressed.

    Raises Archive for a zip archive.
    """
    file = raw = cast(io.BufferedReader, raw)
    start = raw.peek(LONGEST)[:LONGEST]
    if _undecided(start):  # a pipe may bring the first bytes one by one
        start = b""
        while _undecided(start) and (byte := raw.read(1)):
            start += byte
        file = io.BufferedReader(_Rejoined(start, raw))
    for magic, kind in MAGIC.items():
        if start.startswith(magic):
            if kind == "zip":
                raise Archive
            return io.BufferedReader(_Decompressed(file, kind), 2 * BLOCK)
    return file


def _undecided(start: bytes) -> bool:
    return any(magic.startswith(start) and magic != start for magic in MAGIC)


class _Rejoined(Replayed):
    """A file with its first bytes, which were read, put back."""

    def close(self) -> None:
        self._rest.close()
        super().close()


class _Decompressed(io.RawIOBase):
    """The text of compressed data: one stream after another up to the end, and nothing else.

    Python's readers of bz2 and xz end at bytes that do not begin a stream, so that one wrong bit
    silently cuts a file of several streams. Raises Damaged, at each further read too.
    """

    def __init__(self, raw: io.BufferedReader, kind: str) -> None:
        self._raw = raw
        self._kind = kind
        self._new = _decompressor(kind)
        self._stream = self._new()
        self._n_read = 0  # compressed bytes
        self._begin = 0  # offset of this stream
        self._is_at_end = False
        self._problem = ""

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self._raw.close()
        super().close()

    def readinto(self, buffer: Any) -> int:
        text = b""
        while not text:
            if self._problem:
                raise Damaged(self._problem)
            data = self._data()
            if self._is_at_end:
                return 0
            try:
                text = self._stream.decompress(data, len(buffer))
            except MemoryError:
                raise
            except Exception as error:  # each library has exceptions of its own
                where = f"{self._kind} stream at offset {self._begin}"
                raise self._damaged(f"{where}: {error}") from error
        buffer[: len(text)] = text
        return len(text)

    def _data(self) -> bytes:
        """The bytes that the stream needs next; none if it has more text to give out."""
        data = b""
        if self._is_at_end:  # padding is counted once
            return data
        if self._stream.eof:
            data = self._next_stream()
            self._is_at_end = not data
        elif self._stream.needs_input and not (data := self._more()):
            raise self._damaged(f"the {self._kind} stream at offset {self._begin} is cut")
        return data

    def _more(self) -> bytes:
        data = self._raw.read1(BLOCK)
        self._n_read += len(data)
        return data

    def _next_stream(self) -> bytes:
        """Begins the next stream and returns its first bytes; b"" at the end. Raises Damaged."""
        data: bytes = self._stream.unused_data
        n_zeros = 0
        unit = PADDING.get(self._kind)
        while True:
            if unit:
                rest = data.lstrip(b"\0")
                n_zeros += len(data) - len(rest)
                data = rest
            if len(data) >= LONGEST or not (more := self._more()):
                break
            data += more
        self._begin = self._n_read - len(data)
        if (data and not FURTHER[self._kind].match(data)) or n_zeros % (unit or 1):
            problem = f"what follows at offset {self._begin} is not another {self._kind} stream"
            raise self._damaged(problem)
        if data:
            self._stream = self._new()
        return data

    def _damaged(self, problem: str) -> Damaged:
        self._problem = problem
        return Damaged(problem)


class _GzipMember:
    """A decompressor of one gz member, by zlib, with the methods of the other decompressors."""

    def __init__(self) -> None:
        self._member: Any = zlib.decompressobj(wbits=31)

    @property
    def eof(self) -> bool:
        return bool(self._member.eof)

    @property
    def needs_input(self) -> bool:
        return not (self.eof or self._member.unconsumed_tail)

    @property
    def unused_data(self) -> Any:
        return self._member.unused_data

    def decompress(self, data: bytes, max_length: int) -> Any:
        return self._member.decompress(self._member.unconsumed_tail + data, max_length)


class _FastGzipMember:
    """The same by isal, unless the member's header has more than a name or an extra field.

    isal 1.9 takes such a header for damaged if it comes in two parts.
    """

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._head = b""
        self._member: Any = None

    @property
    def eof(self) -> bool:
        return self._member is not None and bool(self._member.eof)

    @property
    def needs_input(self) -> bool:
        return self._member is None or bool(self._member.needs_input)

    @property
    def unused_data(self) -> Any:
        return self._member.unused_data

    def decompress(self, data: bytes, max_length: int) -> Any:
        if self._member is None:
            data = self._head + data
            if len(data) <= FLAGS:
                self._head = data
                return b""
            self._member = self._make() if data[FLAGS] in SIMPLE else _GzipMember()
        return self._member.decompress(data, max_length)


def _decompressor(kind: str) -> Callable[[], Any]:
    """A maker of decompressors, one for each stream. Imports only what is needed, to start fast."""
    if kind == "gz":
        try:
            from isal import igzip_lib
        except ImportError:  # it comes with xopen, but not for every platform
            return _GzipMember
        make = partial(igzip_lib.IgzipDecompressor, flag=igzip_lib.DECOMP_GZIP)
        return partial(_FastGzipMember, make)
    if kind == "zst":
        window = _zstd().DecompressionParameter.window_log_max
        widest = {window: window.bounds()[1]}  # the library takes files of `zstd --long=31` for bad
        return partial(_zstd().ZstdDecompressor, options=widest)
    return {"bz2": bz2.BZ2Decompressor, "xz": lzma.LZMADecompressor}[kind]


def _zstd() -> Any:
    """The module for zst: in Python 3.14's library, before that a package that xopen needs."""
    try:
        from compression import zstd  # type: ignore[import-not-found]
    except ImportError:
        from backports import zstd
    return zstd


def is_compressed_name(name: str) -> bool:
    """Whether a file of that name is compressed when it is written."""
    return Path(name).suffix in SUFFIXES


def compressed(raw: IO[bytes], name: str) -> IO[bytes]:
    """A stream that compresses into `raw` by the suffix of `name`; `raw` itself without one.

    Every format holds a checksum of its text, so that readers notice a wrong bit.
    """
    if not is_compressed_name(name):
        return raw
    kind = SUFFIXES[Path(name).suffix]
    stream = _zst_writer(raw) if kind == "zst" else _xopened(raw, kind)
    if isinstance(stream, io.BufferedWriter):  # left empty it writes nothing; zst needs a frame
        stream.raw.write(b"")
    return stream


def _xopened(raw: IO[bytes], kind: str) -> IO[bytes]:
    from xopen import xopen

    return cast(IO[bytes], xopen(raw, "wb", threads=0, format=kind))


def _zst_writer(raw: IO[bytes]) -> IO[bytes]:
    """xopen writes frames of zst without a checksum, and has no option for one."""
    zstd = _zstd()
    parameter = zstd.CompressionParameter
    options = {parameter.compression_level: ZST_LEVEL, parameter.checksum_flag: 1}
    return io.BufferedWriter(zstd.ZstdFile(raw, "wb", options=options))
