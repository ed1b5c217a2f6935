"""Encoder and decoder stacks. Vaswani et al. (2017), section 3."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import cast

import torch
from torch import Tensor, nn

from synmt_cli.core.model.attention import (
    CrossAttention,
    KeysValues,
    SelfAttention,
    Tokens,
)
from synmt_cli.core.model.dropout import dropout
from synmt_cli.core.model.embedding import Embedding
from synmt_cli.core.model.modifier import Active, Modifier, Side
from synmt_cli.core.model.projection import projection
from synmt_cli.core.model.size import Size


class FeedForward(nn.Module):
    """max(0, x W_1 + b_1) W_2 + b_2, eq. 2."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.wide = projection(size.d_model, size.d_ff)
        self.narrow = projection(size.d_ff, size.d_model)
        self.rectifier: nn.Module = nn.ReLU()
        self.dropout = size.activation_dropout

    def forward(self, x: Tensor) -> Tensor:
        """(..., D) -> (..., D)."""
        return self.narrow(dropout(self.rectifier(self.wide(x)), self.dropout, self.training))


class Layer(nn.Module):
    """The common parts of encoder and decoder layers."""

    def __init__(self, size: Size, layer: int, n_norms: int) -> None:
        super().__init__()
        self.attention = SelfAttention(size.d_model, size.n_heads, size.attention_dropout, layer)
        self.feed_forward = FeedForward(size)
        self.norms = nn.ModuleList(nn.LayerNorm(size.d_model) for _ in range(n_norms))
        self.dropout = size.dropout
        self.norm_first = size.norm == "pre"

    def residual(
        self,
        i: int,
        x: Tensor,
        sublayer: Callable[[Tensor], Tensor],
        keep: Callable[[Tensor], Tensor] | None = None,
    ) -> Tensor:
        """LayerNorm(x + Sublayer(x)) of sub-layer i, or with norm_first x + Sublayer(LayerNorm(x)).

        x: (B, T, D) -> (B, T, D). keep: selects from x the tokens that the sub-layer returns, if
        it does not return all.
        """
        x = self.residual_sum(i, x, sublayer, keep)
        return x if self.norm_first else self.norms[i](x)

    def residual_sum(
        self,
        i: int,
        x: Tensor,
        sublayer: Callable[[Tensor], Tensor],
        keep: Callable[[Tensor], Tensor] | None = None,
    ) -> Tensor:
        """The sum in `residual`, without the normalisation that may follow it."""
        y = sublayer(self.norms[i](x) if self.norm_first else x)
        if keep is not None:
            x = keep(x)
        return x + dropout(y, self.dropout, self.training)


class EncoderLayer(Layer):
    """Self-attention, then feed-forward."""

    def __init__(self, size: Size, layer: int) -> None:
        super().__init__(size, layer, 2)

    def forward(self, x: Tensor, allowed: Tensor | None, active: Sequence[Active]) -> Tensor:
        """x: (B, T, D) -> (B, T, D). allowed: (B, 1, 1, T) bool or None."""
        x = self.residual(0, x, lambda x: self.attention(x, allowed, False, active))
        return self.after_attention(x)

    def after_attention(self, x: Tensor) -> Tensor:
        """The second half of the layer, (B, T, D) -> (B, T, D)."""
        return self.residual(1, x, self.feed_forward)

    def forward_unpadded(
        self, x: Tensor, tokens: Tokens, allowed: Tensor | None, active: Sequence[Active]
    ) -> Tensor:
        """Like `forward`, for tokens without padding, (N, D) -> (N, D)."""
        x = self.residual(
            0, x, lambda x: self.attention.forward_unpadded(x, tokens, allowed, active)
        )
        return self.after_attention(x)

    def attention_sum(self, x: Tensor, allowed: Tensor | None, active: Sequence[Active]) -> Tensor:
        """The first half of the layer: its input plus attention, not normalised yet."""
        return self.residual_sum(0, x, lambda x: self.attention(x, allowed, False, active))


class DecoderLayer(Layer):
    """Self-attention, attention to the source, then feed-forward."""

    def __init__(self, size: Size, layer: int) -> None:
        super().__init__(size, layer, 3)
        self.cross = CrossAttention(size.d_model, size.n_heads, size.attention_dropout)

    def forward(
        self, x: Tensor, memory: Memory, active: Sequence[Active], past: Tensor | None = None
    ) -> Tensor:
        """Teacher forcing: x: (B, T, D), whole targets -> (B, T, D).

        Padding is on the right, in the future, so causality alone hides it. past: causality as a
        mask, (T, T) bool, for attention that needs one.
        """
        source = self.cross.keys_values(memory.states)

        def attend(x: Tensor) -> Tensor:
            return self.attention(x, past, past is None, active)

        return self.step(x, attend, source, memory.allowed)

    def read(
        self,
        x: Tensor,
        source: KeysValues,
        allowed: Tensor | None,
        visible: Tensor,
        active: Sequence[Active],
        keep: Callable[[Tensor], Tensor] | None,
    ) -> Tensor:
        """Like `step`, for rows of several prefixes: `visible` says which tokens see each other."""

        def attend(x: Tensor) -> Tensor:
            return self.attention(x, visible, False, active, keep=keep)

        return self.step(x, attend, source, allowed, keep)

    def step(
        self,
        x: Tensor,
        attend: Callable[[Tensor], Tensor],
        source: KeysValues,
        allowed: Tensor | None,
        keep: Callable[[Tensor], Tensor] | None = None,
    ) -> Tensor:
        """Applies the three sub-layers. attend: self-attention in any form, input -> output.

        x: (R, T, D) -> (R, T, D), or only the tokens that `keep` selects, if `attend` returns no
        others.
        source, allowed: keys, values and mask of B sources, each for R / B consecutive targets.
        """
        return self.after_attention(self.residual(0, x, attend, keep), source, allowed)

    def after_attention(self, x: Tensor, source: KeysValues, allowed: Tensor | None) -> Tensor:
        """The sub-layers after self-attention, (R, T, D) -> (R, T, D)."""
        x = self.residual(1, x, lambda x: self.cross(x, *source, allowed))
        return self.residual(2, x, self.feed_forward)


@dataclass(frozen=True)
class Memory:
    """The encoded sources of a batch.

    states: (B, S, D). allowed: (B, 1, 1, S) bool, True at tokens, or None without padding.
    losses: the summed losses of the encoder's modifiers, by the name of the variant.
    """

    states: Tensor
    allowed: Tensor | None
    losses: Mapping[str, Tensor] = field(default_factory=dict)

    def of(self, sources: Tensor) -> Memory:
        """The memory of some sources, by their indices, (B',)."""
        return Memory(self.states[sources], None if self.allowed is None else self.allowed[sources])


@dataclass(frozen=True)
class PackedPrefixes:
    """Prefixes of targets in R rows of W tokens, up to K of them in each.

    positions: (R, W), the position of each token in its prefix. visible: (R, 1, W, W) bool, True
    within one prefix. newest: (R, K), the columns of the last tokens, 0 in place of missing ones.
    """

    positions: Tensor
    visible: Tensor
    newest: Tensor

    def newest_of(self, x: Tensor) -> Tensor:
        """The newest tokens of x, (R, W, D) -> (R, K, D)."""
        return x.gather(1, self.newest[..., None].expand(-1, -1, x.size(-1)))


def last_token(x: Tensor) -> Tensor:
    """(R, T, D) -> (R, 1, D)."""
    return x[:, -1:]


class Stack(nn.Module):
    """Embedding, layers, and the modifiers that act on them."""

    # Both are nn.ModuleLists, whose elements would have no type.
    layers: Sequence[Layer]
    modifiers: Sequence[Modifier]

    def __init__(
        self, embedding: Embedding, layers: Sequence[Layer], modifiers: Sequence[Modifier]
    ) -> None:
        super().__init__()
        self.embedding = embedding
        self.layers = cast(Sequence[Layer], nn.ModuleList(layers))
        self.modifiers = cast(Sequence[Modifier], nn.ModuleList(modifiers))
        norm_first = bool(layers) and layers[0].norm_first
        d_model = embedding.table.embedding_dim
        self.norm = nn.LayerNorm(d_model) if norm_first else nn.Identity()

    def loss_names(self) -> set[str]:
        """The names of the modifiers that may have a loss."""
        return {m.name for m in self.modifiers if m.overrides("loss")}

    def prepare(self, side: Side) -> list[Active]:
        """Every modifier with its state for this batch."""
        return [Active(m, m.prepare(side)) for m in self.modifiers]


def losses(active: Sequence[Active]) -> dict[str, Tensor]:
    """The losses of the modifiers that have one, summed by name."""
    sums: dict[str, Tensor] = {}
    for modifier, state in active:
        loss = modifier.loss(state)
        if loss is not None:
            sums[modifier.name] = sums.get(modifier.name, 0) + loss
    return sums


class Encoder(Stack):
    """Reads the whole source."""

    layers: Sequence[EncoderLayer]

    def __init__(self, embedding: Embedding, size: Size, modifiers: Sequence[Modifier]) -> None:
        layers = [EncoderLayer(size, i) for i in range(size.encoder_layers)]
        super().__init__(embedding, layers, modifiers)

    def forward(self, side: Side) -> Memory:
        """Encodes a batch of sources."""
        active = self.prepare(side)
        allowed = side.allowed
        x = self.embedding(side.ids, active)  # (B, S, D)
        for layer in self.layers:
            x = layer(x, allowed, layer.attention.modified_by(active))
        return Memory(self.norm(x), allowed, losses(active))

    def forward_unpadded(self, side: Side, tokens: Tokens) -> Tensor:
        """Like `forward`, but returns only the states of the N tokens, (N, D), none of padding."""
        active = self.prepare(side)
        allowed = side.allowed
        x = tokens.without_padding(self.embedding(side.ids, active))  # (N, D)
        for layer in self.layers:
            x = layer.forward_unpadded(x, tokens, allowed, layer.attention.modified_by(active))
        return self.norm(x)

    def up_to_attention(self, side: Side, n: int) -> Tensor:
        """The part of `forward` up to the attention of the n-th layer, (B, S, D).

        That is the layer's `attention_sum`, or with n = 0 the first layer's input.
        """
        active = self.prepare(side)
        allowed = side.allowed
        x = self.embedding(side.ids, active)  # (B, S, D)
        for layer in self.layers[: max(n - 1, 0)]:
            x = layer(x, allowed, layer.attention.modified_by(active))
        if not n:
            return x
        last = self.layers[n - 1]
        return last.attention_sum(x, allowed, last.attention.modified_by(active))


class Decoder(Stack):
    """Reads the target from left to right."""

    layers: Sequence[DecoderLayer]

    def __init__(self, embedding: Embedding, size: Size, modifiers: Sequence[Modifier]) -> None:
        layers = [DecoderLayer(size, i) for i in range(size.decoder_layers)]
        super().__init__(embedding, layers, modifiers)

    def keys_values(self, memory: Memory) -> list[KeysValues]:
        """Each layer's keys and values of the sources, (B, H, S, D / H)."""
        return [layer.cross.keys_values(memory.states) for layer in self.layers]

    def forward(self, side: Side, memory: Memory) -> tuple[Tensor, dict[str, Tensor]]:
        """Teacher forcing: returns (states (B, T, D), the modifiers' losses)."""
        active = self.prepare(side)
        x = self.embedding(side.ids, active)  # (B, T, D)
        past = None
        if any(one.modifier.layers for one in active):  # made once for all layers
            past = torch.ones(2 * side.ids.shape[-1:], dtype=torch.bool, device=x.device).tril()
        for layer in self.layers:
            x = layer(x, memory, layer.attention.modified_by(active), past)
        return self.norm(x), losses(active)

    def reread(self, side: Side, sources: Sequence[KeysValues], allowed: Tensor | None) -> Tensor:
        """Reads whole prefixes; every known token sees every other (Choshen and Abend 2021).

            M_ij = 0 if j <= n, else -inf        for a prefix of n tokens; section 2

        The paper prints n < j for 0: a slip. side: R prefixes of one length, (R, T), of which
        R / B consecutive ones belong to each of B sources. sources, allowed: the `keys_values`
        and the mask of these. Returns the newest tokens' states, (R, D), the only ones that are
        needed and that the last layer computes.
        """
        active = self.prepare(side)
        x = self.embedding(side.ids, active)  # (R, T, D)
        for layer, source in zip(self.layers, sources, strict=True):
            newest = layer is self.layers[-1]
            own = layer.attention.modified_by(active)
            attend = partial(layer.attention, active=own, newest=newest)
            x = layer.step(x, attend, source, allowed, last_token if newest else None)
        return self.norm(x)[:, -1]

    def reread_packed(
        self,
        side: Side,
        prefixes: PackedPrefixes,
        sources: Sequence[KeysValues],
        allowed: Tensor | None,
    ) -> Tensor:
        """Like `reread`, for prefixes of any lengths, several to a row of `side`, (R, W).

        Returns the newest tokens' states, (R, K, D).
        """
        active = self.prepare(side)
        x = self.embedding(side.ids, active, positions=prefixes.positions)  # (R, W, D)
        for layer, source in zip(self.layers, sources, strict=True):
            keep = prefixes.newest_of if layer is self.layers[-1] else None
            own = layer.attention.modified_by(active)
            x = layer.read(x, source, allowed, prefixes.visible, own, keep)
        return self.norm(x)
