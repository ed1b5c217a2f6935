"""SIGINT, SIGTERM and SIGHUP end a command as an exception, so that every `finally` runs.

SIGHUP comes when a terminal is closed; under nohup it stays ignored.

A signal that arrives while a record is being written waits until the record is whole. All `finally`
blocks together have GRACE seconds, so that a reader that never reads cannot keep the process alive.
Further signals change nothing.

Python ignores exceptions in some callbacks, such as those of weak references, and an import has
many of these. A signal that arrives in one raises a second time, soon after.
"""

import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, TypeVar

from synmt_cli.errors import Stopped

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

T = TypeVar("T")
Handler = Callable[[int, FrameType | None], None] | signal.Handlers
ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # signals that ask for an end
GRACE = 5.0  # seconds
SOON = 0.001  # seconds
_depth = 0
_number: int | None = None  # the signal that asked for an end
_raised = False
_ignored = False  # whether Python ignored the exception, in a callback
_closed = False


class Interrupted(BaseException):
    """A signal asked the process to end. Not an Exception: nothing may swallow it."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def _arrive(number: int, frame: FrameType | None) -> None:
    global _number
    if _number is None and not _closed:
        _number = number
        signal.setitimer(signal.ITIMER_REAL, GRACE, GRACE)
        release()


def _expire(number: int, frame: FrameType | None) -> None:
    global _ignored
    if _number is None or _closed:
        return
    if not _ignored:
        raise Interrupted(_number)
    _ignored = False
    release()


def _ignore(what: "UnraisableHookArgs") -> None:
    """Replaces sys.unraisablehook: has an Interrupted raised again, and only others printed."""
    global _number, _raised, _ignored
    if isinstance(what.exc_value, Interrupted):
        _number, _raised, _ignored = what.exc_value.number, False, True
        signal.setitimer(signal.ITIMER_REAL, SOON, GRACE)
    else:
        sys.__unraisablehook__(what)


def _heard() -> list[signal.Signals]:
    """ENDS, without SIGHUP where it is ignored."""
    is_ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return [number for number in ENDS if not (is_ignored and number == signal.SIGHUP)]


def install() -> None:
    """Turns the signals that ask for an end into Interrupted, and SIGPIPE into BrokenPipeError."""
    for number in _heard():
        signal.signal(number, _arrive)
    signal.signal(signal.SIGALRM, _expire)
    sys.unraisablehook = _ignore
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    if hasattr(signal, "SIGXFSZ"):  # a file size limit becomes an OSError
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)


def ignore_in_worker() -> None:
    """Makes a worker ignore SIGINT and SIGHUP: its parent decides what they mean, and ends it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


@contextmanager
def shielded() -> Iterator[None]:
    """Delays signals while a record is written."""
    global _depth
    _depth += 1
    try:
        yield
    finally:
        _depth -= 1
        release()


class Request:
    """True once a signal has asked for an orderly end."""

    number: int | None = None

    def __bool__(self) -> bool:
        return self.number is not None


def until(request: Request | None, items: Iterable[T], stopped: str) -> Iterator[T]:
    """Yields the items. Raises Stopped with this message once a signal has asked for an end."""
    for item in items:
        if request:
            raise Stopped(stopped)
        yield item


@contextmanager
def requested(*, is_one_of_several: bool = False) -> Iterator[Request]:
    """Yields a Request, which the first signal of ENDS sets; a second one interrupts.

    is_one_of_several: whether a launcher started several processes, passes signals on to them, and
    kills those that do not end. A signal to all of them, such as a cluster sends, then comes twice
    and must not interrupt.
    """
    request = Request()

    def ask(number: int, frame: FrameType | None) -> None:
        if not request:
            request.number = number
        elif not is_one_of_several:
            _arrive(number, frame)

    with _handled_by(ask):
        yield request


@contextmanager
def ending_at_once(request: Request) -> Iterator[None]:
    """Lets a signal end the process, in a wait that no handler can interrupt.

    There must be nothing to save. request: if it was set before, the process ends, too.
    """
    with _handled_by(signal.SIG_DFL):
        if request.number is not None:
            signal.raise_signal(request.number)
        yield


@contextmanager
def _handled_by(handler: Handler) -> Iterator[None]:
    """Gives the signals that ask for an end another handler, inside the block."""
    previous = {number: signal.signal(number, handler) for number in _heard()}
    try:
        yield
    finally:
        for number, before in previous.items():
            signal.signal(number, before)


def release() -> None:
    """Raises Interrupted for a signal that was delayed, once."""
    global _raised
    if _depth == 0 and _number is not None and not _raised:
        _raised = True
        raise Interrupted(_number)


def close() -> None:
    """Makes signals raise nothing any more, at the end of a process."""
    global _closed
    _closed = True
