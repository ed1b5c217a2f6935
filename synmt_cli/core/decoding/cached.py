"""A model's next token from remembered keys and values: each step reads one token.

Right for every decoder in which a known token sees only earlier ones. The source's keys and
values are computed once, and the K hypotheses of a source are K queries against them. Their
own tokens are remembered in the same way: what a hypothesis wrote stays where it is, in slot
k of its position, and its descendants know in which slot each of their tokens lies. So
nothing is copied when hypotheses change places, and attention to the prefix is K queries
against the T * K tokens of the source, of which each query sees its own T.
"""

from __future__ import annotations

import itertools

import torch
from torch import Tensor

from synmt_cli.core.model.attention import additive, split_heads
from synmt_cli.core.model.layers import DecoderLayer
from synmt_cli.core.model.modifier import Active, Side
from synmt_cli.core.model.transformer import Transformer

ROOM = 32  # target positions to begin with; doubled when they are full


class CachedScorer:
    """A Scorer of one model. Decoder modifiers are given the whole prefix, with Tq = 1."""

    def __init__(self, model: Transformer, sources: Side) -> None:
        memory = model.encode(sources)
        self._model, self._allowed = model, additive(memory.allowed, memory.states)
        self._layers = [layer for layer in model.decoder.layers if isinstance(layer, DecoderLayer)]
        self._source = [layer.cross.keys_values(memory.states) for layer in self._layers]
        # Each layer's keys and values, (B, room for T, slots, 2 D). Zero at first: what is
        # not seen has weight 0, but 0 * NaN is not 0.
        room = memory.states.size(0), ROOM, 1, 2 * memory.states.size(2)
        self._target = [memory.states.new_zeros(room) for _ in self._layers]
        self._slots = sources.ids.new_empty(len(sources.ids), 1, 0)  # (B, K, T)

    def step(self, prefixes: Side) -> Tensor:
        """prefixes: ids (B, K, T) -> log-probabilities (B, K, V)."""
        n_sources, n_beams, n_tokens = prefixes.ids.shape
        own = torch.arange(n_beams, device=prefixes.ids.device)[:, None].expand(n_sources, -1, 1)
        self._slots = torch.cat((self._slots, own), dim=-1)
        self._make_room(n_tokens, n_beams)
        decoder, flat = self._model.decoder, prefixes.flat()  # (B * K, T)
        active = decoder.prepare(flat)
        x = decoder.embedding(flat.ids[:, -1:], active, start=n_tokens - 1)  # (B * K, 1, D)
        x = x.view(n_sources, n_beams, -1)
        seen = self._seen()
        for layer, source, target in zip(self._layers, self._source, self._target, strict=True):
            x = self._attend(layer, x, target[:, :n_tokens], seen, active)
            x = layer.rest(x, *source, self._allowed)
        return self._model.logits(decoder.norm(x)).log_softmax(-1, dtype=torch.float32)

    def _attend(
        self,
        layer: DecoderLayer,
        x: Tensor,
        known: Tensor,
        seen: Tensor | None,
        active: list[Active],
    ) -> Tensor:
        """The newest token attends to its prefix, itself included.

        x: (B, K, D) -> (B, K, D). known: (B, T, slots, 2 D), its last position is filled.
        """
        normed, attention = layer.before(0, x), layer.attention
        q, kv = attention.qkv(normed).split((x.size(-1), 2 * x.size(-1)), dim=-1)
        known[:, -1, : x.size(1)] = kv
        if attention.acting(active):  # one row for each hypothesis, its tokens in order
            rows = torch.arange(len(known), device=x.device)[:, None, None]
            columns = torch.arange(known.size(1), device=x.device)
            known = known[rows, columns, self._slots]  # (B, K, T, 2 D)
            normed, q, seen = normed.flatten(0, 1)[:, None], q.flatten(0, 1)[:, None], None
            known = known.flatten(0, 1)
        else:
            known = known.flatten(1, 2)  # (B, T * slots, 2 D)
        heads = [split_heads(t, attention.n_heads) for t in (q, *known.chunk(2, dim=-1))]
        y = attention.attend(normed, (heads[0], heads[1], heads[2]), seen, False, active)
        return layer.after(0, x, y.view_as(x))

    def _seen(self) -> Tensor | None:
        """(B, 1, K, T * slots), 0 for what each hypothesis is made of, else -inf; None: all 0."""
        n_slots = self._target[0].size(2)
        if n_slots == 1:
            return None
        slots = torch.arange(n_slots, device=self._slots.device)
        own = (self._slots[..., None] == slots).flatten(2)[:, None]
        return additive(own, self._target[0])

    def _make_room(self, n_tokens: int, n_slots: int) -> None:
        n_sources, room, slots, width = self._target[0].shape
        if n_tokens <= room and n_slots <= slots:
            return
        shape = n_sources, room * (1 + (n_tokens > room)), max(n_slots, slots), width
        for i, old in enumerate(self._target):
            self._target[i] = old.new_zeros(shape)
            self._target[i][:, :room, :slots] = old

    def select(self, sources: Tensor, parents: Tensor) -> None:
        """Moves sources into the places of those that left; hypotheses stay in their slots."""
        self._slots = self._slots[sources[:, None], parents]
        if len(sources) == len(self._target[0]):
            return
        for known in self._target:
            _move(known[:, : self._slots.size(2)], sources)
        for tensor in itertools.chain(*self._source):
            _move(tensor, sources)
        n_left = len(sources)
        self._target = [known[:n_left] for known in self._target]
        self._source = [(k[:n_left], v[:n_left]) for k, v in self._source]
        if self._allowed is not None:
            self._allowed = self._allowed[sources]


def _move(x: Tensor, sources: Tensor) -> None:
    """Makes x[i] what x[sources[i]] was, by copying only what changes its place."""
    changed = (sources != torch.arange(len(sources), device=x.device)).nonzero().flatten()
    x[changed] = x[sources[changed]]
