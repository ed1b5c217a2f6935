"""Which pairs go through the model together: the batches of an epoch, and the passes of a batch.

A batch is bounded by batch_tokens and batch_sentences; micro_tokens bounds a pass further.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from synmt_cli.core.data.batch import fill
from synmt_cli.core.data.corpus import Corpus
from synmt_cli.core.data.ragged import Array
from synmt_cli.core.run.config import Training


def of_epoch(corpus: Corpus, settings: Training, epoch: int) -> Iterator[Array]:
    """Row numbers of each batch of an epoch, every pair once."""
    return corpus.epoch(settings.batch_tokens, settings.seed, epoch, settings.batch_sentences)


def passes(corpus: Corpus, settings: Training, batches: Sequence[Array]) -> Sequence[Array]:
    """The rows of each pass: one pass per batch, unless micro_tokens cuts all pairs anew."""
    return cut(corpus, settings, np.concatenate(batches)) if settings.micro_tokens else batches


def cut(corpus: Corpus, settings: Training, rows: Array) -> list[Array]:
    """Cuts any pairs into passes, those of similar length together, the shortest first."""
    lengths = corpus.longer_sides_in_pieces(rows)
    order = np.argsort(lengths, kind="stable")
    limit = settings.micro_tokens or settings.batch_tokens
    return [rows[places] for places in fill(order, lengths, limit, settings.batch_sentences)]
