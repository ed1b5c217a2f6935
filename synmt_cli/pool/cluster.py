"""Workers on the machines of a Ray cluster: an actor for each, replaced where it is lost.

An actor gets a recipe and chunks, and sends back results; only Ray itself writes on the way, in
its own temporary folder. Before an actor works, it checks that synmt, Python and the files of
the recipe are the same there as here, so that a forgotten machine cannot parse with another
model.

The actors end with the driver, however that ends: Ray ties them to its job.
"""

from __future__ import annotations

import contextlib
import os
import platform
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from synmt_cli import __version__
from synmt_cli.errors import ConfigError, SynmtError, WorkerLost
from synmt_cli.pool import Recipe
from synmt_cli.pool.connection import visit
from synmt_cli.pool.dispatch import Dispatcher, Lost, Outcome
from synmt_cli.pool.node import Facts, Worker, facts_of, unloadable
from synmt_cli.pool.processes import IN_FLIGHT

REPLACEMENTS = 5  # actors of one slot that may die in succession as they start
TICK = 0.5  # seconds between checks while waiting
GONE = 10.0  # seconds without an answer from the head of the cluster, which may restart
SLOW = 10.0  # seconds without an actor after which the user is told
BATCH = 4  # times the size of a chunk of `-j`, since a chunk travels farther


@dataclass(slots=True)
class Cluster:
    """An Executor: the CPUs of a cluster. ray: the module, connected.

    chunk: as in `Local`. warn: takes a line that says why nothing happens.
    """

    ray: Any
    chunk: int = 0
    warn: Callable[[str], None] | None = None
    _ends: list[Callable[[], None]] = field(default_factory=list)

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *error: object) -> None:
        """Ends running work: an error may still hold the generator of the results."""
        for end in list(self._ends):
            end()

    @property
    def is_local(self) -> bool:
        """False: each worker loads what it needs."""
        return False

    def n_workers(self, jobs: int) -> int:
        """The number of actors that `-j jobs` means: 0 is every CPU of the cluster."""
        return jobs or max(1, self.n_cpus())

    def n_cpus(self) -> int:
        """The CPUs of all nodes of the cluster."""
        return int(self.ray.cluster_resources().get("CPU", 0))

    def map(self, recipe: Recipe, items: Iterable[Any], jobs: int, chunk: int) -> Iterator[Any]:
        """See `pool.mapped`. At most (IN_FLIGHT * actors + 2) chunks are in flight."""
        recipe.make()  # raises what is wrong as it would without Ray, before anything is read
        facts = facts_of(recipe.files)
        n = self.n_workers(jobs)
        dispatcher = Dispatcher(self.chunk or BATCH * chunk, IN_FLIGHT * n, recipe.care)
        slots = [_Slot(self, recipe, facts, dispatcher) for _ in range(n)]
        return self._results(items, dispatcher, slots)

    def _results(
        self, items: Iterable[Any], dispatcher: Dispatcher, slots: list[_Slot]
    ) -> Iterator[Any]:
        threads: list[threading.Thread] = []

        def end() -> None:
            if end in self._ends:
                self._ends.remove(end)
                dispatcher.stop()
                for slot in slots:
                    slot.close()
                for thread in threads:
                    thread.join(2 * TICK)

        self._ends.append(end)
        try:
            threads += dispatcher.start(items, slots, len(slots))
            threading.Thread(target=self._watch, args=(dispatcher,), daemon=True).start()
            yield from dispatcher.results()
        finally:
            end()

    def _watch(self, dispatcher: Dispatcher) -> None:
        """Notices that the head is gone, before Ray ends this process without our message."""
        address = self.ray.get_runtime_context().gcs_address
        seen = time.monotonic()
        while not dispatcher.stopped:
            time.sleep(TICK)
            try:
                visit(address)
                seen = time.monotonic()
            except OSError:
                if time.monotonic() - seen > GONE:
                    problem = f"the head of the cluster, {address}, is gone"
                    return dispatcher.fail(WorkerLost(problem))
        return None


class _Slot:
    """A Slot: one CPU of the cluster, and the actor on it."""

    def __init__(
        self, cluster: Cluster, recipe: Recipe, facts: Facts, dispatcher: Dispatcher
    ) -> None:
        self._cluster = cluster
        self._recipe = recipe
        self._dispatcher = dispatcher
        self._needs = __version__, platform.python_version(), facts
        self._actor: Any = None
        self._node = "a node"
        self._is_ready = False

    def ready(self) -> bool:
        """Waits for an actor that has made the function. Raises SynmtError."""
        n_lost = 0
        while not self._is_ready and not self._dispatcher.stopped:
            try:
                self._is_ready = self._start()
            except Lost as loss:
                n_lost += 1
                if n_lost == REPLACEMENTS:
                    raise WorkerLost(f"{loss}, {n_lost} times as it started") from None
                time.sleep(TICK)
        return not self._dispatcher.stopped

    def run(self, chunk: list[Any]) -> Outcome:
        """The outcome of a chunk. Raises Lost."""
        outcome: Outcome = self._get(self._actor.run.remote(chunk))
        return outcome

    def close(self) -> None:
        """Ends the actor."""
        actor, self._actor, self._is_ready = self._actor, None, False
        if actor is not None:
            with contextlib.suppress(Exception):  # it may be gone, or the connection
                self._cluster.ray.kill(actor, no_restart=True)

    def _start(self) -> bool:
        """Starts an actor and waits for it; False if the work has ended. Raises SynmtError."""
        remote = self._cluster.ray.remote(Worker)
        options = {"num_cpus": 1, "max_restarts": 0, "scheduling_strategy": "SPREAD"}
        self._actor = actor = remote.options(**options).remote(os.getcwd())
        checked = actor.check.remote(*self._needs)
        if not self._waited(checked):
            return False
        self._node, problem = self._get(checked)
        if problem:
            raise ConfigError(f"{self._node} {problem}")
        loaded = actor.load.remote(self._recipe.make)
        if not self._waited(loaded):
            return False
        error = self._get(loaded)
        if isinstance(error, SynmtError):
            raise ConfigError(f"{self._node}: {error}") from error
        if error is not None:
            raise error
        return True

    def _waited(self, ref: Any) -> bool:
        """Waits for an answer; False if the work has ended. Raises WorkerLost."""
        began = time.monotonic()
        while not self._dispatcher.stopped:
            if self._cluster.ray.wait([ref], timeout=TICK)[0]:
                return True
            if not self._cluster.n_cpus():
                raise WorkerLost("no node of the cluster with a CPU is left")
            if time.monotonic() - began > SLOW and (warn := self._cluster.warn):
                self._cluster.warn = None  # once
                warn("waiting for a free CPU of the cluster")
        return False

    def _get(self, ref: Any) -> Any:
        """The answer of an actor. Raises Lost, and ConfigError if it cannot import synmt."""
        errors = self._cluster.ray.exceptions
        try:
            return self._cluster.ray.get(ref)
        except errors.RayTaskError:  # a bug: other errors of the work arrive as values
            self.close()
            raise
        except errors.RayError as error:
            self.close()
            if problem := unloadable(str(error)):
                raise ConfigError(problem) from None
            raise Lost(f"{self._node} lost a worker ({type(error).__name__})") from None
