"""A stream that gives its beginning, which was read to look at it, once more."""

import io
from typing import Any, BinaryIO


class Replayed(io.RawIOBase):
    """The bytes `head`, then the rest of a buffered file, which stays open when this is closed."""

    def __init__(self, head: bytes, rest: BinaryIO) -> None:
        self._head, self._rest = head, rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")
        data = self._head[: len(view)] or self._rest.read1(len(view))  # type: ignore[attr-defined]
        self._head = self._head[len(view) :]
        view[: len(data)] = data
        return len(data)
