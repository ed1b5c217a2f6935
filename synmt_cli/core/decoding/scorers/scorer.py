"""Scores of the next token: the interface that search uses, re-reading, and ensembles."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from synmt_cli.core.data.ragged import Array
from synmt_cli.core.decoding.batching.places import Stay
from synmt_cli.core.decoding.batching.supply import Sources
from synmt_cli.core.model.modifier import Side
from synmt_cli.core.model.moving import moved
from synmt_cli.core.model.transformer import Transformer
from synmt_cli.core.text.vocabulary import PAD
from synmt_cli.core.trees.arc_standard import NEVER


class Prefixes(NamedTuple):
    """K prefixes of each of B sources, as a scorer reads them.

    newest: (B, K), the last token of each. at: (B,), its position, BOS being at 0: the same for
    all prefixes of a source. width, source_width: of the longest prefix and source, padded to a
    `whole` length; prefixes in step are not padded. ids, features: (B, K, T), of all tokens from
    BOS on, and arbitrary after the last one; ids are None where no scorer reads them.
    """

    newest: Tensor
    at: Tensor
    width: int
    source_width: int
    ids: Tensor | None
    features: Mapping[str, Tensor]

    def in_step(self) -> Side:
        """Prefixes of one length, `width`, as (B * K, width)."""
        assert self.ids is not None
        ids = self.ids[..., : self.width]
        return Side(
            ids, features={name: x[..., : self.width] for name, x in self.features.items()}
        ).flat()

    def aligned(self) -> tuple[Side, Tensor, Tensor]:
        """The prefixes with the newest tokens in the last column: a side, mask and positions.

        Side: (B * K, width). mask: (B, width) bool, where there is a token. positions: (B, width).
        A decoder's modifiers read prefixes in this form: the queries are the last tokens.
        """
        assert self.ids is not None
        column = torch.arange(self.width, device=self.at.device)
        offset = (self.width - 1) - self.at[:, None]  # (B, 1)
        mask, positions = column >= offset, (column - offset).clamp(min=0)  # (B, width)
        index = positions[:, None].expand(-1, self.newest.size(1), -1)  # (B, K, width)
        is_pad = ~mask[:, None]
        ids = self.ids.gather(2, index).masked_fill(is_pad, PAD)
        features = {name: x.gather(2, index) for name, x in self.features.items()}
        for name in features:
            nothing = NEVER if name == "arc" else 0
            if name != "arc_label":  # the others are positions, which become columns
                features[name] = features[name] + offset[..., None]
            features[name] = features[name].masked_fill(is_pad, nothing)
        return Side(ids, features=features).flat(), mask, positions


class Scorer(Protocol):
    """Scores the next token for B sources with K prefixes each.

    reads_prefixes: whether it needs the ids of whole prefixes. A scorer may remember the keys and
    values of a prefix (cached.py) or read the prefix anew at each step.
    """

    @property
    def reads_prefixes(self) -> bool: ...

    def enter(self, places: Sequence[int], n: int, width: int, new: Sources) -> None:
        """Puts new sources into these places, out of n. width: of the longest source, padded."""

    def step(self, prefixes: Prefixes, normalised: bool = True) -> Tensor:
        """Log-probabilities (B, K, V), a new tensor of single precision at least.

        normalised: if False, a scorer may return unnormalised ones, which have the same order.

        Prefixes are one token longer than at the last call, or BOS in the places of new sources.
        """

    def read(self, prefixes: Prefixes) -> None:
        """Does what `step` does, where the scores of the next token are not wanted."""

    def select(self, stay: Stay, parents: Array | None) -> None:
        """Drops sources and reorders prefixes, between two steps.

        parents: (B', K), for each source that stays, the old prefix that each new one continues;
        None: each continues its own.
        """


def log_softmax(x: Tensor) -> Tensor:
    """x.log_softmax(-1), which overwrites x on a CPU: a second array takes as long as the sums."""
    return torch.log_softmax(x, -1, out=x) if x.device.type == "cpu" else x.log_softmax(-1)


class SourceStates:
    """The keys and values of the sources in B places, for a model's layers, and their mask."""

    def __init__(self) -> None:
        self._n = 0
        self._both = torch.empty(0)  # (layers, 2, room for B, H, room for S, D / H)
        self._mask = torch.empty(0)  # (room for B, 1, 1, room for S), numbers to add to scores

    def enter(
        self, places: Sequence[int], n: int, width: int, sources: Sources, model: int
    ) -> None:
        """Like `Scorer.enter`. model: its number among several."""
        both = sources.keys_values[model]
        rows = moved(torch.tensor(places), both.device)
        self._make_room(n, width, both)
        self._n = n
        self._both[:, :, rows, :, : both.size(4)] = both
        known = torch.arange(self._mask.size(-1)) < torch.tensor(sources.lengths)[:, None]
        mask = torch.zeros(known.shape).masked_fill_(~known, -torch.inf)
        self._mask[rows] = moved(mask, both.device).to(both.dtype)[:, None, None]

    def _make_room(self, n: int, width: int, like: Tensor) -> None:
        old, n_now = self._both, self._n
        if old.dim() == 6 and n <= old.size(2) and width <= old.size(4):
            return
        n_layers, _, _, n_heads, _, size = like.shape
        self._both = like.new_zeros(n_layers, 2, n, n_heads, width, size)
        mask = like.new_full((n, 1, 1, width), -torch.inf)
        if n_now:
            kept = min(width, old.size(4))
            self._both[:, :, :n_now, :, :kept] = old[:, :, :n_now, :, :kept]
            mask[:n_now, ..., :kept] = self._mask[:n_now, ..., :kept]
        self._mask = mask

    def select(self, stay: Stay) -> None:
        """Moves sources into the places of those that left."""
        if not stay.is_all:
            stay.move(self._both.transpose(0, 2))
            stay.move(self._mask)
            self._n = len(stay.places)

    def seen(self, width: int) -> tuple[Tensor, Tensor]:
        """Each layer's keys and values, (2, B, H, width, D / H); and the mask, (B, 1, 1, width)."""
        return self._both[:, :, : self._n, :, :width], self._mask[: self._n, ..., :width]


def _tokens_per_pass(device: torch.device) -> int:
    """Tokens that are read in one pass, so that memory does not grow with the batch.

    On a GPU these are more than in training (prefixes.tokens_per_pass), since nothing is kept for a
    backward pass.
    """
    return 2**13 if device.type == "cpu" else 2**17


class RereadingScorer:
    """Reads the prefix anew at each step, for models whose known tokens see later ones.

    All prefixes have one length: their padding would be read anew, too. Nothing of the target can
    be remembered from step to step, since every state may change. The source's keys and values
    are computed once; the prefixes of a source are queries to them.
    """

    reads_prefixes = True

    def __init__(self, model: Transformer, number: int = 0) -> None:
        self._model = model
        self._number = number  # of the model in an ensemble
        self._sources = SourceStates()

    def enter(self, places: Sequence[int], n: int, width: int, new: Sources) -> None:
        """Keeps the sources' keys and values."""
        self._sources.enter(places, n, width, new, self._number)

    def step(self, prefixes: Prefixes, normalised: bool = True) -> Tensor:
        """Log-probabilities (B, K, V), or logits."""
        side = prefixes.in_step()
        both, allowed = self._sources.seen(prefixes.source_width)
        n, k = prefixes.newest.shape
        at_once = max(1, _tokens_per_pass(side.ids.device) // (k * prefixes.width))
        states = torch.cat(
            [
                self._model.decoder.reread(
                    side[begin * k : (begin + at_once) * k],
                    [(keys, values) for keys, values in both[:, :, begin : begin + at_once]],
                    allowed[begin : begin + at_once],
                )
                for begin in range(0, n, at_once)
            ]
        )
        logits = self._model.logits(states).float().unflatten(0, prefixes.newest.shape)
        return log_softmax(logits) if normalised else logits

    def read(self, prefixes: Prefixes) -> None:
        """Does nothing: the next step reads the whole prefix."""

    def select(self, stay: Stay, parents: Array | None) -> None:
        """Keeps these sources; nothing is remembered of prefixes."""
        self._sources.select(stay)


class EnsembleScorer:
    """Several scorers of one target vocabulary as one: the mean of their probabilities.

    P(w) = 1/M sum_m P_m(w), in the log domain.
    """

    def __init__(self, scorers: Sequence[Scorer]) -> None:
        self.scorers = tuple(scorers)
        self.reads_prefixes = any(scorer.reads_prefixes for scorer in scorers)

    def enter(self, places: Sequence[int], n: int, width: int, new: Sources) -> None:
        """Calls every scorer, which picks its own model's keys and values."""
        for scorer in self.scorers:
            scorer.enter(places, n, width, new)

    def step(self, prefixes: Prefixes, normalised: bool = True) -> Tensor:
        """Log-probabilities (B, K, V)."""
        log_probs = torch.stack([scorer.step(prefixes) for scorer in self.scorers])  # (M, B, K, V)
        return log_probs.logsumexp(0) - math.log(len(self.scorers))

    def read(self, prefixes: Prefixes) -> None:
        """Calls every scorer."""
        for scorer in self.scorers:
            scorer.read(prefixes)

    def select(self, stay: Stay, parents: Array | None) -> None:
        """Calls every scorer."""
        for scorer in self.scorers:
            scorer.select(stay, parents)
