"""Workers on this machine: forked, each with its own pipe.

They are forked, so that they share what the parent has loaded (a model, a vocabulary) without
a copy. A killed worker is noticed at once: its pipe ends, and a pipe has no lock to leave held.
When the parent is gone, for whatever reason, their pipes end and so do they.

A worker is forked when a chunk waits and every other worker is busy, so there are never more of
them than chunks. A lost worker is not replaced: the other workers do its work; where memory was
the cause, fewer may fit. Where the system gives no more processes or files, those that live do
the work, and a line says so.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator
from multiprocessing import reduction
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any, ClassVar, NoReturn, TypeVar

from synmt_cli import signals
from synmt_cli.errors import WorkerLost, reason
from synmt_cli.pool.dispatch import Care, Dispatcher, Lost, NotStarted, Outcome, outcome_of

_KILLED = "a worker process was killed (out of memory?)"
_FORKER_KILLED = "the process that starts workers was killed (out of memory?)"
IN_FLIGHT = 4  # chunks per process: room for one slow chunk while the others go on
Item = TypeVar("Item")
Result = TypeVar("Result")
_CARE = Care()


def ordered_map(
    function: Callable[[Item], Result],
    items: Iterable[Item],
    jobs: int = 1,
    chunk: int = 16,
    care: Care = _CARE,
) -> Iterator[Result]:
    """Yields function(item) for each item in order, whatever `jobs` is.

    jobs: processes, 0 for every core; 1 is this process without workers. chunk: the most items
    sent to a worker at once; fewer are sent when the input is slow. Items and results must be
    picklable, `function` need not be; it may be called again for an item whose worker was lost.
    At most (IN_FLIGHT * jobs + 2) * chunk items are in flight, with one process one item.
    An error of `function` or `items` is raised after all results before it were yielded.
    Raises WorkerLost when a chunk has lost `care.tries` workers, or no worker is left.
    All children have ended when the generator ends.
    """
    n_workers = n_processes(jobs)
    if n_workers == 1:
        yield from map(function, items)
        return
    dispatcher = Dispatcher(chunk, IN_FLIGHT * n_workers, care)
    forker = _Forker(function, dispatcher)
    try:
        dispatcher.start(items, [_Worker(forker) for _ in range(n_workers)], 1)
        yield from dispatcher.results()
    finally:
        forker.end()


def n_processes(jobs: int) -> int:
    """The number of processes that `-j jobs` means: 0 is every core this process may use."""
    if jobs > 0:
        return jobs
    if hasattr(os, "sched_getaffinity"):  # not on macOS
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def end_children() -> None:
    """Kills every child process that is left. For the end of a run."""
    for forker in list(_Forker.running):
        forker.end()
    for child in multiprocessing.active_children():
        child.kill()


def fork(target: Callable[..., None], *arguments: Any) -> BaseProcess:
    """Starts a child process, which only SIGTERM and SIGKILL end. Raises WorkerLost."""
    context = multiprocessing.get_context("fork")
    process = context.Process(target=_child, args=(target, arguments), daemon=True)
    # A signal between the fork and the child's first line would end it with a traceback.
    old = signal.pthread_sigmask(signal.SIG_BLOCK, signals.ENDS)
    try:
        process.start()
    except OSError as error:
        raise WorkerLost(_refusal(error)) from error
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, old)
    return process


def _child(target: Callable[..., None], arguments: tuple[Any, ...]) -> None:
    signals.ignore_in_worker()
    signal.pthread_sigmask(signal.SIG_UNBLOCK, signals.ENDS)
    target(*arguments)


def _refusal(error: OSError) -> str:
    return f"cannot start a worker process: {reason(error)}"


class _Forker:
    """A child without threads that forks the workers, one for each `start`.

    A fork of this process, which has threads by then, might copy a lock that one of them holds.
    """

    running: ClassVar[list[_Forker]] = []

    def __init__(self, function: Callable[[Any], Any], dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher
        self._connection, theirs = multiprocessing.Pipe()
        self._lock = threading.Lock()
        self._pids: list[int] = []
        self._process = fork(_fork_workers, function, theirs, self._connection)
        theirs.close()  # so that the forker's death ends the pipe
        self.running.append(self)

    def start(self) -> Connection:
        """Starts a worker and returns its pipe. Raises NotStarted."""
        try:
            ours, theirs = multiprocessing.Pipe()
        except OSError as error:
            raise NotStarted(_refusal(error)) from error
        with self._lock, theirs:
            try:
                reduction.send_handle(self._connection, theirs.fileno(), self._process.pid)
                answer = self._connection.recv()
            except (EOFError, OSError):  # no worker has seen the chunk
                raise NotStarted(_FORKER_KILLED) from None
            if isinstance(answer, str):
                raise NotStarted(answer)
            self._pids.append(answer)
        return ours

    def end(self) -> None:
        """Stops the work, kills the workers and waits until they and the forker are gone."""
        self._dispatcher.stop()  # else their loss would be reported, and the work done by others
        if self in self.running:
            self.running.remove(self)
            with self._lock:
                # The forker takes no process id back before its own end, so each is a worker's.
                for pid in self._pids if self._process.is_alive() else ():
                    os.kill(pid, signal.SIGKILL)
                self._connection.close()
            self._process.join()


def _fork_workers(
    function: Callable[[Any], Any], connection: Connection, not_mine: Connection
) -> None:
    """The whole life of a forker, which ends when the parent closes the pipe or is gone."""
    not_mine.close()
    with contextlib.suppress(EOFError, OSError):
        while True:
            theirs = Connection(reduction.recv_handle(connection))
            try:
                pid = os.fork()
            except OSError as error:
                connection.send(_refusal(error))
                continue
            if not pid:
                connection.close()
                _live(function, theirs)
            theirs.close()
            connection.send(pid)
    with contextlib.suppress(ChildProcessError):
        while True:
            os.wait()


def _live(function: Callable[[Any], Any], connection: Connection) -> NoReturn:
    """Works to the end of this process, which must not write what its parent had buffered."""
    try:
        _work(function, connection)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(0)


class _Worker:
    """A Slot: a process that starts with its first chunk, and the parent's end of its pipe."""

    def __init__(self, forker: _Forker) -> None:
        self._forker = forker
        self._connection: Connection | None = None

    def ready(self) -> bool:
        """Whether the process lives: before any request, only the end of the pipe can arrive."""
        try:
            return self._connection is None or not self._connection.poll()
        except OSError:
            return False

    def run(self, chunk: list[Any]) -> Outcome:
        """The outcome of a chunk. Raises Lost, NotStarted."""
        self._connection = self._connection or self._forker.start()
        try:
            self._connection.send(chunk)
            outcome: Outcome = self._connection.recv()
        except (EOFError, OSError):
            raise Lost(_KILLED) from None
        except Exception as error:  # cannot be pickled
            return [], error
        return outcome

    def close(self) -> None:
        """Ends the pipe, which ends the process."""
        if self._connection is not None:
            self._connection.close()


def _work(function: Callable[[Any], Any], connection: Connection) -> None:
    """The whole life of a worker, which ends when the parent closes the pipe or is gone."""
    while True:
        try:
            chunk = connection.recv()
        except (EOFError, OSError):
            return
        try:
            _send(connection, outcome_of(function, chunk))
        except OSError:
            return


def _send(connection: Connection, outcome: Outcome) -> None:
    try:
        connection.send(outcome)
    except OSError:
        raise
    except (
        Exception
    ) as error:  # a result that cannot be pickled is a bug, not the end of the process
        text = "".join(traceback.format_exception(error))
        connection.send(([], TypeError(f"a result cannot travel: {text}")))
