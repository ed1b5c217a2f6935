"""Chunks of items to workers, and their outcomes back, in order.

One thread reads the input. Each slot, the place of one worker, has a thread that sends it
chunks and fetches their outcomes. So results are yielded as soon as they are ready, even while
the input is slow, and a worker that is gone is noticed at once.

A chunk whose worker is lost goes to another worker, since none of its results were yielded yet. A
chunk that has lost several workers is taken for the cause and ends the run.
"""

import heapq
import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from synmt_cli.errors import SynmtError, WorkerLost

TRIES = 3  # workers that a chunk may lose
Outcome = tuple[
    list[Any], BaseException | None
]  # results, and the error that ended the chunk early


class Lost(Exception):
    """A worker is gone, and its chunk with it. The text says how."""


class NotStarted(Exception):
    """The system refuses a worker for a slot. The text says why."""


class Slot(Protocol):
    """The place of one worker."""

    def ready(self) -> bool:
        """Waits for a worker. False if there will be none. Raises SynmtError."""

    def run(self, chunk: list[Any]) -> Outcome:
        """The outcome of a chunk. Raises Lost, NotStarted."""

    def close(self) -> None:
        """Ends the worker."""


@dataclass(frozen=True, slots=True)
class Care:
    """What to do about lost workers.

    tries: workers that a chunk may lose; 1 for work that must not be done twice.
    where: gives the lines of a chunk, `FILE:LINE-LINE`. warn: takes a line about a loss.
    """

    tries: int = TRIES
    where: Callable[[Sequence[Any]], str] | None = None
    warn: Callable[[str], None] | None = None


@dataclass(order=True, slots=True)
class _Task:
    number: int
    chunk: list[Any] = field(compare=False)
    losses: int = field(default=0, compare=False)


class Dispatcher:
    """The state that the threads share; `_changed` guards every field.

    chunk: the most items in a chunk. bound: the most chunks taken and not yet yielded.
    """

    def __init__(self, chunk: int, bound: int, care: Care) -> None:
        self._chunk = chunk
        self._bound = bound
        self._care = care
        self._changed = threading.Condition()
        self._inbox: deque[Any] = deque()  # one chunk at most
        self._returned: list[_Task] = []  # a heap: the oldest goes first
        self._input_error: BaseException | None = None
        self._input_ended = False
        self._failure: BaseException | None = None
        self._last_loss = "a worker was lost"
        self._refusal = ""  # why a worker could not be started
        self._is_told = False
        self._taken = 0  # chunks
        self._running = 0  # chunks
        self._yielded = 0  # chunks
        self._serving = 0  # slots that may still work
        self._resting: list[Slot] = []  # slots without a thread yet
        self._outcomes: dict[int, Outcome] = {}
        self.stopped = False

    def start(
        self, items: Iterable[Any], slots: Sequence[Slot], at_once: int
    ) -> list[threading.Thread]:
        """Starts the reader and the threads of the first slots. Returns these threads.

        Each further slot starts when the one before it has work. The reader may wait for input for
        ever, so it must not be joined.
        """
        self._serving = len(slots)
        self._resting = list(reversed(slots[at_once:]))
        threading.Thread(target=self._read, args=(items,), daemon=True).start()
        return [self._started(slot) for slot in slots[:at_once]]

    def _started(self, slot: Slot) -> threading.Thread:
        thread = threading.Thread(target=self._serve, args=(slot,), daemon=True)
        thread.start()
        return thread

    def _start_another(self) -> None:
        """Starts the thread of one more slot, if a slot is left and there may be work."""
        with self._changed:
            if self._resting and not (self.stopped or self._is_done()):
                try:
                    self._started(self._resting[-1])
                    self._resting.pop()
                except RuntimeError:  # the system gives no more threads: fewer will do
                    self._start_no_more()

    def _start_no_more(self) -> None:
        self._serving -= len(self._resting)
        self._resting.clear()

    def results(self) -> Iterator[Any]:
        """Yields every result in order, then raises the error that ended the input early."""
        while (outcome := self._next()) is not None:
            results, error = outcome
            yield from results
            if error is not None:
                raise error
        if self._input_error is not None:
            raise self._input_error

    def stop(self) -> None:
        """Lets every thread end."""
        with self._changed:
            self.stopped = True
            self._changed.notify_all()

    def fail(self, error: BaseException) -> None:
        """Ends the results with this error, after those that are ready were yielded."""
        with self._changed:
            self._failure = self._failure or error
            self._changed.notify_all()

    def _read(self, items: Iterable[Any]) -> None:
        """Moves the input to the inbox. The whole life of a thread."""
        error: BaseException | None = None
        try:
            for item in items:
                with self._changed:
                    self._changed.wait_for(lambda: len(self._inbox) < self._chunk or self.stopped)
                    if self.stopped:
                        return
                    self._inbox.append(item)
                    self._changed.notify_all()
        except BaseException as raised:  # not swallowed: `results` raises it in turn
            error = raised
        with self._changed:
            self._input_ended, self._input_error = True, error
            self._changed.notify_all()

    def _serve(self, slot: Slot) -> None:
        """Sends one slot its chunks and fetches the outcomes. The whole life of a thread."""
        has_worked = False
        try:
            while slot.ready() and (task := self._take()) is not None:
                if not has_worked:
                    has_worked = True
                    self._start_another()
                try:
                    outcome = slot.run(task.chunk)
                except Lost as loss:
                    self._give_back(task, str(loss))
                except NotStarted as refusal:
                    self._leave_to_others(task, str(refusal))
                    break
                else:
                    self._put(task.number, outcome)
        except Exception as error:  # not swallowed: `results` raises it
            self.fail(error)
        finally:
            self._leave()
            slot.close()

    def _take(self) -> _Task | None:
        """A chunk whose worker was lost, else the items that have arrived; None at the end.

        It does not wait until a chunk is full.
        """
        with self._changed:
            self._changed.wait_for(
                lambda: (
                    self.stopped
                    or self._returned
                    or self._is_done()
                    or (self._inbox and self._taken - self._yielded < self._bound)
                )
            )
            if self.stopped or self._is_done():
                return None
            self._running += 1
            if self._returned:
                return heapq.heappop(self._returned)
            task = _Task(self._taken, list(self._inbox))
            self._taken += 1
            self._inbox.clear()
            self._changed.notify_all()
            return task

    def _is_done(self) -> bool:
        """Whether no work is left, and none is running that might be given back."""
        return self._input_ended and not self._inbox and not self._returned and self._running == 0

    def _put(self, number: int, outcome: Outcome) -> None:
        with self._changed:
            self._running -= 1
            self._outcomes[number] = outcome
            news = "" if self._is_told else self._refusal
            self._is_told = bool(self._refusal)
            self._changed.notify_all()
        if news and self._care.warn is not None:
            self._care.warn(f"{news}; fewer do the work")

    def _give_back(self, task: _Task, loss: str) -> None:
        task.losses += 1
        self._last_loss = loss
        if task.losses >= self._care.tries:
            n = task.losses
            if n > 1:
                loss = f"{n} workers were lost over these lines; the last: {loss}"
            return self._put(task.number, ([], WorkerLost(self._place(task.chunk) + loss)))
        self._put_back(task)
        if self._care.warn is not None and not self.stopped:
            self._care.warn(f"{loss}; its work is done again")
        return None

    def _leave_to_others(self, task: _Task, refusal: str) -> None:
        """Leaves a chunk that no worker has seen, and all that follow, to the workers that live."""
        with self._changed:
            self._last_loss = self._refusal = refusal
            self._start_no_more()
        self._put_back(task)

    def _put_back(self, task: _Task) -> None:
        with self._changed:
            self._running -= 1
            heapq.heappush(self._returned, task)
            self._changed.notify_all()

    def _place(self, chunk: list[Any]) -> str:
        return "" if self._care.where is None else f"{self._care.where(chunk)}: "

    def _leave(self) -> None:
        """Counts one slot less. Fails if it was the last and work is left or still comes."""
        with self._changed:
            self._serving -= 1
            if self._serving == 0:
                self._changed.wait_for(
                    lambda: (
                        self.stopped
                        or self._failure is not None
                        or self._returned
                        or self._inbox
                        or self._is_done()
                    )
                )
                if left := self._returned[0].chunk if self._returned else list(self._inbox):
                    message = f"{self._place(left)}{self._last_loss}, and none is left"
                    self._failure = self._failure or WorkerLost(message)
            self._changed.notify_all()

    def _next(self) -> Outcome | None:
        """The outcome of the next chunk, None at the end. Raises the error given to `fail`."""
        with self._changed:
            self._changed.wait_for(
                lambda: (
                    self._yielded in self._outcomes
                    or self._failure is not None
                    or (self._is_done() and self._taken == self._yielded)
                )
            )
            outcome = self._outcomes.pop(self._yielded, None)
            if outcome is None and self._failure is not None:
                raise self._failure
            self._yielded += 1
            self._changed.notify_all()
            return outcome


def outcome_of(function: Callable[[Any], Any], chunk: list[Any]) -> Outcome:
    """The outcome of a chunk. Errors travel as values, a bug with its traceback as a note."""
    results: list[Any] = []
    try:
        for item in chunk:
            results.append(function(item))
    except SynmtError as error:
        return results, error
    except Exception as error:
        error.add_note("".join(traceback.format_exception(error)))
        return results, error
    return results, None
