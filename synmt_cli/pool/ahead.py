"""Input that a thread reads while the items before it are worked on."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

Item = TypeVar("Item")


def ahead(
    items: Iterable[Item], n: int, waited: Callable[[float], object] = float
) -> Iterator[Item]:
    """Yields the items; a thread reads up to `n` more before they are asked for.

    It helps with items that other programs make, such as the lines of a pipe: a full pipe would
    stop the program that fills it. An item is yielded as soon as it is there. An error of `items`
    is raised after all items before it were yielded. The thread may wait for input for ever, so
    nothing waits for it when the generator is left early.

    waited: called before each item with the seconds that were spent waiting for it.

    >>> list(ahead("abc", 2))
    ['a', 'b', 'c']
    """
    reader = _Reader(n)
    threading.Thread(target=reader.read, args=(items,), daemon=True).start()
    try:
        while not isinstance(item := reader.next(waited), _End):
            yield item
        if item.error is not None:
            raise item.error
    finally:
        reader.stop()


class _End:
    """The end of the input, and the error that ended it early."""

    def __init__(self, error: BaseException | None) -> None:
        self.error = error


class _Reader:
    """The queue between the thread that reads and the caller that asks."""

    def __init__(self, n: int) -> None:
        self.waiting: queue.Queue[Any] = queue.Queue(n)
        self._is_stopped = False

    def read(self, items: Iterable[Any]) -> None:
        """Moves the items to the queue. The whole life of the thread."""
        error: BaseException | None = None
        try:
            for item in items:
                self.waiting.put(item)
                if self._is_stopped:
                    return
        except BaseException as raised:  # not swallowed: `ahead` raises it in turn
            error = raised
        self.waiting.put(_End(error))

    def next(self, waited: Callable[[float], object]) -> Any:
        """The next item, or the end."""
        begin = time.monotonic()
        item = self.waiting.get()
        waited(time.monotonic() - begin)
        return item

    def stop(self) -> None:
        """Lets the thread end: it may wait for room in the queue."""
        self._is_stopped = True
        while not self.waiting.empty():
            self.waiting.get_nowait()
