"""Work done in a thread before it is asked for."""

from collections import deque
from collections.abc import Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")


AHEAD = 2  # items


def prefetch(items: Iterator[Item]) -> Generator[Item]:
    """Yields the items; up to AHEAD more are made while the last one is used.

    An error in making an item is raised where the item would have been yielded. Close it when
    it is left early: then it waits for the item being made.

    >>> list(prefetch(iter("abc")))
    ['a', 'b', 'c']
    """
    end = object()
    pending: deque[Future[object]] = deque()
    with ThreadPoolExecutor(1, "prefetch") as thread:  # one, so that items are made in order
        try:
            for _ in range(AHEAD):
                pending.append(thread.submit(next, items, end))
            while (item := pending.popleft().result()) is not end:
                pending.append(thread.submit(next, items, end))
                yield item  # type: ignore[misc]
        finally:
            thread.shutdown(cancel_futures=True)
