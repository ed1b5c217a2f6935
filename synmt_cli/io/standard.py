"""Standard input and output, which another program may have set not to block.

A program that shares a terminal or a pipe with us may do so. Python then takes missing input for
the end of it, and writes nothing when there is no room.
"""

import io
import select
from typing import Any


class Patient(io.FileIO):
    """An open descriptor; reading and writing wait, as if it were set to block."""

    def readinto(self, buffer: Any) -> int:
        """Reads what there is, at least a byte except at the end. Raises OSError."""
        while (n := super().readinto(buffer)) is None:
            self._wait(select.POLLIN)
        return n

    def read(self, size: int | None = -1) -> Any:
        """Reads at most `size` bytes, or all there are, by way of `readinto`. Raises OSError."""
        return io.RawIOBase.read(self, -1 if size is None else size)

    def readall(self) -> Any:
        """Reads up to the end. Raises OSError."""
        return io.RawIOBase.readall(self)

    def write(self, data: Any) -> int:
        """Writes what there is room for, at least a byte. Raises OSError, BrokenPipeError."""
        while (n := super().write(data)) is None:
            self._wait(select.POLLOUT)
        return n

    def _wait(self, event: int) -> None:
        waiting = select.poll()
        waiting.register(self, event)
        waiting.poll()
