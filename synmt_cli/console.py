"""Messages and progress on stderr. The only module that imports rich.

Progress is a bar on a terminal, and a line every 30 seconds elsewhere, so that a log stays
readable. `--quiet` hides everything but errors, `--verbose` adds detail, NO_COLOR is honoured.
"""

import contextlib
import os
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

QUIET, NORMAL, VERBOSE = 0, 1, 2
INTERVAL = 30.0  # seconds between progress lines where stderr is not a terminal
Item = TypeVar("Item")
_level = NORMAL
command = "synmt"  # the first words of each message; cli.main sets it to `synmt COMMAND`


def set_level(level: int) -> None:
    """QUIET, NORMAL or VERBOSE, for the whole process."""
    global _level
    _level = level


def error(message: str) -> None:
    """One line, always shown."""
    _line(f"{command}: {message}")


def warn(message: str) -> None:
    """One line that `--quiet` hides, about something left out or doubtful."""
    if _level >= NORMAL:
        _line(f"{command}: warning: {message}")


def info(message: str) -> None:
    """One line that `--quiet` hides."""
    if _level >= NORMAL:
        _line(f"{command}: {message}")


def debug(message: str) -> None:
    """One line that only `--verbose` shows."""
    if _level >= VERBOSE:
        _line(f"{command}: {message}")


def _line(text: str) -> None:
    with contextlib.suppress(OSError):  # nobody reads stderr; the exit status still tells
        os.write(2, text.encode("utf-8", "backslashreplace") + b"\n")


@dataclass
class Progress:
    """Counts units of work. `advance` is cheap: it reads the clock and rarely draws."""

    label: str
    total: int | None
    unit: str
    _bar: Any = None
    _task: Any = None
    _start: float = field(default_factory=time.monotonic)
    _shown: float = field(default_factory=time.monotonic)
    done: int = 0

    def advance(self, n: int = 1, note: str = "") -> None:
        """Counts n more units as done. `note` is shown after the count."""
        self.done += n
        if self._bar is not None:
            self._bar.update(self._task, completed=self.done, note=note)
            return
        now = time.monotonic()
        if _level >= NORMAL and now - self._shown >= INTERVAL:
            self._shown = now
            of = f" of {self.total:,}" if self.total else ""
            rate = self.done / max(now - self._start, 1e-9)
            info(f"{self.label}: {self.done:,}{of} {self.unit}, {rate:,.0f}/s {note}".rstrip())

    def watched(self, items: Iterable[Item]) -> Iterator[Item]:
        """Yields the items, each counted when the next is asked for."""
        for item in items:
            yield item
            self.advance()


@contextmanager
def progress(label: str, total: int | None = None, unit: str = "lines") -> Iterator[Progress]:
    """A Progress, drawn as a bar where stderr is a terminal."""
    if _level < NORMAL or not sys.stderr or not sys.stderr.isatty():
        yield Progress(label, total, unit)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as RichProgress

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(unit),
        TimeElapsedColumn(),
        TextColumn("{task.fields[note]}"),
    )
    with RichProgress(*columns, console=Console(stderr=True), transient=True) as bar:
        yield Progress(label, total, unit, bar, bar.add_task(label, total=total, note=""))
