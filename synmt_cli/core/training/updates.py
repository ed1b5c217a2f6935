"""The batches of each update: those of an epoch, as many at a time as one gradient takes."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import NamedTuple

import numpy as np
import torch

from synmt_cli.core.data.batch import Batch
from synmt_cli.core.data.corpus import Corpus
from synmt_cli.core.data.ragged import Array
from synmt_cli.core.distributed.sharding import Share
from synmt_cli.core.run.config import Training
from synmt_cli.core.training.batches import cut, of_epoch, passes


class Update(NamedTuple):
    """The data of one update. epoch, batch: the position in the data after it.

    n_tokens: target tokens of all processes. batches: this process's part, each with whether it
    contributes to the gradient (`Part.counts`). arrival: when they are on a GPU (transfer.py).
    """

    epoch: int
    batch: int
    n_tokens: int
    batches: list[tuple[Batch, bool]]
    arrival: torch.cuda.Event | None = None


@dataclass(frozen=True, slots=True)
class Updates:
    """The updates of a run, as far as this process takes part in them."""

    corpus: Corpus
    settings: Training
    share: Share

    def since(self, epoch: int, batch: int) -> Iterator[Update]:
        """Yields the updates from that batch of that epoch on, to the end of max_epochs."""
        settings = self.settings
        while not settings.max_epochs or epoch < settings.max_epochs:
            batches = islice(of_epoch(self.corpus, settings, epoch), batch, None)
            for rows in self._groups(batches):
                batch += len(rows)
                yield self.prepared(rows, epoch, batch)
            epoch, batch = epoch + 1, 0

    def over_lengths(self) -> Iterator[Update]:
        """Yields the updates of the first epoch again and again, ordered so as to sample lengths.

        Begins with one of medium length, then those at the quartiles, then at the octiles. So the
        mean time of the first few is near that of all, even for decoders whose time grows with the
        square of the length.
        """
        updates = list(self._groups(of_epoch(self.corpus, self.settings, 0)))
        lengths = [self._mean_length(rows) for rows in updates]
        order = np.argsort(lengths, kind="stable")
        while True:
            for place in halving(len(order)):
                yield self.prepared(updates[order[place]])

    def _groups(self, batches: Iterator[Array]) -> Iterator[list[Array]]:
        while rows := list(islice(batches, self.settings.accumulate)):
            yield rows

    def _mean_length(self, rows: Sequence[Array]) -> float:
        return sum(map(self.corpus.n_tokens_of, rows)) / sum(map(len, rows))

    def prepared(self, rows: Sequence[Array], epoch: int = 0, batch: int = 0) -> Update:
        """The update that these batches make."""
        n_tokens = sum(map(self.corpus.n_tokens_of, rows))
        whole = passes(self.corpus, self.settings, rows)
        dealt = shared_out(whole, self.share.ranks.size, partial(cut, self.corpus, self.settings))
        parts = self.share.parts(dealt)
        return Update(
            epoch, batch, n_tokens, [(self.corpus.batch(p.rows), p.counts) for p in parts]
        )


def halving(n: int) -> Iterator[int]:
    """All numbers below n: the middle, then the middles of both halves, and so on.

    >>> list(halving(7))
    [3, 1, 5, 0, 2, 4, 6]
    """
    ranges = deque([(0, n)])
    while ranges:
        begin, end = ranges.popleft()
        if begin < end:
            middle = (begin + end) // 2
            yield middle
            ranges += [(begin, middle), (middle + 1, end)]


def shared_out(
    batches: Sequence[Array], n: int, cut: Callable[[Array], list[Array]]
) -> list[list[Array]]:
    """For each of n processes, the pairs of each of its passes; every pair is in one pass.

    Whole batches are dealt out as long as there is one for each process. The pairs of those that
    are left are dealt out one by one, and `cut` makes passes of what a process gets of them.

    >>> [[p.tolist() for p in own] for own in shared_out(np.arange(12).reshape(3, 4), 2, list)]
    [[[0, 1, 2, 3], 8, 10], [[4, 5, 6, 7], 9, 11]]
    """
    n_dealt = len(batches) - len(batches) % n
    shares = [list(batches[rank:n_dealt:n]) for rank in range(n)]
    if n_dealt < len(batches):
        left = np.concatenate(batches[n_dealt:])
        for rank, own in enumerate(shares):
            own += cut(left[rank::n])
    return shares
