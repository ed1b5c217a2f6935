"""Multi-head attention: the fast path where nothing is modified, eager where something is.

    Attention(Q, K, V) = softmax(Q K^T / sqrt(d_head)) V      Vaswani et al. (2017), eq. 1

Scores stay four-dimensional, (B, H, Tq, T), so that "the first h heads" is a slice and
cannot be confused with the batch axis.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from synmt_cli.core.model.modifier import Active, Site


def split_heads(x: Tensor, n_heads: int) -> Tensor:
    """(B, T, D) -> (B, H, T, D / H)."""
    return x.unflatten(-1, (n_heads, -1)).transpose(1, 2)


def block(scores: Tensor, allowed: Tensor | None) -> Tensor:
    """Hides positions where `allowed` is False.

    Finite, not -inf: a query may be left with nothing to see, and its NaN would reach every
    other token through 0 * NaN in A V.
    """
    if allowed is None:
        return scores
    return scores.masked_fill(~allowed, torch.finfo(scores.dtype).min)


def attention(
    qkv: tuple[Tensor, Tensor, Tensor], allowed: Tensor | None, dropout: float, causal: bool
) -> Tensor:
    """torch's fused attention. q: (B, H, Tq, D / H); k, v: (B, H, T, D / H) -> as q.

    On a CPU its backward pass in bf16 takes seven times as long as in fp32, so it is done in fp32.
    """
    q, k, v = qkv
    if q.device.type == "cpu" and torch.is_autocast_enabled("cpu"):
        with torch.autocast("cpu", enabled=False):
            return attention((q.float(), k.float(), v.float()), allowed, dropout, causal)
    return F.scaled_dot_product_attention(
        q, k, v, attn_mask=allowed, dropout_p=dropout, is_causal=causal
    )


def additive(allowed: Tensor | None, like: Tensor) -> Tensor | None:
    """A mask as numbers to add to scores, which attention would make of it at each call."""
    if allowed is None:
        return None
    return like.new_zeros(allowed.shape).masked_fill_(~allowed, -torch.inf)


def both(allowed: Tensor | None, visible: Tensor | None) -> Tensor | None:
    """What two masks allow, where None is everything."""
    if allowed is None or visible is None:
        return visible if allowed is None else allowed
    return allowed & visible


def projection(d_in: int, *d_out: int) -> nn.Linear:
    """One matrix product for several projections, each initialised as if it stood alone."""
    linear = nn.Linear(d_in, sum(d_out))
    for part in linear.weight.data.split(d_out):
        nn.init.xavier_uniform_(part)
    nn.init.zeros_(linear.bias)
    return linear


class SelfAttention(nn.Module):
    """Self-attention of one layer, with room for modifiers."""

    def __init__(self, d_model: int, n_heads: int, dropout: float, layer: int) -> None:
        super().__init__()
        self.n_heads, self.layer, self.dropout = n_heads, layer, dropout
        self.qkv = projection(d_model, d_model, d_model, d_model)
        self.out = projection(d_model, d_model)

    def project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """x: (B, T, D) -> q, k, v, each (B, H, T, D / H), by one matrix product."""
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        return tuple(split_heads(t, self.n_heads) for t in (q, k, v))  # type: ignore[return-value]

    def acting(self, active: Sequence[Active]) -> list[Active]:
        """Those of the modifiers that change this layer's attention."""
        return [a for a in active if self.layer in a.modifier.layers]

    def forward(
        self, x: Tensor, allowed: Tensor | None, causal: bool, active: Sequence[Active]
    ) -> Tensor:
        """x: (B, T, D). allowed: bool, True = may be seen, broadcasts to (B, H, T, T)."""
        return self.attend(x, self.project(x), allowed, causal, active)

    def attend(
        self,
        x: Tensor,
        qkv: tuple[Tensor, Tensor, Tensor],
        allowed: Tensor | None,
        causal: bool,
        active: Sequence[Active],
    ) -> Tensor:
        """What follows the projections; keys and values may be remembered from earlier steps.

        x: (B, Tq, D). q: (B, H, Tq, D / H); k, v: (B, H, T, D / H). causal: only if Tq = T.
        """
        q, k, _ = qkv
        here = self.acting(active)
        for modifier, state in here:
            allowed = both(allowed, modifier.visible(state, q.size(2)))
        is_eager = any(one.is_eager for one in here)
        if causal and (is_eager or allowed is not None):
            future = torch.ones(q.size(2), k.size(2), dtype=torch.bool, device=x.device).tril()
            allowed, causal = both(allowed, future), False
        if is_eager:
            context = self.modified(x, qkv, allowed, here)
        else:
            dropout = self.dropout if self.training else 0.0
            context = attention(qkv, allowed, dropout, causal)
        return self.out(context.transpose(1, 2).flatten(2))

    def modified(
        self,
        x: Tensor,
        qkv: tuple[Tensor, Tensor, Tensor],
        allowed: Tensor | None,
        active: Sequence[Active],
    ) -> Tensor:
        """The eager form with hooks. q: (B, H, Tq, D / H); k, v: (B, H, T, D / H)."""
        q, k, v = qkv
        site = Site(self.layer, x, q, k)
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))  # (B, H, Tq, T)
        for modifier, state in active:
            scores = modifier.scores(state, site, scores)
        weights = block(scores, allowed).softmax(-1)
        weights = F.dropout(weights, self.dropout, self.training)
        context = weights @ v  # (B, H, Tq, D / H)
        for modifier, state in active:
            context = modifier.context(state, site, weights, context)
        return context


class CrossAttention(nn.Module):
    """The decoder's attention to the encoder's states. No variant touches it."""

    def __init__(self, d_model: int, n_heads: int, dropout: float) -> None:
        super().__init__()
        self.n_heads, self.dropout = n_heads, dropout
        self.q, self.kv = projection(d_model, d_model), projection(d_model, d_model, d_model)
        self.out = projection(d_model, d_model)

    def keys_values(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        """memory: (B, S, D) -> k, v, each (B, H, S, D / H); once per source when decoding."""
        k, v = self.kv(memory).chunk(2, dim=-1)
        return split_heads(k, self.n_heads), split_heads(v, self.n_heads)

    def forward(self, x: Tensor, k: Tensor, v: Tensor, allowed: Tensor | None) -> Tensor:
        """x: (B, T, D) -> (B, T, D). allowed: (B, 1, 1, S) bool or None."""
        q = split_heads(self.q(x), self.n_heads)
        dropout = self.dropout if self.training else 0.0
        context = attention((q, k, v), allowed, dropout, False)
        return self.out(context.transpose(1, 2).flatten(2))
