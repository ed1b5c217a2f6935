"""Work spread over processes, with results in the order of the input: every `-j`.

One process is inline: no worker at all. Otherwise the workers are forked, so that they have
what the parent has loaded (a model, a vocabulary) without a copy. Each has its own pipe and
in the parent its own thread, which waits for it; a further thread reads the input. So

- results come as soon as they are ready, also while the input is slow,
- a killed worker is noticed at once: its pipe ends, no lock can be left behind in it,
- workers end when the parent is gone, however it went: their pipes end too.

At most IN_FLIGHT chunks per process are taken from the input and not yet yielded.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any, TypeVar

from synmt_cli import signals
from synmt_cli.errors import SynmtError, WorkerLost

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
IN_FLIGHT = 4  # chunks per process: room for one slow chunk while the others go on
Item = TypeVar("Item")
Result = TypeVar("Result")
Outcome = tuple[list[Any], BaseException | None]  # results, then what ended the chunk early


def ordered_map(
    function: Callable[[Item], Result], items: Iterable[Item], jobs: int = 1, chunk: int = 16
) -> Iterator[Result]:
    """Yields function(item) for each item in order, whatever `jobs` is.

    jobs: processes, 0 for every core. chunk: at most so many items travel at a time; fewer
    when the input is slow. Items and results must be picklable, `function` need not be.
    In flight are at most (IN_FLIGHT * jobs + 2) * chunk items, with one process one item.
    An error of `function` or `items` is raised when all results before it were yielded.
    Raises WorkerLost when a worker is killed. Its children are gone when the generator ends.
    """
    n_workers = n_processes(jobs)
    if n_workers == 1:
        yield from map(function, items)
        return
    exchange = _Exchange(chunk, IN_FLIGHT * n_workers)
    workers: list[tuple[BaseProcess, Connection]] = []
    try:
        _start(function, n_workers, workers)
        # Threads only now: a fork copies no thread, and none may hold a lock meanwhile.
        threading.Thread(target=exchange.read, args=(items,), daemon=True).start()
        for _, connection in workers:
            threading.Thread(target=exchange.serve, args=(connection,), daemon=True).start()
        yield from exchange.results()
    finally:
        exchange.stop()
        for process, _ in workers:
            process.kill()
        for process, _ in workers:
            process.join()


def n_processes(jobs: int) -> int:
    """The number of processes that `-j jobs` means: 0 is every core this process may use."""
    if jobs > 0:
        return jobs
    if hasattr(os, "sched_getaffinity"):  # not on macOS
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def end_children() -> None:
    """Kills every child process that is left, for the last moment of a run."""
    for child in multiprocessing.active_children():
        child.kill()


class _Exchange:
    """What the threads of one `ordered_map` share. Every field belongs to `changed`."""

    def __init__(self, chunk: int, bound: int) -> None:
        self._chunk, self._bound = chunk, bound
        self._changed = threading.Condition()
        self._inbox: deque[Any] = deque()
        self._input_error: BaseException | None = None
        self._input_ended = False
        self._stopped = False
        self._taken = 0  # chunks handed to workers
        self._yielded = 0
        self._outcomes: dict[int, Outcome] = {}

    def read(self, items: Iterable[Any]) -> None:
        """Moves the input to the inbox, which holds one chunk. A thread's whole life."""
        error: BaseException | None = None
        try:
            for item in items:
                with self._changed:
                    self._changed.wait_for(lambda: len(self._inbox) < self._chunk or self._stopped)
                    if self._stopped:
                        return
                    self._inbox.append(item)
                    self._changed.notify_all()
        except BaseException as raised:  # not swallowed: `results` raises it in its turn
            error = raised
        with self._changed:
            self._input_ended, self._input_error = True, error
            self._changed.notify_all()

    def serve(self, connection: Connection) -> None:
        """Brings one worker its chunks and fetches the outcomes. A thread's whole life."""
        while (taken := self._take()) is not None:
            number, chunk = taken
            outcome: Outcome
            try:
                connection.send(chunk)
                outcome = connection.recv()
            except (EOFError, OSError):
                outcome = [], WorkerLost("a worker process was killed (out of memory?)")
            except Exception as error:  # cannot be pickled: `results` raises it in its turn
                outcome = [], error
            with self._changed:
                self._outcomes[number] = outcome
                self._changed.notify_all()
        connection.close()

    def _take(self) -> tuple[int, list[Any]] | None:
        """The next chunk and its number: what has arrived, not what would fill it."""
        with self._changed:
            self._changed.wait_for(
                lambda: (
                    self._stopped
                    or (self._input_ended and not self._inbox)
                    or (self._inbox and self._taken - self._yielded < self._bound)
                )
            )
            if self._stopped or not self._inbox:
                return None
            number, chunk = self._taken, list(self._inbox)
            self._taken += 1
            self._inbox.clear()
            self._changed.notify_all()
            return number, chunk

    def results(self) -> Iterator[Any]:
        """Yields every result in order, then raises what ended the input early."""
        while (outcome := self._next()) is not None:
            results, error = outcome
            yield from results
            if error is not None:
                raise error
        if self._input_error is not None:
            raise self._input_error

    def _next(self) -> Outcome | None:
        with self._changed:
            self._changed.wait_for(
                lambda: (
                    self._yielded in self._outcomes
                    or (self._input_ended and not self._inbox and self._taken == self._yielded)
                )
            )
            outcome = self._outcomes.pop(self._yielded, None)
            self._yielded += 1
            self._changed.notify_all()
            return outcome

    def stop(self) -> None:
        """Lets every thread end."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()


def fork(target: Callable[..., None], *arguments: Any) -> BaseProcess:
    """A running child process. It leaves SIGINT to the parent and dies of SIGTERM."""
    context = multiprocessing.get_context("fork")
    process = context.Process(target=_child, args=(target, arguments), daemon=True)
    # A signal between the fork and the child's first line would end it with a traceback.
    old = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        process.start()
    except OSError as error:
        raise WorkerLost(f"cannot start a worker process: {error.strerror}") from error
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, old)
    return process


def _child(target: Callable[..., None], arguments: tuple[Any, ...]) -> None:
    signals.ignore_in_worker()
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
    target(*arguments)


def _start(
    function: Callable[[Any], Any], n: int, workers: list[tuple[BaseProcess, Connection]]
) -> None:
    """Adds n worker processes with the parent's ends of their pipes. Raises WorkerLost."""
    for _ in range(n):
        ours, theirs = multiprocessing.Pipe()
        not_its = [ours, *(connection for _, connection in workers)]
        workers.append((fork(_worker, function, theirs, not_its), ours))
        theirs.close()  # so that the worker's death ends the pipe


def _worker(
    function: Callable[[Any], Any], connection: Connection, not_its: list[Connection]
) -> None:
    """A worker's whole life: ends when the parent closes the pipe or is gone."""
    for other in not_its:
        other.close()
    while True:
        try:
            chunk = connection.recv()
        except (EOFError, OSError):
            return
        outcome = _outcome(function, chunk)
        try:
            connection.send(outcome)
        except OSError:
            return


def _outcome(function: Callable[[Any], Any], chunk: list[Any]) -> Outcome:
    results: list[Any] = []
    try:
        for item in chunk:
            results.append(function(item))
    except SynmtError as error:
        return results, error
    except Exception as error:  # a bug: the parent raises it, with the place where it happened
        error.add_note("".join(traceback.format_exception(error)))
        return results, error
    return results, None
