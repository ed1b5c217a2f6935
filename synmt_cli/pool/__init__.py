"""Work spread over workers, with results in the order of the input: every `-j`, and `map`.

`ordered_map` spreads over the processes of this machine. A filter that may also run elsewhere
gives `mapped` a Recipe: how a worker makes its function, and the files it needs for that. The
work is done on this machine unless `executing` names another Executor.

processes.py has the workers of this machine, cluster.py those of a Ray cluster, dispatch.py
what both share. `ahead` lets a thread read the input of one process.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Protocol

from synmt_cli.pool.ahead import ahead
from synmt_cli.pool.dispatch import Care
from synmt_cli.pool.processes import IN_FLIGHT, end_children, fork, n_processes, ordered_map

__all__ = [
    "IN_FLIGHT",
    "Care",
    "Executor",
    "Local",
    "Recipe",
    "ahead",
    "end_children",
    "executing",
    "fork",
    "here",
    "mapped",
    "n_processes",
    "n_workers",
    "ordered_map",
    "span",
]


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a worker makes its function.

    make: returns the function; picklable, as a functools.partial of a module's function is. It
    is called once here, before the first result is asked for, and raises what is wrong; then
    once on each worker of another machine. The function must do the same when called again.
    files: the files that `make` reads, the same on each machine. care: what to do about lost
    workers.
    """

    make: Callable[[], Callable[[Any], Any]]
    files: tuple[str, ...] = ()
    care: Care = Care()  # noqa: RUF009  (it is frozen)


class Executor(Protocol):
    """A place where work is done."""

    @property
    def is_local(self) -> bool:
        """Whether workers share what this process has loaded."""

    def n_workers(self, jobs: int) -> int:
        """The number of workers that `-j jobs` means."""

    def map(self, recipe: Recipe, items: Iterable[Any], jobs: int, chunk: int) -> Iterator[Any]:
        """See `mapped`."""


@dataclass(frozen=True, slots=True)
class Local:
    """This machine. chunk: items sent to a worker at once, 0 leaves it to the filter."""

    chunk: int = 0
    is_local = True

    def n_workers(self, jobs: int) -> int:
        """The number of processes; 0 is every core."""
        return n_processes(jobs)

    def map(self, recipe: Recipe, items: Iterable[Any], jobs: int, chunk: int) -> Iterator[Any]:
        """See `ordered_map`. The function is made at once and shared by the forked workers."""
        return ordered_map(recipe.make(), items, jobs, self.chunk or chunk, recipe.care)


_executor: ContextVar[Executor] = ContextVar("executor", default=Local())  # noqa: B039  (frozen)


@contextmanager
def executing(executor: Executor) -> Iterator[None]:
    """Lets `executor` do the work of every `mapped` inside."""
    token = _executor.set(executor)
    try:
        yield
    finally:
        _executor.reset(token)


def mapped(recipe: Recipe, items: Iterable[Any], jobs: int = 1, chunk: int = 16) -> Iterator[Any]:
    """Yields the result of the recipe's function for each item, in order.

    jobs, chunk and errors are those of `ordered_map`. Raises at once what `recipe.make` raises.
    """
    return _executor.get().map(recipe, items, jobs, chunk)


def n_workers(jobs: int) -> int:
    """The number of workers that `-j jobs` means to the Executor."""
    return _executor.get().n_workers(jobs)


def here() -> bool:
    """Whether the work is done on this machine."""
    return _executor.get().is_local


def span(first: tuple[str, int], last: tuple[str, int]) -> str:
    """The lines from one (file, line) to another, for messages.

    >>> span(("a", 3), ("a", 9)), span(("a", 3), ("a", 3)), span(("a", 3), ("b", 1))
    ('a:3-9', 'a:3', 'a:3 to b:1')
    """
    begin, end = (f"{file}:{line}" for file, line in (first, last))
    if first == last:
        return begin
    return f"{begin}-{last[1]}" if first[0] == last[0] else f"{begin} to {end}"
