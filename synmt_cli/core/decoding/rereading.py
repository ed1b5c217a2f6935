"""A model's next token where known tokens see later ones: each step reads the prefix anew.

Nothing of the target can be remembered from step to step, since every state may change. The
source's keys and values are computed once; the hypotheses of a source are queries to them.
"""

from __future__ import annotations

import torch
from torch import Tensor

from synmt_cli.core.model.modifier import Side
from synmt_cli.core.model.transformer import Transformer


class RereadingScorer:
    """A Scorer of one model."""

    def __init__(self, model: Transformer, sources: Side) -> None:
        memory = model.encode(sources)
        self._model = model
        self._allowed = memory.allowed
        self._sources = model.decoder.keys_values(memory)

    def step(self, prefixes: Side) -> Tensor:
        """prefixes: ids (B, K, T) -> log-probabilities (B, K, V)."""
        states = self._model.decoder.reread(prefixes.flat(), self._sources, self._allowed)
        log_probs = self._model.logits(states).log_softmax(-1, dtype=torch.float32)  # (B * K, V)
        return log_probs.unflatten(0, prefixes.ids.shape[:2])

    def select(self, sources: Tensor, parents: Tensor) -> None:
        """Keeps these sources; nothing is remembered of hypotheses."""
        if len(sources) == len(self._sources[0][0]):
            return
        self._sources = [(k[sources], v[sources]) for k, v in self._sources]
        if self._allowed is not None:
            self._allowed = self._allowed[sources]
