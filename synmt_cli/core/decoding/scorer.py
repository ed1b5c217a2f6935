"""Scorers of the next token: the interface that search uses, re-reading, and ensembles."""

import math
from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

from synmt_cli.core.decoding.places import Stay
from synmt_cli.core.model.layers import Memory
from synmt_cli.core.model.modifier import Side
from synmt_cli.core.model.transformer import Transformer


class Scorer(Protocol):
    """The next token's scores for B sources with K hypotheses each; K may change each step.

    A scorer may remember the keys and values of a prefix (cached.py) or read the prefix anew at
    each step.
    """

    def step(self, prefixes: Side) -> Tensor:
        """prefixes: ids (B, K, T), BOS first -> log-probabilities (B, K, V), a new tensor.

        The prefixes are one token longer than at the last call and belong to the hypotheses
        that `select` left. Their features come from search (progress.py).
        """

    def read(self, prefixes: Side) -> None:
        """Does what `step` does where nobody asks for the scores of the next token."""

    def select(self, stay: Stay, parents: Tensor) -> None:
        """Drops sources and reorders hypotheses, between two steps.

        parents: (B', K'), the old hypothesis of each source that stays which each new one
        continues.
        """


class RereadingScorer:
    """Reads the prefix anew at each step, for models whose known tokens see later ones.

    Nothing of the target can be remembered from step to step, since every state may change. The
    source's keys and values are computed once; the hypotheses of a source are queries to them.
    """

    def __init__(self, model: Transformer, memory: Memory) -> None:
        self._model = model
        self._allowed = memory.allowed
        self._sources = model.decoder.keys_values(memory)

    def step(self, prefixes: Side) -> Tensor:
        """prefixes: ids (B, K, T) -> log-probabilities (B, K, V)."""
        states = self._model.decoder.reread(prefixes.flat(), self._sources, self._allowed)
        log_probs = self._model.logits(states).log_softmax(-1, dtype=torch.float32)  # (B * K, V)
        return log_probs.unflatten(0, prefixes.ids.shape[:2])

    def read(self, prefixes: Side) -> None:
        """Nothing: the next step reads the whole prefix."""

    def select(self, stay: Stay, parents: Tensor) -> None:
        """Keeps these sources; nothing is remembered of hypotheses."""
        if stay.is_all:
            return
        sources = stay.sources
        self._sources = [(k[sources], v[sources]) for k, v in self._sources]
        if self._allowed is not None:
            self._allowed = self._allowed[sources]


class EnsembleScorer:
    """Several scorers of one target vocabulary as one: the mean of their probabilities.

    P(w) = 1/M sum_m P_m(w), in the log domain.
    """

    def __init__(self, scorers: Sequence[Scorer]) -> None:
        self.scorers = tuple(scorers)

    def step(self, prefixes: Side) -> Tensor:
        """ids (B, K, T) -> log-probabilities (B, K, V)."""
        log_probs = torch.stack([scorer.step(prefixes) for scorer in self.scorers])  # (M, B, K, V)
        return log_probs.logsumexp(0) - math.log(len(self.scorers))

    def read(self, prefixes: Side) -> None:
        """The same for every scorer."""
        for scorer in self.scorers:
            scorer.read(prefixes)

    def select(self, stay: Stay, parents: Tensor) -> None:
        """The same for every scorer."""
        for scorer in self.scorers:
            scorer.select(stay, parents)
