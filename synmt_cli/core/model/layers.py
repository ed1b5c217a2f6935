"""Encoder and decoder stacks. Vaswani et al. (2017), section 3."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch.nn.functional as F
from torch import Tensor, nn

from synmt_cli.core.model.attention import CrossAttention, SelfAttention, projection
from synmt_cli.core.model.embedding import Embedding
from synmt_cli.core.model.modifier import Active, Modifier, Side
from synmt_cli.core.model.size import Size


class FeedForward(nn.Module):
    """max(0, x W_1 + b_1) W_2 + b_2, eq. 2."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.wide = projection(size.d_model, size.d_ff)
        self.narrow = projection(size.d_ff, size.d_model)
        self.dropout = size.activation_dropout

    def forward(self, x: Tensor) -> Tensor:
        """(..., D) -> (..., D)."""
        return self.narrow(F.dropout(F.relu(self.wide(x)), self.dropout, self.training))


class Layer(nn.Module):
    """What encoder and decoder layers share: residual sums with layer normalisation."""

    def __init__(self, size: Size, layer: int, n_norms: int) -> None:
        super().__init__()
        self.attention = SelfAttention(size.d_model, size.n_heads, size.attention_dropout, layer)
        self.feed_forward = FeedForward(size)
        self.norms = nn.ModuleList(nn.LayerNorm(size.d_model) for _ in range(n_norms))
        self.dropout, self.pre = size.dropout, size.norm == "pre"

    def before(self, i: int, x: Tensor) -> Tensor:
        """The input of sub-layer i."""
        return self.norms[i](x) if self.pre else x

    def after(self, i: int, x: Tensor, y: Tensor) -> Tensor:
        """The residual sum around sub-layer i, whose output is y."""
        x = x + F.dropout(y, self.dropout, self.training)
        return x if self.pre else self.norms[i](x)


class EncoderLayer(Layer):
    """Self-attention, then feed-forward."""

    def __init__(self, size: Size, layer: int) -> None:
        super().__init__(size, layer, 2)

    def forward(self, x: Tensor, allowed: Tensor | None, active: Sequence[Active]) -> Tensor:
        """x: (B, T, D) -> (B, T, D). allowed: (B, 1, 1, T) bool or None."""
        x = self.after(0, x, self.attention(self.before(0, x), allowed, False, active))
        return self.after(1, x, self.feed_forward(self.before(1, x)))


class DecoderLayer(Layer):
    """Self-attention, attention to the source, then feed-forward."""

    def __init__(self, size: Size, layer: int) -> None:
        super().__init__(size, layer, 3)
        self.cross = CrossAttention(size.d_model, size.n_heads, size.attention_dropout)

    def forward(
        self, x: Tensor, memory: Memory, allowed: Tensor | None, active: Sequence[Active]
    ) -> Tensor:
        """x: (B, T, D), the whole target so far -> (B, T, D)."""
        causal = allowed is None  # right padding is the future: causality alone hides it
        x = self.after(0, x, self.attention(self.before(0, x), allowed, causal, active))
        return self.rest(x, *self.cross.keys_values(memory.states), memory.allowed)

    def reread(
        self,
        x: Tensor,
        source: tuple[Tensor, Tensor],
        allowed: Tensor | None,
        active: Sequence[Active],
        newest: bool,
    ) -> Tensor:
        """x: (R, T, D), whole prefixes without padding, each token seen by all others.

        Returns (R, T, D), or with `newest` the last token's row alone, (R, 1, D). source: keys
        and values of B sources, of which R / B prefixes in a row belong to each.
        """
        normed = self.before(0, x)
        q, k, v = self.attention.project(normed)
        if newest:
            q, x, normed = q[:, :, -1:], x[:, -1:], normed[:, -1:]
        x = self.after(0, x, self.attention.attend(normed, (q, k, v), None, False, active))
        n_sources, shape = len(source[0]), x.shape
        return self.rest(x.reshape(n_sources, -1, shape[-1]), *source, allowed).view(shape)

    def rest(self, x: Tensor, k: Tensor, v: Tensor, allowed: Tensor | None) -> Tensor:
        """All that follows self-attention. k, v: the source's, (B, H, S, D / H)."""
        x = self.after(1, x, self.cross(self.before(1, x), k, v, allowed))
        return self.after(2, x, self.feed_forward(self.before(2, x)))


@dataclass(frozen=True)
class Memory:
    """What the encoder made of a batch.

    states: (B, S, D). allowed: (B, 1, 1, S) bool, True at tokens, or None without padding.
    losses: what each modifier that has one adds to the loss, by its variant's name.
    """

    states: Tensor
    allowed: Tensor | None
    losses: Mapping[str, Tensor] = field(default_factory=dict)


class Stack(nn.Module):
    """Embedding, layers, and the modifiers that act on them."""

    def __init__(
        self, embedding: Embedding, layers: Sequence[Layer], modifiers: Sequence[Modifier]
    ) -> None:
        super().__init__()
        self.embedding = embedding
        self.layers = nn.ModuleList(layers)
        self.modifiers = nn.ModuleList(modifiers)
        self._modifiers = tuple(modifiers)  # the same objects, with their type
        pre = bool(layers) and layers[0].pre
        d_model = embedding.table.embedding_dim
        self.norm = nn.LayerNorm(d_model) if pre else nn.Identity()

    def loss_names(self) -> set[str]:
        """The names of the modifiers that may have a loss."""
        return {m.name for m in self._modifiers if type(m).loss is not Modifier.loss}

    def prepare(self, side: Side) -> list[Active]:
        """Every modifier with its state for this batch."""
        return [Active(m, m.prepare(side)) for m in self._modifiers]


def losses(active: Sequence[Active]) -> dict[str, Tensor]:
    """The losses of the modifiers that have one, summed by name."""
    found: dict[str, Tensor] = {}
    for modifier, state in active:
        loss = modifier.loss(state)
        if loss is not None:
            found[modifier.name] = found.get(modifier.name, 0) + loss
    return found


class Encoder(Stack):
    """Reads the whole source."""

    def __init__(self, embedding: Embedding, size: Size, modifiers: Sequence[Modifier]) -> None:
        layers = [EncoderLayer(size, i) for i in range(size.encoder_layers)]
        super().__init__(embedding, layers, modifiers)

    def forward(self, side: Side) -> Memory:
        """Encodes a batch of sources."""
        active = self.prepare(side)
        allowed = None if side.pad is None else ~side.pad[:, None, None, :]
        x = self.embedding(side.ids, active)
        for layer in self.layers:
            x = layer(x, allowed, active)
        return Memory(self.norm(x), allowed, losses(active))


Source = tuple[Tensor, Tensor]  # the source's keys and values, each (B, H, S, D / H)


class Decoder(Stack):
    """Reads the target from left to right."""

    def __init__(self, embedding: Embedding, size: Size, modifiers: Sequence[Modifier]) -> None:
        layers = [DecoderLayer(size, i) for i in range(size.decoder_layers)]
        super().__init__(embedding, layers, modifiers)
        self._layers = tuple(layers)  # the same objects, with their type

    def sources(self, memory: Memory) -> list[Source]:
        """Each layer's keys and values of the source."""
        return [layer.cross.keys_values(memory.states) for layer in self._layers]

    def reread(self, side: Side, sources: Sequence[Source], allowed: Tensor | None) -> Tensor:
        """Reads whole prefixes, every known token seen by every other (Choshen and Abend 2021).

            M_ij = 0 if j <= n, else -inf        for a prefix of n tokens; section 2

        The paper prints n < j for 0: a slip. side: R prefixes of one length, (R, T), of which
        R / B in a row belong to each of B sources. Returns the newest tokens' states, (R, D):
        no others are needed, so the last layer computes no others.
        """
        active = self.prepare(side)
        x = self.embedding(side.ids, active)
        for layer, source in zip(self._layers, sources, strict=True):
            x = layer.reread(x, source, allowed, active, newest=layer is self._layers[-1])
        return self.norm(x)[:, -1]

    def forward(self, side: Side, memory: Memory) -> tuple[Tensor, dict[str, Tensor]]:
        """Teacher forcing: returns (states (B, T, D), the modifiers' losses)."""
        active = self.prepare(side)
        x = self.embedding(side.ids, active)
        for layer in self.layers:
            x = layer(x, memory, None, active)
        return self.norm(x), losses(active)
