"""Messages and progress on stderr. The only module that imports rich.

Progress is a bar on a terminal, which a thread redraws several times a second, and a line every
30 seconds elsewhere, so that a log stays readable. Messages appear above the bar. A command that
writes its records to the same terminal has no bar. `--quiet` hides everything but errors,
`--verbose` adds detail, NO_COLOR is honoured.
"""

import contextlib
import fcntl
import logging
import os
import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from synmt_cli.errors import counted, printable
from synmt_cli.io import reading

QUIET, NORMAL, VERBOSE = 0, 1, 2
INTERVAL = 30.0  # seconds between progress lines where stderr is not a terminal
REFRESH = 5  # times a second that a bar is drawn
WARM_UP = 2.0  # seconds before the time left is shown: the first items are not like the others
LITTLE = 0.005  # a share of the work that is as good as none
UNITS = ((86400.0, "d"), (3600.0, "h"), (60.0, "min"))
Item = TypeVar("Item")
_level = NORMAL
_errors: str | None = None  # a file with the errors that the processes of a command have printed
_live: Any = None  # rich's display of the bar, while there is one
os.register_at_fork(after_in_child=lambda: globals().update(_live=None))  # no thread draws there
command = "synmt"  # the first words of each message; cli.main sets it to `synmt COMMAND`


def set_level(level: int) -> None:
    """Sets how much the whole process shows: QUIET, NORMAL or VERBOSE."""
    global _level
    _level = level
    log = logging.getLogger("synmt_cli")  # modules without a console log there what they open
    log.propagate = False
    log.setLevel(logging.DEBUG if level >= VERBOSE else logging.CRITICAL)
    log.handlers = [_Handler()]


def share_errors(path: str | None) -> None:
    """Makes only the first of the processes that name the same file print an error."""
    global _errors
    _errors = path


class _Handler(logging.Handler):
    """Writes the records of the package's logger as lines that only `--verbose` shows."""

    def emit(self, record: logging.LogRecord) -> None:
        debug(record.getMessage())


def error(message: str, above: str = "") -> None:
    """Prints a line that nothing hides, unless another process printed it (`share_errors`).

    above: whole lines, such as a traceback, printed before it.
    """
    line = f"{command}: {message}"
    if _errors is None or _is_new(line, _errors):
        for one in (*above.split("\n")[:-1], line):
            _line(one)


def warn(message: str) -> None:
    """Prints a line that `--quiet` hides, about something left out or doubtful."""
    if _level >= NORMAL:
        _line(f"{command}: warning: {message}")


def info(message: str) -> None:
    """Prints a line that `--quiet` hides."""
    if _level >= NORMAL:
        _line(f"{command}: {message}")


def debug(message: str) -> None:
    """Prints a line that only `--verbose` shows."""
    if _level >= VERBOSE:
        _line(f"{command}: {message}")


def _is_new(line: str, path: str) -> bool:
    text = printable(line).encode()
    with contextlib.suppress(OSError), open(path, "a+b") as file:  # at worst it is printed twice
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        if text in file.read().split(b"\n"):
            return False
        file.write(text + b"\n")
    return True


def _line(text: str) -> None:
    line = printable(text).encode()  # names and words of the input are in it
    with contextlib.suppress(OSError):  # nobody reads stderr; the exit status still tells
        if _live is None:
            os.write(2, line + b"\n")
        else:
            from rich.text import Text

            _live.print(Text(line.decode()), soft_wrap=True)


def duration(seconds: float) -> str:
    """A duration with its unit, to about two figures.

    >>> duration(9.4), duration(100), duration(5000), duration(200_000)
    ('9 s', '1.7 min', '1.4 h', '2.3 d')
    """
    for size, unit in UNITS:
        if seconds >= size:
            n = seconds / size
            return f"{n:.1f} {unit}" if n < 9.95 else f"{n:,.0f} {unit}"
    return f"{seconds:.0f} s"


@dataclass
class Progress:
    """A counter of units of work. Counting is cheap: it reads the clock, and a thread draws.

    total: how many units there are, if that is known. files: inputs whose bytes tell how much
    there is to do; `taken` and `finished` note which of them are done. done: units counted so
    far. note: a text shown at the end.
    """

    label: str
    total: int | None
    unit: str
    files: Sequence[str] = ()
    done: int = 0
    note: str = ""
    _ahead: int = 0  # units that are done and not yet counted
    _inside: float = 0.0  # how much of the units in work is done, from 0 to 1
    _positions: deque[int] = field(default_factory=deque)  # bytes read with each item in work
    _read: int = 0  # bytes of `files` whose items are finished
    _end: float | None = None  # when all will be done, by the last estimate
    _start: float = field(default_factory=time.monotonic)
    _shown: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self._size = reading.bytes_in(self.files) if self.files else None
        self._read_before = reading.bytes_read(self.files)
        self._done_before, self._share_before = self.done, self.share() or 0.0

    def advance(self, n: int = 1, note: str | None = None) -> None:
        """Counts n more units as done. note: None leaves it as it is."""
        self.done += n
        self.tick(note=note)

    def tick(self, ahead: int = 0, inside: float = 0.0, note: str | None = None) -> None:
        """Shows that work goes on.

        ahead: how many of the units in work are done. inside: how much of their work, 0 to 1.
        """
        self._ahead, self._inside = ahead, inside
        self.note = self.note if note is None else note
        now = time.monotonic()
        self._foresee(now)
        if _live is None and _level >= NORMAL and now - self._shown >= INTERVAL:
            self._shown = now
            # At first only few of the many units in work are done: the rate would be far too low.
            share = self.share()
            is_known = share is None or share >= LITTLE
            said = self.count(), self.rate() if is_known else "", self.left(), self.note
            info(f"{self.label}: {', '.join(filter(None, said))}")

    def watched(self, items: Iterable[Item]) -> Iterator[Item]:
        """Yields the items, each counted when the next is asked for."""
        for item in self.finished(self.taken(items)):
            yield item
            self.advance()

    def taken(self, items: Iterable[Item]) -> Iterator[Item]:
        """Yields the items of the input, and notes how far `files` were read for each."""
        for item in items:
            if self._size is not None:
                self._positions.append(reading.bytes_read(self.files) - self._read_before)
            yield item

    def finished(self, results: Iterable[Item]) -> Iterator[Item]:
        """Yields the results of the items that `taken` yielded: one for each, in order."""
        for result in results:
            if self._positions:
                self._read = self._positions.popleft()
            yield result

    def share(self) -> float | None:
        """The part of the work that is done, from 0 to 1; None if it is not known."""
        if self.total:
            return min((self.done + self._ahead) / self.total, 1.0)
        if not self._size:
            return None
        following = self._positions[0] if self._positions else self._read
        inside = (following - self._read) * self._inside
        return min((self._read + inside) / self._size, 1.0)

    def count(self) -> str:
        """The units done so far, with the total or a percentage if that is known."""
        n, share = self.done + self._ahead, self.share()
        if self.total:
            return f"{n:,} of {counted(self.total, self.unit.removesuffix('s'))}"
        so_far = counted(n, self.unit.removesuffix("s"))
        return f"{so_far}, {100 * share:.0f}%" if share and share >= LITTLE else so_far

    def rate(self) -> str:
        """Units per second, or seconds per unit."""
        n = self.done + self._ahead - self._done_before
        rate = n / max(time.monotonic() - self._start, 1e-9)
        if rate >= 10 or not rate:
            return f"{rate:,.0f}/s"
        return f"{rate:.1f}/s" if rate >= 1 else f"{1 / rate:,.1f} s each"

    def left(self) -> str:
        """The time that is left at the speed so far; "" if it is not known."""
        if self._end is None:
            return ""
        return f"{duration(max(self._end - time.monotonic(), 0))} left"

    def _foresee(self, now: float) -> None:
        share, seconds = self.share(), now - self._start
        if share is not None and share > self._share_before and seconds >= WARM_UP:
            self._end = now + seconds * (1 - share) / (share - self._share_before)

    def __rich__(self) -> Any:
        """A bar in one line, cut at the edge of the terminal; rich asks for it each time."""
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        share, seconds = self.share(), int(time.monotonic() - self._start)
        passed = f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"
        timing = ", ".join(filter(None, (passed, self.left()))) + "," * bool(self.note)
        line = Table.grid(padding=(0, 1))
        for _ in range(5):
            line.add_column(no_wrap=True)
        line.add_row(
            Text(self.label),
            ProgressBar(1.0, share or 0.0, width=20, pulse=share is None),
            Text(self.count(), "progress.download"),
            Text(timing, "progress.elapsed"),
            Text(self.note),
        )
        return line


@contextmanager
def progress(
    label: str,
    total: int | None = None,
    unit: str = "lines",
    files: Sequence[str] = (),
    output: str = "",
    done: int = 0,
) -> Iterator[Progress]:
    """A Progress, drawn as a bar where stderr is a terminal; `--verbose` shows its last count.

    files: inputs whose bytes tell how much there is to do; `-` is stdin. output: where the command
    writes; `-` is stdout, and if that is a terminal too there is no bar among the records. done:
    units that were done before.
    """
    bar = Progress(label, total, unit, files, done)
    with _drawn(bar, output):
        yield bar
    debug(f"{label}: {bar.done:,} {unit} in {time.monotonic() - bar._start:,.1f} s")


@contextmanager
def _drawn(bar: Progress, output: str) -> Iterator[None]:
    global _live
    if _live is not None or not _is_drawn(output):
        yield
        return
    from rich.console import Console
    from rich.live import Live

    console = Console(stderr=True)
    with Live(bar, console=console, refresh_per_second=REFRESH, transient=True):
        _live = console
        try:
            yield
        finally:
            _live = None


def _is_drawn(output: str) -> bool:
    if _level < NORMAL or not sys.stderr or not sys.stderr.isatty():
        return False
    is_mixed = output == "-" and os.isatty(1)
    return not is_mixed and os.environ.get("TERM") not in ("dumb", "unknown")
