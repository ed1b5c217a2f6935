"""The batches of each update: those of an epoch, as many at a time as one gradient takes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

import torch

from synmt_cli.core.data.batch import Batch
from synmt_cli.core.data.corpus import Corpus
from synmt_cli.core.data.ragged import Array
from synmt_cli.core.distributed.sharding import Share
from synmt_cli.core.run.config import Training


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
            batches = self.corpus.epoch(
                settings.batch_tokens, settings.seed, epoch, settings.batch_sentences
            )
            batches = islice(batches, batch, None)
            while rows := list(islice(batches, settings.accumulate)):
                batch += len(rows)
                yield self.prepared(rows, epoch, batch)
            epoch, batch = epoch + 1, 0

    def prepared(self, rows: Sequence[Array], epoch: int = 0, batch: int = 0) -> Update:
        """The update that these batches make."""
        n_tokens = sum(map(self.corpus.n_tokens_of, rows))
        parts = self.share.parts(rows)
        return Update(
            epoch, batch, n_tokens, [(self.corpus.batch(p.rows), p.counts) for p in parts]
        )
