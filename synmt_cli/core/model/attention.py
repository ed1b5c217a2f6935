"""Multi-head attention: fused where nothing happens between its steps, otherwise eager.

    Attention(Q, K, V) = softmax(Q K^T / sqrt(d_head)) V      Vaswani et al. (2017), eq. 1

Scores stay four-dimensional, (B, H, Tq, T), so that "the first h heads" is a slice and
cannot be confused with the batch axis. Eager scores are in single precision at least.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from synmt_cli.core.model import relations
from synmt_cli.core.model.modifier import Active, Dot, Site
from synmt_cli.core.model.moving import moved
from synmt_cli.core.model.projection import product, projection
from synmt_cli.core.model.relations import Related


def split_heads(x: Tensor, n_heads: int) -> Tensor:
    """(B, T, D) -> (B, H, T, D / H)."""
    return x.unflatten(-1, (n_heads, -1)).transpose(1, 2)


def join_heads(x: Tensor) -> Tensor:
    """(B, H, T, D / H) -> (B, T, D)."""
    return x.transpose(1, 2).flatten(2)


def masked(scores: Tensor, allowed: Tensor | None, read_as: torch.dtype = torch.float64) -> Tensor:
    """Hides positions where `allowed` is False. read_as: the type in which attention reads scores.

    Hidden scores are finite, not -inf: a query may be left with nothing to see, and its NaN
    would reach every other token through 0 * NaN in A V.
    """
    if allowed is None:
        return scores
    lowest = max(torch.finfo(one).min for one in (scores.dtype, read_as))
    return scores.masked_fill(~allowed, lowest)


def scaled_product(q: Tensor, k: Tensor, d_head: int | None = None) -> Tensor:
    """Q K^T / sqrt(d_head), in single precision at least, whatever autocast says.

    q: (B, H, Tq, D / H); k: (B, H, T, D / H) -> (B, H, Tq, T). d_head: D / H unless it is given.
    A score of 30 in bf16 has an error of 0.06, and its weight one of 6 %.
    """
    dtype = torch.promote_types(q.dtype, torch.float32)
    with torch.autocast(q.device.type, enabled=False):
        return q.to(dtype) @ k.to(dtype).transpose(-2, -1) / math.sqrt(d_head or q.size(-1))


def in_numbers(added: Tensor | Dot | Related | None, site: Site) -> Tensor | None:
    """`added` as numbers that broadcast to the scaled scores, (B, H, Tq, T); None adds nothing."""
    if isinstance(added, Dot):
        return scaled_product(added.q, added.k, site.q.size(-1))
    return relations.in_scores(added, site.q) if isinstance(added, Related) else added


FEW = 16  # queries at most, for which two matrix products on a CPU are faster than torch's kernel


def attention_of_few(q: Tensor, k: Tensor, v: Tensor, mask: Tensor, scale: float | None) -> Tensor:
    """Like fused_attention, for few queries in each row. mask: numbers to add to the scores.

    k, v: fastest where the vectors of a head follow each other in memory.
    """
    shape, scale = (*q.shape[:3], k.size(2)), scale or 1 / math.sqrt(q.size(-1))
    scores = mask.expand(shape).clone(memory_format=torch.contiguous_format).flatten(0, 1)
    scores.baddbmm_(q.flatten(0, 1), k.flatten(0, 1).transpose(1, 2), alpha=scale)
    return (scores.softmax(-1) @ v.flatten(0, 1)).unflatten(0, q.shape[:2])


def fused_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    allowed: Tensor | None,
    dropout: float,
    causal: bool,
    scale: float | None = None,
) -> Tensor:
    """torch's fused attention. q: (B, H, Tq, any); k: (B, H, T, as q); v: (B, H, T, D / H) ->
    (B, H, Tq, D / H).

    allowed: bool, or numbers that are added to the scores. scale: of the dot products,
    1 / sqrt(D / H) where it is None.
    On a CPU its backward pass in bf16 takes seven times as long as in fp32, so it is done in fp32.
    """
    if q.device.type == "cpu" and torch.is_autocast_enabled("cpu"):
        if allowed is not None and allowed.is_floating_point():
            allowed = allowed.float()
        with torch.autocast("cpu", enabled=False):
            return fused_attention(q.float(), k.float(), v.float(), allowed, dropout, causal, scale)
    if allowed is not None and allowed.is_floating_point():
        allowed = allowed.to(q.dtype)
        # Sizes are checked last: a compiler makes a program for each outcome.
        is_search = not (torch.is_grad_enabled() or dropout)
        is_few = is_search and q.device.type == "cpu" and q.size(2) <= FEW
        if is_few and q.size(2) * v.size(3) >= relations.LEAST:
            return attention_of_few(q, k, v, allowed, scale)
    return F.scaled_dot_product_attention(
        q, k, v, attn_mask=allowed, dropout_p=dropout, is_causal=causal, scale=scale
    )


def intersection(allowed: Tensor | None, visible: Tensor | None) -> Tensor | None:
    """The mask of what both masks allow; None allows everything."""
    if allowed is None or visible is None:
        return visible if allowed is None else allowed
    return allowed & visible


class Tokens(NamedTuple):
    """The N tokens of B rows that are padded to T tokens each.

    places: (N,), the index of each token among the B * T. source: (B * T,), which of the N tokens
    is there; in padding, the last one before it.
    """

    places: Tensor
    source: Tensor
    shape: tuple[int, int]

    @classmethod
    def of_lengths(cls, lengths: Sequence[int], width: int, device: torch.device) -> Tokens:
        """The tokens of rows of these lengths, at least 1, padded on the right to `width`."""
        known = (torch.arange(width) < torch.tensor(lengths)[:, None]).flatten()  # on the host
        places, source = known.nonzero()[:, 0], known.cumsum(0) - 1
        return cls(moved(places, device), moved(source, device), (len(lengths), width))

    def without_padding(self, x: Tensor) -> Tensor:
        """(B, T, D) -> (N, D)."""
        return x.flatten(0, 1).index_select(0, self.places)

    def padded(self, x: Tensor) -> Tensor:
        """(N, D) -> (B, T, D), with other tokens as padding."""
        return x.index_select(0, self.source).unflatten(0, self.shape)


class SelfAttention(nn.Module):
    """Self-attention of one layer, with room for modifiers."""

    def __init__(self, d_model: int, n_heads: int, dropout: float, layer: int) -> None:
        super().__init__()
        self.n_heads = n_heads
        self.dropout = dropout
        self.layer = layer
        self.qkv = projection(d_model, d_model, d_model, d_model)
        self.out = projection(d_model, d_model)

    def forward(
        self,
        x: Tensor,
        allowed: Tensor | None = None,
        causal: bool = False,
        active: Sequence[Active] = (),
        newest: bool = False,
        keep: Callable[[Tensor], Tensor] | None = None,
    ) -> Tensor:
        """x: (B, T, D) -> (B, T, D), or with `newest` the last token's row alone, (B, 1, D).

        allowed: bool, True = may be seen, broadcasts to (B, H, T, T). causal: hides the tokens
        after each query, in place of `allowed`, where no modifier acts. active: what `modified_by`
        returns. keep: selects, from (B, T, D), the tokens whose rows are wanted.
        """
        dropout = self.dropout if self.training else 0.0
        # Layers for inference (inference_linear.py) do not have weights in the order needed here.
        is_known = isinstance(self.qkv, nn.Linear) and all(one.is_only_mask for one in active)
        if keep is not None and not dropout and is_known:
            return self.out(self._context_of(keep, x, allowed, active))
        whole = self.qkv(x)  # (B, T, 3 D)
        qkv: Sequence[Tensor] = (whole,)
        if newest:
            q, k, v = whole.chunk(3, dim=-1)
            qkv, x = (q[:, -1:], k, v), x[:, -1:]  # x: (B, 1, D)
        context = self._context(x, qkv, allowed, causal, active)  # (B, Tq, D)
        return self.out(context if keep is None else keep(context))

    def forward_unpadded(
        self, x: Tensor, tokens: Tokens, allowed: Tensor | None, active: Sequence[Active]
    ) -> Tensor:
        """Like `forward`, for tokens without padding, (N, D) -> (N, D); `allowed` is the same."""
        whole = tokens.padded(self.qkv(x))  # (B, T, 3 D)
        padded = tokens.padded(x) if active else x  # read by modifiers alone
        context = self._context(padded, (whole,), allowed, False, active)
        return self.out(tokens.without_padding(context))

    def project_apart(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """x: (B, T, D) -> q, (B, T, D), and k and v side by side, (B, T, 2, D)."""
        every = self.qkv(x).unflatten(-1, (3, -1))  # (B, T, 3, D)
        return every[..., 0, :], every[..., 1:, :]

    def modified_by(self, active: Sequence[Active]) -> list[Active]:
        """The modifiers that change this layer's attention."""
        return [one for one in active if self.layer in one.modifier.layers]

    def attend(
        self,
        x: Tensor,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        allowed: Tensor | None,
        active: Sequence[Active],
    ) -> Tensor:
        """Everything after the projections; keys and values may come from earlier steps.

        x, q: (B, Tq, D), the queries' tokens. k, v: (B, T, D).
        """
        return self.out(self._context(x, (q, k, v), allowed, False, active))

    def _context_of(
        self,
        keep: Callable[[Tensor], Tensor],
        x: Tensor,
        allowed: Tensor | None,
        active: Sequence[Active],
    ) -> Tensor:
        """Like `_context`, for the K tokens that `keep` selects, which have to be few.

        Keys and values of the T tokens are not computed, since products can be taken in another
        order: for one head, with A the weights,

            q (x W_k + b_k)^T = (q W_k^T) x^T + a number for each query, which softmax ignores
            A (x W_v + b_v)   = (A x) W_v + b_v

        so that a token costs 2 H K D multiplications and not 2 D^2. In single precision at least.
        x: (B, T, D) -> (B, K, D). active: modifiers that change nothing but the mask. This order
        does not allow dropout of weights, which then do not sum to 1.
        """
        for modifier, state in active:
            allowed = intersection(allowed, modifier.visible(state, x.size(1)))
        if allowed is not None:
            of_query = allowed.expand(x.size(0), -1, x.size(1), -1).transpose(1, 2)
            allowed = keep(of_query.flatten(2)).unflatten(2, of_query.shape[2:]).transpose(1, 2)
            allowed = allowed.expand(-1, self.n_heads, -1, -1).flatten(1, 2)[:, None]
        (w_q, w_k, w_v), (b_q, _, b_v) = self.qkv.weight.chunk(3), self.qkv.bias.chunk(3)
        q = product(keep(x), w_q, b_q).unflatten(-1, (self.n_heads, -1))  # (B, K, H, D / H)
        dtype = torch.promote_types(x.dtype, torch.float32)
        with torch.autocast(x.device.type, enabled=False):
            x, q, w_k, w_v = (t.to(dtype) for t in (x, q, w_k, w_v))
            w_k, w_v = (w.unflatten(0, (self.n_heads, -1)) for w in (w_k, w_v))  # (H, D / H, D)
            mean = F.scaled_dot_product_attention(
                torch.einsum("bkhd,hde->bhke", q, w_k).flatten(1, 2)[:, None],  # (B, 1, H K, D)
                x[:, None],
                x[:, None],
                attn_mask=allowed,
                scale=1 / math.sqrt(q.size(-1)),
            )
            mean = mean[:, 0].unflatten(1, (self.n_heads, -1))  # (B, H, K, D)
            context = torch.einsum("bhke,hde->bkhd", mean, w_v).flatten(2) + b_v
            return context.to(self.out.weight.dtype)

    def _context(
        self,
        x: Tensor,
        qkv: Sequence[Tensor],
        allowed: Tensor | None,
        causal: bool,
        active: Sequence[Active],
    ) -> Tensor:
        """qkv: q (B, Tq, D), k, v (B, T, D); or all in one (B, T, 3 D). Returns (B, Tq, D)."""
        parts = qkv if len(qkv) == 3 else qkv[0].chunk(3, dim=-1)
        q, k, v = (split_heads(t, self.n_heads) for t in parts)  # (B, H, Tq or T, D / H)
        dropout = self.dropout if self.training else 0.0
        if not active:
            return join_heads(fused_attention(q, k, v, allowed, dropout, causal))
        if causal:
            raise ValueError("modifiers need the mask of a causal layer")
        for modifier, state in active:
            allowed = intersection(allowed, modifier.visible(state, q.size(2)))
        site = Site(self.layer, x, q, k)
        if any(one.is_eager for one in active):
            return join_heads(self._eager_attention(site, v, allowed, active))
        return self._fused_attention(site, v, qkv, allowed, dropout, active)

    def _fused_attention(
        self,
        site: Site,
        v: Tensor,
        qkv: Sequence[Tensor],
        allowed: Tensor | None,
        dropout: float,
        active: Sequence[Active],
    ) -> Tensor:
        """Attention in one or a few kernels, with what modifiers add. v: (B, H, T, D / H)."""
        q, k, numbers = site.q, site.k, None
        related = [modifier.related(state, site.layer) for modifier, state in active]
        tables = [one for one in related if one is not None]
        for modifier, state in active:
            added = modifier.added(state, site)
            if isinstance(added, Dot) and not tables:
                q, k = torch.cat((q, added.q), dim=-1), torch.cat((k, added.k), dim=-1)
            elif (own := in_numbers(added, site)) is not None:
                numbers = own if numbers is None else numbers + own
        if tables:
            return relations.attention(
                qkv, self.n_heads, allowed, dropout, tables, numbers, v.dtype
            )
        if numbers is not None:
            allowed = masked(numbers, allowed, q.dtype)
        scale = 1 / math.sqrt(site.q.size(-1))
        return join_heads(fused_attention(q, k, v, allowed, dropout, False, scale))

    def _eager_attention(
        self, site: Site, v: Tensor, allowed: Tensor | None, active: Sequence[Active]
    ) -> Tensor:
        """softmax(Q K^T / sqrt(d_head)) V with hooks. v: (B, H, T, D / H) -> (B, H, Tq, D / H)."""
        scores = scaled_product(site.q, site.k)  # (B, H, Tq, T)
        for modifier, state in active:
            for added in (modifier.added(state, site), modifier.related(state, site.layer)):
                if added is not None:
                    own = in_numbers(added, site)
                    scores = scores if own is None else scores + own
            scores = modifier.scores(state, site, scores)
        weights = masked(scores, allowed).softmax(-1)  # (B, H, Tq, T)
        weights = F.dropout(weights, self.dropout, self.training).to(v.dtype)
        context = weights @ v  # (B, H, Tq, D / H)
        for modifier, state in active:
            related = modifier.related(state, site.layer)
            mixed = None if related is None else relations.in_context(related, weights)
            context = context if mixed is None else context + mixed.to(context.dtype)
            context = modifier.context(state, site, weights, context)
        return context


KeysValues = tuple[Tensor, Tensor]


class CrossAttention(nn.Module):
    """The decoder's attention to the encoder's states. No variant changes it."""

    def __init__(self, d_model: int, n_heads: int, dropout: float) -> None:
        super().__init__()
        self.n_heads = n_heads
        self.dropout = dropout
        self.q = projection(d_model, d_model)
        self.kv = projection(d_model, d_model, d_model)
        self.out = projection(d_model, d_model)

    def keys_values(self, memory: Tensor) -> KeysValues:
        """memory: (B, S, D) -> k, v, each (B, H, S, D / H); once per source when decoding."""
        k, v = self.kv(memory).chunk(2, dim=-1)  # (B, S, D) each
        return split_heads(k, self.n_heads), split_heads(v, self.n_heads)

    def keys_values_of(self, memory: Tensor, tokens: Tokens) -> Tensor:
        """memory: (N, D), without padding -> k and v, (B, S, 2, H, D / H)."""
        return tokens.padded(self.kv(memory)).unflatten(-1, (2, self.n_heads, -1))

    def forward(self, x: Tensor, k: Tensor, v: Tensor, allowed: Tensor | None) -> Tensor:
        """x: (R, T, D) -> (R, T, D); R / B consecutive targets attend to each of B sources.

        allowed: (B, 1, 1, S), True = may be seen, or as numbers to add, or None.
        """
        q = self.q(x).view(len(k), -1, x.size(-1))  # (B, R / B * T, D)
        dropout = self.dropout if self.training else 0.0
        context = fused_attention(split_heads(q, self.n_heads), k, v, allowed, dropout, False)
        return self.out(join_heads(context)).view_as(x)  # (R, T, D)
