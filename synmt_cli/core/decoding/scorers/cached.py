"""Scores of the next token from remembered keys and values: each step reads one token.

Right for every decoder in which a known token sees only earlier ones. The source's keys and
values are computed once, and the K prefixes of a source are K queries against them. The tokens of
prefixes are remembered in the same way: the keys and values of a token stay where they were
written, in a slot of the source, until no prefix has the token any longer (slots.py). So nothing
is copied when prefixes change places, and attention to the prefix is K queries against the M slots
of the source, of which each query sees its own. Modifiers see whole prefixes; if they add only
relations, these move to the slots; otherwise keys and values are put in order for them.
"""

from collections.abc import Sequence
from functools import partial

import numpy as np
import torch
from torch import Tensor

from synmt_cli.core.data.ragged import Array
from synmt_cli.core.decoding.batching.places import Stay
from synmt_cli.core.decoding.batching.slots import Slots
from synmt_cli.core.decoding.batching.supply import Sources
from synmt_cli.core.decoding.scorers.scorer import Prefixes, SourceStates, log_softmax
from synmt_cli.core.model import relations
from synmt_cli.core.model.attention import (
    SelfAttention,
    fused_attention,
    join_heads,
    split_heads,
)
from synmt_cli.core.model.modifier import Active
from synmt_cli.core.model.moving import moved
from synmt_cli.core.model.relations import Related
from synmt_cli.core.model.transformer import Transformer


class CachedScorer:
    """A Scorer of one model. number: of the model in an ensemble.

    Decoder modifiers are given the whole prefix, with Tq = 1.
    """

    def __init__(self, model: Transformer, number: int = 0) -> None:
        self._model = model
        self._number = number
        self.reads_prefixes = len(model.decoder.modifiers) > 0
        self._sources = SourceStates()
        # Keys and values of all layers are one tensor, which moves in one operation: (layers, 2,
        # room for B, H, room for M, D / H). Zero at first: what is not seen has weight 0, but
        # 0 * NaN is not 0.
        self._prefixes = model.output.weight.new_empty(0, 2, 0, 0, 0, 0)
        self._slots = Slots(in_order=self.reads_prefixes)

    def enter(self, places: Sequence[int], n: int, width: int, new: Sources) -> None:
        """Keeps the sources' keys and values, and hides those of former prefixes."""
        self._sources.enter(places, n, width, new, self._number)
        self._slots.enter(places, n)

    def step(self, prefixes: Prefixes, normalised: bool = True) -> Tensor:
        """Log-probabilities (B, K, V), or logits."""
        logits = self._model.logits(self._model.decoder.norm(self._states(prefixes))).float()
        return log_softmax(logits) if normalised else logits

    def read(self, prefixes: Prefixes) -> None:
        """Remembers the newest tokens."""
        self._states(prefixes)

    def _states(self, prefixes: Prefixes) -> Tensor:
        """The last layer's states of the newest tokens, (B, K, D)."""
        n_sources, n_beams = prefixes.newest.shape
        decoder, width = self._model.decoder, prefixes.width
        both, allowed = self._sources.seen(prefixes.source_width)
        device, slots, seen = both.device, self._slots.take(n_beams), self._slots.seen()
        self._make_room(n_sources, seen.shape[2], both)
        place = torch.arange(n_sources, device=device)[:, None]
        written = place, moved(torch.from_numpy(slots), device)
        aligned = None
        if self.reads_prefixes:
            of_tokens = moved(torch.from_numpy(self._slots.slots_of_tokens(width)), device)
            aligned = Aligned(prefixes, of_tokens, seen.shape[2])
        active = decoder.prepare(aligned.side) if aligned else []
        # The positions of the newest tokens, (B * K, 1).
        positions = prefixes.at[:, None].expand(-1, n_beams).flatten()[:, None]
        x = decoder.embedding(prefixes.newest.flatten()[:, None], active, positions, width)
        x = x.view(n_sources, n_beams, -1)  # (B, K, D)
        numbers = np.where(seen, np.float32(0), np.float32(-np.inf))[:, None]  # (B, 1, K, M)
        mask = moved(torch.from_numpy(numbers), device).to(both.dtype)
        for layer, source, prefix in zip(decoder.layers, both, self._prefixes, strict=True):
            attend = partial(self._attend, layer.attention, prefix, written, mask, active, aligned)
            x = layer.step(x, attend, (source[0], source[1]), allowed)
        return x

    def _attend(
        self,
        attention: SelfAttention,
        prefix: Tensor,
        written: tuple[Tensor, Tensor],
        seen: Tensor,
        active: list[Active],
        aligned: "Aligned | None",
        x: Tensor,
    ) -> Tensor:
        """The newest token of each prefix attends to all of its tokens, itself included.

        x: (B, K, D) -> (B, K, D). prefix: (2, room for B, H, room for M, D / H), filled here at
        the places and slots `written`. seen: (B, 1, K, M), 0 at a prefix's own slots, else -inf.
        """
        q, newest = attention.project_apart(x)  # (B, K, D), (B, K, 2, D)
        place, slot = written
        prefix[:, place, :, slot] = newest.unflatten(-1, (attention.n_heads, -1))
        here = attention.modified_by(active)
        if aligned is not None and not all(one.is_only_related for one in here):
            k, v = aligned.of(prefix)  # (B * K, T, D) each
            q, one = q.flatten(0, 1)[:, None], x.flatten(0, 1)[:, None]  # (B * K, 1, D)
            return attention.attend(one, q, k, v, aligned.mask, here).view_as(x)
        k, v = prefix[:, : len(x), :, : seen.size(-1)]  # (B, H, M, D / H) each
        qkv = split_heads(q, attention.n_heads), k, v
        related = aligned.related(here, attention.layer) if aligned else []
        if related:
            context = relations.attention(qkv, attention.n_heads, None, 0.0, related, seen, q.dtype)
        else:
            context = join_heads(fused_attention(*qkv, seen, 0.0, False))
        return attention.out(context)

    def _make_room(self, n_sources: int, width: int, like: Tensor) -> None:
        """Makes room for so many sources and slots."""
        _, _, n_old, _, capacity, _ = self._prefixes.shape
        if n_sources <= n_old and width <= capacity:
            return
        old = self._prefixes
        n_layers, _, _, n_heads, _, size = like.shape
        n_sources = max(n_sources, n_old)
        width = max(width, 2 * capacity) if width > capacity else capacity
        self._prefixes = like.new_zeros(n_layers, 2, n_sources, n_heads, width, size)
        if n_old:
            self._prefixes[:, :, :n_old, :, :capacity] = old

    def select(self, stay: Stay, parents: Array | None) -> None:
        """Moves sources into the places of those that left; tokens stay in their slots."""
        if parents is not None or not stay.is_all:
            self._slots.select(stay.places, parents)
        self._sources.select(stay)
        if not stay.is_all:
            used = self._slots.seen().shape[2]
            stay.move(self._prefixes[:, :, :, :, :used].transpose(0, 2))


class Aligned:
    """Prefixes one to a row, as modifiers read them: the newest tokens in the last column.

    slots: (B, K, T), the slot of each token. n_slots: how many each source has. side: (B * K, T).
    mask: (B * K, 1, 1, T) bool, True where there is a token.
    """

    def __init__(self, prefixes: Prefixes, slots: Tensor, n_slots: int) -> None:
        self.side, mask, positions = prefixes.aligned()
        n_beams = prefixes.newest.size(1)
        self.mask = mask[:, None].expand(-1, n_beams, -1).flatten(0, 1)[:, None, None]
        self._slots = slots.gather(2, positions[:, None].expand(-1, n_beams, -1))  # (B, K, T)
        self._real_slots = self._slots.masked_fill(~mask[:, None], n_slots)  # n_slots: padding
        self._n_slots = n_slots

    def related(self, active: Sequence[Active], layer: int) -> list[Related]:
        """The relations that modifiers add to the keys and values in the slots of each source."""
        every = [modifier.related(state, layer) for modifier, state in active]
        return [one.in_slots(self._real_slots, self._n_slots) for one in every if one is not None]

    def of(self, prefix: Tensor) -> tuple[Tensor, Tensor]:
        """prefix: (2, room for B, H, room for M, D / H) -> k and v, (B * K, T, D) each."""
        place = torch.arange(len(self._slots), device=prefix.device)[:, None, None]
        both = prefix[:, place, :, self._slots]  # (B, K, T, 2, H, D / H)
        k, v = both.flatten(0, 1).flatten(3).unbind(2)
        return k, v
