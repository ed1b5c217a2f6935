"""Work done in a thread before it is asked for."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")


def prefetch(items: Iterator[Item], n: int = 2) -> Iterator[Item]:
    """Yields the items; up to `n` more are made while the last one is used.

    An error in making an item is raised where the item would have been yielded.

    >>> list(prefetch(iter("abc")))
    ['a', 'b', 'c']
    """
    end = object()
    pending: deque[Future[object]] = deque()
    with ThreadPoolExecutor(1, "prefetch") as thread:  # one, so that items are made in order
        for _ in range(n):
            pending.append(thread.submit(next, items, end))
        while (item := pending.popleft().result()) is not end:
            pending.append(thread.submit(next, items, end))
            yield item  # type: ignore[misc]
