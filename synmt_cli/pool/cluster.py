"""Workers on the machines of a Ray cluster: an actor for each, replaced where it is lost.

What goes to an actor is a recipe and chunks, what comes back are results; nothing is written
on the way but by Ray itself, in its own temporary folder. Before an actor works it says which
synmt and Python it has, and shows that the files of the recipe are the same there as here: that
keeps a forgotten machine from parsing with another model.

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
from synmt_cli.errors import ConfigError, SynmtError, WorkerLost, printable
from synmt_cli.pool import Recipe
from synmt_cli.pool.connection import visit
from synmt_cli.pool.dispatch import Exchange, Lost, Outcome
from synmt_cli.pool.node import Facts, Worker, facts_of, unloadable
from synmt_cli.pool.processes import IN_FLIGHT

REPLACEMENTS = 5  # actors of one slot that may die one after the other as they start
TICK = 0.5  # seconds between looks at what is waited for
GONE = 10.0  # seconds without an answer of the head of the cluster, which may start again
SLOW = 10.0  # seconds without an actor after which somebody should know
BATCH = 4  # chunks of one machine in one: they travel farther


@dataclass(slots=True)
class Cluster:
    """An Executor: the CPUs of a cluster. ray: the module, connected.

    chunk: as in `Local`. warn: takes a line about what is waited for.
    """

    ray: Any
    chunk: int = 0
    warn: Callable[[str], None] | None = None
    _ends: list[Callable[[], None]] = field(default_factory=list)

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *error: object) -> None:
        """Ends what is under way: an error may still hold the generator of the results."""
        for end in list(self._ends):
            end()

    @property
    def is_local(self) -> bool:
        """No: each worker loads what it needs."""
        return False

    def n_workers(self, jobs: int) -> int:
        """The number of actors that `-j jobs` means: 0 is every CPU of the cluster."""
        return jobs or max(1, self.n_cpus())

    def n_cpus(self) -> int:
        """The CPUs of all nodes that are there."""
        return int(self.ray.cluster_resources().get("CPU", 0))

    def map(self, recipe: Recipe, items: Iterable[Any], jobs: int, chunk: int) -> Iterator[Any]:
        """As `pool.mapped`. In flight are at most (IN_FLIGHT * actors + 2) chunks."""
        recipe.make()  # so that what is wrong is said as without Ray, before anything is read
        facts = facts_of(recipe.files)
        n = self.n_workers(jobs)
        exchange = Exchange(self.chunk or BATCH * chunk, IN_FLIGHT * n, recipe.care)
        slots = [_Slot(self, recipe, facts, exchange) for _ in range(n)]
        return self._results(items, exchange, slots)

    def _results(
        self, items: Iterable[Any], exchange: Exchange, slots: list[_Slot]
    ) -> Iterator[Any]:
        threads: list[threading.Thread] = []

        def end() -> None:
            if end in self._ends:
                self._ends.remove(end)
                exchange.stop()
                for slot in slots:
                    slot.close()
                for thread in threads:
                    thread.join(2 * TICK)

        self._ends.append(end)
        try:
            threads += exchange.start(items, slots)
            threading.Thread(target=self._watch, args=(exchange,), daemon=True).start()
            yield from exchange.results()
        finally:
            end()

    def _watch(self, exchange: Exchange) -> None:
        """Notices that the head is gone: Ray would end this process, without a word of ours."""
        address = self.ray.get_runtime_context().gcs_address
        seen = time.monotonic()
        while not exchange.stopped:
            time.sleep(TICK)
            try:
                visit(address)
                seen = time.monotonic()
            except OSError:
                if time.monotonic() - seen > GONE:
                    problem = f"the head of the cluster, {printable(address)}, is gone"
                    return exchange.fail(WorkerLost(problem))
        return None


class _Slot:
    """A Slot of the exchange: one CPU of the cluster, and the actor on it."""

    def __init__(self, cluster: Cluster, recipe: Recipe, facts: Facts, exchange: Exchange) -> None:
        self._cluster, self._recipe, self._exchange = cluster, recipe, exchange
        self._needs = __version__, platform.python_version(), facts
        self._actor: Any = None
        self._node = "a node"
        self._is_ready = False

    def ready(self) -> bool:
        """Waits until an actor stands here that has made the function. Raises SynmtError."""
        n_lost = 0
        while not self._is_ready and not self._exchange.stopped:
            try:
                self._is_ready = self._start()
            except Lost as loss:
                n_lost += 1
                if n_lost == REPLACEMENTS:
                    raise WorkerLost(f"{loss}, {n_lost} times as it started") from None
                time.sleep(TICK)
        return not self._exchange.stopped

    def run(self, chunk: list[Any]) -> Outcome:
        """What the actor makes of a chunk. Raises Lost."""
        outcome: Outcome = self._get(self._actor.run.remote(chunk))
        return outcome

    def close(self) -> None:
        """Ends the actor."""
        actor, self._actor, self._is_ready = self._actor, None, False
        if actor is not None:
            with contextlib.suppress(Exception):  # it may be gone, or the connection
                self._cluster.ray.kill(actor, no_restart=True)

    def _start(self) -> bool:
        """Whether an actor is ready; False when the work ended meanwhile. Raises SynmtError."""
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
        """Whether it came; False when the work ended meanwhile. Raises WorkerLost."""
        began = time.monotonic()
        while not self._exchange.stopped:
            if self._cluster.ray.wait([ref], timeout=TICK)[0]:
                return True
            if not self._cluster.n_cpus():
                raise WorkerLost("no node of the cluster with a CPU is left")
            if time.monotonic() - began > SLOW and (warn := self._cluster.warn):
                self._cluster.warn = None  # once
                warn("waiting for a free CPU of the cluster")
        return False

    def _get(self, ref: Any) -> Any:
        """What an actor answers. Raises Lost, and ConfigError where it cannot even import synmt."""
        errors = self._cluster.ray.exceptions
        try:
            return self._cluster.ray.get(ref)
        except errors.RayTaskError:  # a bug: what is wrong with work or worker is a value
            self.close()
            raise
        except errors.RayError as error:
            self.close()
            if problem := unloadable(str(error)):
                raise ConfigError(problem) from None
            raise Lost(f"{self._node} lost a worker ({type(error).__name__})") from None
