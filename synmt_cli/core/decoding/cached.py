"""A model's next token from remembered keys and values: each step reads one token.

Right for every decoder in which a known token sees only earlier ones. The source's keys and
values are computed once, and the K hypotheses of a source are K queries against them. Their
own tokens are remembered in the same way: the keys and values of a hypothesis stay where they
were written, in slot k of their position, and its descendants know in which slot each of their
tokens lies. So nothing is copied when hypotheses change places, and attention to the prefix is
K queries against the T * K tokens of the source, of which each query sees its own T.
"""

from functools import partial

import torch
from torch import Tensor

from synmt_cli.core.decoding.places import Stay
from synmt_cli.core.model.attention import SelfAttention, additive_mask
from synmt_cli.core.model.layers import Memory
from synmt_cli.core.model.modifier import Active, Side
from synmt_cli.core.model.transformer import Transformer

CAPACITY = 32  # target positions to begin with; doubled when they are full


class CachedScorer:
    """A Scorer of one model. Decoder modifiers are given the whole prefix, with Tq = 1."""

    def __init__(self, model: Transformer, memory: Memory) -> None:
        states = memory.states  # (B, S, D)
        self._model = model
        self._allowed = additive_mask(memory.allowed, states)
        # The keys and values of all layers are one tensor, which moves in one operation. Those
        # of the sources: (layers, B, S, 2 D).
        layers = model.decoder.layers
        self._sources = torch.stack([layer.cross.kv(states) for layer in layers])
        # Those of the prefixes: (layers, B, capacity for T, slots, 2, D). Zero at first: unseen
        # positions have weight 0, but 0 * NaN is not 0.
        shape = len(layers), states.size(0), CAPACITY, 1, 2, states.size(2)
        self._prefixes = self._sources.new_zeros(shape)
        self._numbers = torch.arange(1, device=states.device)  # of slots
        self._slots = torch.empty(len(states), 1, 0, dtype=torch.long, device=states.device)

    def step(self, prefixes: Side) -> Tensor:
        """prefixes: ids (B, K, T) -> log-probabilities (B, K, V)."""
        logits = self._model.logits(self._model.decoder.norm(self._states(prefixes)))
        return logits.log_softmax(-1, dtype=torch.float32)

    def read(self, prefixes: Side) -> None:
        """Remembers the newest tokens."""
        self._states(prefixes)

    def _states(self, prefixes: Side) -> Tensor:
        """The last layer's states of the newest tokens, (B, K, D)."""
        n_sources, n_beams, n_tokens = prefixes.ids.shape
        self._make_room(n_tokens, n_beams)
        slots = self._numbers[:n_beams, None].expand(n_sources, -1, 1)  # (B, K, 1)
        self._slots = torch.cat((self._slots, slots), dim=-1)  # (B, K, T)
        decoder, flat = self._model.decoder, prefixes.flat()  # (B * K, T)
        active = decoder.prepare(flat)
        x = decoder.embedding(flat.ids[:, -1:], active, start=n_tokens - 1)  # (B * K, 1, D)
        x = x.view(n_sources, n_beams, -1)  # (B, K, D)
        seen = self._seen()
        for layer, source, prefix in zip(
            decoder.layers, self._sources, self._prefixes, strict=True
        ):
            attend = partial(self._attend, layer.attention, prefix[:, :n_tokens], seen, active)
            x = layer.step(x, attend, layer.cross.parted(source), self._allowed)
        return x

    def _attend(
        self,
        attention: SelfAttention,
        prefix: Tensor,
        seen: Tensor | None,
        active: list[Active],
        x: Tensor,
    ) -> Tensor:
        """The newest token of each hypothesis attends to its prefix, itself included.

        x: (B, K, D) -> (B, K, D). prefix: (B, T, slots, 2, D); its last position is filled here.
        """
        n_sources, n_beams, _ = x.shape
        newest = prefix[:, -1, :n_beams]  # (B, K, 2, D)
        q, newest[..., 0, :], newest[..., 1, :] = attention.project(x)  # (B, K, D) each
        if seen is None or not attention.modified_by(active):
            k, v = prefix.flatten(1, 2).unbind(2)  # (B, T * slots, D) each
            return attention.attend(x, q, k, v, seen, False, active)
        # Modifiers get one row for each hypothesis, its tokens in order.
        source = torch.arange(n_sources, device=x.device)[:, None, None]
        position = torch.arange(prefix.size(1), device=x.device)
        k, v = prefix[source, position, self._slots].flatten(0, 1).unbind(2)  # (B * K, T, D) each
        q, one = q.flatten(0, 1)[:, None], x.flatten(0, 1)[:, None]  # (B * K, 1, D)
        return attention.attend(one, q, k, v, None, False, active).view_as(x)

    def _seen(self) -> Tensor | None:
        """(B, 1, K, T * slots), 0 at a hypothesis's own tokens, else -inf; None: all 0."""
        n_slots = self._prefixes.size(3)
        if n_slots == 1:
            return None
        seen = (self._slots[..., None] == self._numbers).flatten(2)  # (B, K, T * slots)
        return additive_mask(seen[:, None], self._prefixes)

    def _make_room(self, n_tokens: int, n_slots: int) -> None:
        n_layers, n_sources, old_capacity, old_slots, *pair = self._prefixes.shape
        if n_tokens <= old_capacity and n_slots <= old_slots:
            return
        capacity = 2 * old_capacity if n_tokens > old_capacity else old_capacity
        n_slots = max(n_slots, old_slots)
        old = self._prefixes
        self._prefixes = old.new_zeros(n_layers, n_sources, capacity, n_slots, *pair)
        self._prefixes[:, :, :old_capacity, :old_slots] = old
        self._numbers = torch.arange(n_slots, device=old.device)

    def select(self, stay: Stay, parents: Tensor) -> None:
        """Moves sources into the places of those that left; hypotheses stay in their slots."""
        self._slots = self._slots[stay.sources[:, None], parents]
        if stay.is_all:
            return
        n_left, n_tokens = len(stay.sources), self._slots.size(2)
        stay.move(self._sources.transpose(0, 1))
        stay.move(self._prefixes.transpose(0, 1)[:, :, :n_tokens])
        self._sources = self._sources[:, :n_left]
        self._prefixes = self._prefixes[:, :n_left]
        if self._allowed is not None:
            self._allowed = self._allowed[stay.sources]
