"""SIGINT and SIGTERM end a command as an exception, so that every `finally` runs.

A signal that arrives while a record is being written waits until it is written whole, at
most GRACE seconds: a reader that never reads must not keep the process alive.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

GRACE = 5.0  # seconds
_depth = 0
_pending: int | None = None


class Interrupted(BaseException):
    """A signal asked the process to end. Not an Exception: nothing may swallow it."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def _arrive(number: int, frame: FrameType | None) -> None:
    global _pending
    if _depth and _pending is None:
        _pending = number
        signal.setitimer(signal.ITIMER_REAL, GRACE)
        return
    raise Interrupted(number)


def _expire(number: int, frame: FrameType | None) -> None:
    if _pending is not None:
        raise Interrupted(_pending)


def install() -> None:
    """Turns SIGINT and SIGTERM into Interrupted, and SIGPIPE into BrokenPipeError."""
    signal.signal(signal.SIGINT, _arrive)
    signal.signal(signal.SIGTERM, _arrive)
    signal.signal(signal.SIGALRM, _expire)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    if hasattr(signal, "SIGXFSZ"):  # a file size limit becomes an OSError
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)


def ignore_in_worker() -> None:
    """For worker processes: the parent alone decides about Ctrl-C and then ends them."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


@contextmanager
def shielded() -> Iterator[None]:
    """Holds signals back while a record is written."""
    global _depth
    _depth += 1
    try:
        yield
    finally:
        _depth -= 1
        release()


class Request:
    """Whether a signal has asked for an orderly end. False until it has."""

    number: int | None = None

    def __bool__(self) -> bool:
        return self.number is not None


@contextmanager
def requested() -> Iterator[Request]:
    """Lets the first SIGINT or SIGTERM only ask for an end; a second one interrupts."""
    request = Request()

    def ask(number: int, frame: FrameType | None) -> None:
        if request:
            raise Interrupted(number)
        request.number = number

    previous = [signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)]
    try:
        yield request
    finally:
        signal.signal(signal.SIGINT, previous[0])
        signal.signal(signal.SIGTERM, previous[1])


def release() -> None:
    """Raises the signal that was held back, if there is one."""
    global _pending
    if _depth == 0 and _pending is not None:
        number, _pending = _pending, None
        signal.setitimer(signal.ITIMER_REAL, 0)
        raise Interrupted(number)
