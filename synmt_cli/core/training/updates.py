"""What each update reads: the batches of an epoch, as many at a time as one gradient takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from synmt_cli.core.data.batch import Batch
from synmt_cli.core.data.corpus import Corpus
from synmt_cli.core.data.ragged import Array
from synmt_cli.core.distributed.ranks import Ranks
from synmt_cli.core.run.config import Training


class Update(NamedTuple):
    """n_tokens: target tokens, of all processes. batches: the part of this process.

    counts: of each batch whether it does; one that does not is only passed through the model,
    since others have pairs of it and this process has none. epoch, batch: where the data stands
    behind it, the epoch's batches counted.
    """

    epoch: int
    batch: int
    n_tokens: int
    batches: list[Batch]
    counts: list[bool]


@dataclass(frozen=True, slots=True)
class Updates:
    """The updates that this process takes part in.

    must_pass: every process has to pass something through the model for each batch.
    """

    corpus: Corpus
    settings: Training
    ranks: Ranks
    must_pass: bool = False

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
        parts = [self.ranks.part(one) for one in rows]
        if self.must_pass:
            taken = [part if len(part) else one[:1] for part, one in zip(parts, rows, strict=True)]
        else:
            taken = parts = [part for part in parts if len(part)]
        own = [self.corpus.batch(part) for part in taken]
        counts = [len(part) > 0 for part in parts]
        return Update(epoch, batch, sum(map(self.corpus.n_tokens_of, rows)), own, counts)
