"""A model's next token from remembered keys and values: each step reads one token.

Right for every decoder in which a known token sees only earlier ones. The source's keys and
values are computed once, and the K hypotheses of a source are K queries against them; each
hypothesis has its own row of target keys and values.
"""

from __future__ import annotations

import torch
from torch import Tensor

from synmt_cli.core.model.attention import split_heads
from synmt_cli.core.model.modifier import Active, Side
from synmt_cli.core.model.transformer import DecoderLayer
from synmt_cli.core.model.translation import Translation

ROOM = 32  # target positions to begin with; doubled when they are full


class Cached:
    """A Scorer of one model. Decoder modifiers are given the whole prefix, with Tq = 1."""

    def __init__(self, model: Translation, sources: Side) -> None:
        memory = model.encode(sources)
        self._model, self._allowed = model, memory.allowed
        self._layers = [layer for layer in model.decoder.layers if isinstance(layer, DecoderLayer)]
        self._source = [layer.cross.keys_values(memory.states) for layer in self._layers]
        n_sources, _, d_model = memory.states.shape
        # Layer, row = (source, hypothesis), position, key then value: rows move as one block.
        self._target = memory.states.new_empty(len(self._layers), n_sources, ROOM, 2 * d_model)
        self._n_beams = 1

    def step(self, prefixes: Tensor) -> Tensor:
        """prefixes: (B, K, T) -> logits (B, K, V)."""
        n_sources, self._n_beams, n_tokens = prefixes.shape
        if n_tokens > self._target.size(2):
            self._target = torch.cat((self._target, torch.empty_like(self._target)), dim=2)
        decoder, ids = self._model.decoder, prefixes.flatten(0, 1)  # (B * K, T)
        active = decoder.prepare(Side(ids))
        x = decoder.embedding(ids[:, -1:], active, start=n_tokens - 1)  # (B * K, 1, D)
        for layer, source, target in zip(self._layers, self._source, self._target, strict=True):
            x = self._attend(layer, x, target[: len(ids), :n_tokens], active)
            x = layer.rest(x.view(n_sources, self._n_beams, -1), *source, self._allowed)
            x = x.view(len(ids), 1, -1)
        return self._model.logits(decoder.norm(x)).view(n_sources, self._n_beams, -1)

    def _attend(
        self, layer: DecoderLayer, x: Tensor, known: Tensor, active: list[Active]
    ) -> Tensor:
        """The newest token attends to its prefix, itself included.

        x: (B * K, 1, D) -> (B * K, 1, D). known: (B * K, T, 2 D), its last position is filled.
        """
        normed, attention = layer.before(0, x), layer.attention
        q, kv = attention.qkv(normed).split((x.size(-1), 2 * x.size(-1)), dim=-1)
        known[:, -1:] = kv
        k, v = (split_heads(t, attention.n_heads) for t in known.chunk(2, dim=-1))
        qkv = split_heads(q, attention.n_heads), k, v
        return layer.after(0, x, attention.attend(normed, qkv, None, False, active))

    def select(self, sources: Tensor, parents: Tensor) -> None:
        """Copies only the rows whose place changes."""
        rows = (sources[:, None] * self._n_beams + parents).flatten()
        self._target = _moved(self._target, rows, dim=1)
        if len(sources) < len(self._source[0][0]):
            self._source = [
                (_moved(k, sources, dim=0), _moved(v, sources, dim=0)) for k, v in self._source
            ]
            if self._allowed is not None:
                self._allowed = _moved(self._allowed, sources, dim=0)


def _moved(x: Tensor, index: Tensor, dim: int) -> Tensor:
    """x.index_select(dim, index), in place where there is room."""
    if len(index) > x.size(dim):
        return x.index_select(dim, index)
    changed = (index != torch.arange(len(index), device=index.device)).nonzero().flatten()
    if len(changed):
        x.index_copy_(dim, changed, x.index_select(dim, index[changed]))
    return x.narrow(dim, 0, len(index))
