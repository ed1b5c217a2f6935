"""How long a training run is, in updates and passes over the data."""

import math
from dataclasses import dataclass
from itertools import islice

from synmt_cli.core.data.corpus import Corpus
from synmt_cli.core.run.config import Training
from synmt_cli.core.training.batches import of_epoch

SAMPLE = 200  # batches; they come in random order


@dataclass(frozen=True, slots=True)
class Length:
    """updates: at most. tokens: target tokens of an update. passes: over the training data."""

    updates: int
    tokens: float
    passes: float

    @classmethod
    def of(cls, corpus: Corpus, settings: Training) -> "Length":
        """The length of a run, to within a few percent where an epoch has many batches."""
        batches = islice(of_epoch(corpus, settings, 0), SAMPLE)
        sizes = [corpus.n_tokens_of(rows) for rows in batches]
        n_batches = len(sizes) * corpus.n_tokens / sum(sizes)  # all of them, if there are few
        per_epoch = max(1, math.ceil(n_batches / settings.accumulate - 1e-6))
        updates = settings.max_steps
        if settings.max_epochs:
            updates = min(updates, settings.max_epochs * per_epoch)
        return cls(updates, corpus.n_tokens / per_epoch, updates / per_epoch)
