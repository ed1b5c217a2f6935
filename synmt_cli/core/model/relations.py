"""Attention with a learned vector for the relation of each pair of tokens, in few launches.

    e_ij = q_i . (k_j + w^K[r_ij]) / sqrt(d_head)            Shaw et al. (2018), eq. 4
    z_i  = sum_j alpha_ij (v_j + w^V[r_ij])                  eq. 3

There are few relations, R, so each query is multiplied with all their vectors once, and each pair
picks its product; the weights are summed over the pairs of each relation, and the sums mix the
vectors: (B, H, Tq, R), never (B, T, T, d_head). Several relations of a pair add up.

Picking and summing are each other's gradient. Sums are in single precision at least, and in an
order that is always the same: where kernels add in any order (on a GPU), the pairs of a query are
sorted by relation once for each batch, and a segment is summed by one thread.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

aten = torch.ops.aten


@dataclass(frozen=True, slots=True)
class Rows:
    """The relation of each pair as a row of a table. n: how many rows the table has.

    n_heads: H, of the layers that use it.
    index: (B or 1, Tq, T). order: the positions that sort it, None where it is sorted. bounds:
    where the sorted rows begin and end, (B, H, Tq, n + 1), None where kernels add in order.
    """

    index: Tensor
    n: int
    n_heads: int
    order: Tensor | None = None
    bounds: Tensor | None = None

    @classmethod
    def of(
        cls, index: Tensor, n: int, n_sentences: int, n_heads: int, is_rising: bool = False
    ) -> Rows:
        """index: (B or 1, T, T), of n_sentences = B. is_rising: from each position to the next."""
        if index.device.type == "cpu":
            return cls(index, n, n_heads)
        return cls.in_order(index, n, n_sentences, n_heads, is_rising)

    @classmethod
    def in_order(
        cls, index: Tensor, n: int, n_sentences: int, n_heads: int, is_rising: bool = False
    ) -> Rows:
        """As `of`, for kernels that would add in any order."""
        rows, order = index, None
        if not is_rising:
            rows, order = index.sort(stable=True, dim=-1)  # (B or 1, T, T)
        every = torch.arange(n + 1, device=index.device).expand(*index.shape[:2], n + 1)
        bounds = torch.searchsorted(rows, every.contiguous())[:, None]  # (B or 1, 1, T, n + 1)
        whole = bounds.expand(n_sentences, n_heads, -1, -1).contiguous()
        return cls(index, n, n_heads, order, whole)

    def of_queries(self, n_queries: int) -> Rows:
        """Those of the last tokens alone."""
        if n_queries == self.index.size(1):
            return self
        order = None if self.order is None else self.order[:, -n_queries:]
        bounds = None if self.bounds is None else self.bounds[:, :, -n_queries:].contiguous()
        return Rows(self.index[:, -n_queries:], self.n, self.n_heads, order, bounds)

    def picked(self, by_row: Tensor) -> Tensor:
        """by_row: (B, H, Tq, n) -> the number of each pair's relation, (B, H, Tq, T)."""
        index = self.index[:, None].expand(*by_row.shape[:2], -1, -1)
        return by_row.gather(-1, index)

    def sums(self, x: Tensor) -> Tensor:
        """x: (B, H, Tq, T) -> the sum over the pairs of each relation, (B, H, Tq, n)."""
        if self.bounds is None:
            index = self.index[:, None].expand_as(x)
            return x.new_zeros(*x.shape[:-1], self.n).scatter_add_(-1, index, x)
        by_relation = x
        if self.order is not None:
            by_relation = x.gather(-1, self.order[:, None].expand_as(x))
        return torch.segment_reduce(
            by_relation, "sum", offsets=self.bounds, axis=3, unsafe=True, initial=0
        )


@dataclass(frozen=True, slots=True)
class Related:
    """What one modifier adds to keys and values: tables of (rows.n, d_head), or None."""

    rows: Rows
    key: Tensor | None
    value: Tensor | None


def in_scores(one: Related, q: Tensor) -> Tensor | None:
    """q_i . w^K[r_ij] / sqrt(d_head), for attention in steps. q: (B, H, Tq, D / H).

    Returns (B, H, Tq, T), in single precision at least, or None without such vectors.
    """
    if one.key is None:
        return None
    rows, dtype = one.rows.of_queries(q.size(2)), _exact(q)
    with torch.autocast(q.device.type, enabled=False):
        by_row = q.to(dtype) @ one.key.to(dtype).T / math.sqrt(q.size(-1))  # (B, H, Tq, n)
        picked: Tensor = _Picked.apply(by_row, rows)
    return picked


def in_context(one: Related, weights: Tensor) -> Tensor | None:
    """sum_j alpha_ij w^V[r_ij], for attention in steps. weights: (B, H, Tq, T).

    Returns (B, H, Tq, D / H), in single precision at least, or None without such vectors.
    """
    if one.value is None:
        return None
    rows, dtype = one.rows.of_queries(weights.size(2)), _exact(weights)
    with torch.autocast(weights.device.type, enabled=False):
        sums: Tensor = _Summed.apply(weights.to(dtype), rows)
        return sums @ one.value.to(dtype)


class _Picked(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, by_row: Tensor, rows: Rows) -> Tensor:
        ctx.rows = rows
        return rows.picked(by_row)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return ctx.rows.sums(gradients[0].contiguous()), None


class _Summed(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, rows: Rows) -> Tensor:
        ctx.rows = rows
        return rows.sums(x)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return ctx.rows.picked(gradients[0]), None


class Around(NamedTuple):
    """What attention is computed with, besides queries, keys, values and tables.

    rows: of each modifier. allowed: bool, broadcasts to (B, H, Tq, T). dropout: of the weights.
    """

    rows: Sequence[Rows]
    allowed: Tensor | None
    dropout: float


def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    allowed: Tensor | None,
    dropout: float,
    related: Sequence[Related],
    added: Tensor | None = None,
) -> Tensor:
    """q: (B, H, Tq, D / H); k, v: (B, H, T, D / H) -> as q, in single precision at least.

    allowed: bool, broadcasts to (B, H, Tq, T). added: numbers added to the scaled scores.
    """
    tables = [table for one in related for table in (one.key, one.value)]
    around = Around([one.rows.of_queries(q.size(2)) for one in related], allowed, dropout)
    with torch.autocast(q.device.type, enabled=False):
        out: Tensor = _Attention.apply(around, q, k, v, added, *tables)
    return out


@functools.cache
def _lowest(dtype: torch.dtype, device: torch.device) -> Tensor:
    """The score of what is hidden, as a tensor: `where` would fill one with a number each time."""
    with torch.inference_mode(False):
        return torch.full((), torch.finfo(dtype).min, dtype=dtype, device=device)


def _exact(x: Tensor) -> torch.dtype:
    """Single precision at least."""
    return torch.promote_types(x.dtype, torch.float32)


def _flat(q: Tensor, k: Tensor, v: Tensor) -> Sequence[Tensor]:
    """(B, H, Tq or T, D) each -> (B * H, Tq or T, D), in single precision at least."""
    if q.shape == k.shape:  # one copy
        return torch.stack((q, k, v)).to(_exact(q)).flatten(1, 2).unbind()
    return [x.to(_exact(x)).flatten(0, 1) for x in (q, k, v)]


def _unflattened(
    gradients: Sequence[Tensor], n_sentences: int, dtypes: Sequence[torch.dtype]
) -> Sequence[Tensor]:
    """(B * H, T, D) each -> (B, H, T, D), laid out so that heads are joined without a copy."""
    split = [d.unflatten(0, (n_sentences, -1)).transpose(1, 2) for d in gradients]  # (B, T, H, D)
    if split[0].shape == split[1].shape:  # one copy
        joined = torch.stack(split, dim=2).to(dtypes[0])  # (B, T, 3, H, D)
        return [d.transpose(1, 2) for d in joined.unbind(2)]
    return [d.transpose(1, 2).to(dtype) for d, dtype in zip(split, dtypes, strict=True)]


def _picked(around: Around, q: Tensor, tables: Sequence[Tensor | None]) -> Tensor | None:
    """The sum over modifiers of each query's product with the vector of each pair's relation.

    q: (B * H, Tq, D / H). tables: (n, D / H) each. Returns (B * H, Tq, T), or None without any.
    """
    total: Tensor | None = None
    for one, table in zip(around.rows, tables, strict=True):
        if table is not None:
            by_row = q.flatten(0, 1) @ table.to(q.dtype).T  # (B * H * Tq, n)
            picked = one.picked(by_row.view(-1, one.n_heads, q.size(1), one.n))  # (B, H, Tq, T)
            total = picked if total is None else total.add_(picked)
    return None if total is None else total.flatten(0, 1)


def _mixed(sums: Sequence[Tensor | None], tables: Sequence[Tensor | None]) -> Tensor | None:
    """The sum over modifiers of their vectors, mixed by the weights of their relations.

    sums: (B * H * Tq, n) each. Returns (B * H * Tq, D / H), or None without any.
    """
    total: Tensor | None = None
    for mass, table in zip(sums, tables, strict=True):
        if mass is not None and table is not None:
            vectors = table.to(mass.dtype)
            total = mass @ vectors if total is None else total.addmm_(mass, vectors)
    return total


class _Attention(torch.autograd.Function):
    """Tables come in pairs, keys' and values', each (n, D / H) or None."""

    @staticmethod
    def forward(
        ctx: Any,
        around: Around,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        added: Tensor | None,
        *tables: Tensor | None,
    ) -> Tensor:
        shape = *q.shape[:3], k.size(2)  # B, H, Tq, T
        ctx.around, ctx.n_tables, ctx.dtypes = around, len(tables), (q.dtype, k.dtype, v.dtype)
        ctx.added = None if added is None else (added.shape, added.dtype)
        ctx.scale = scale = 1 / math.sqrt(q.size(-1))
        q, k, v = _flat(q, k, v)  # (B * H, Tq or T, D / H)
        before = _picked(around, q, tables[::2])  # what is added to q . k, unscaled
        if added is not None:
            numbers = (added.to(q.dtype) / scale).expand(shape).flatten(0, 1)
            before = numbers if before is None else before + numbers
        start, beta = (q.new_empty(1), 0.0) if before is None else (before, scale)
        scores = torch.baddbmm(start, q, k.transpose(1, 2), beta=beta, alpha=scale).view(shape)
        if around.allowed is not None:
            scores = torch.where(around.allowed, scores, _lowest(scores.dtype, scores.device))
        weights = dropped = scores.softmax(-1)  # (B, H, Tq, T)
        kept = None
        if around.dropout:
            dropped, kept = torch.native_dropout(weights, around.dropout, True)
        sums = [
            None if table is None else one.sums(dropped).flatten(0, 2)  # (B * H * Tq, n)
            for one, table in zip(around.rows, tables[1::2], strict=True)
        ]
        ctx.save_for_backward(q, k, v, weights, kept, *tables, *sums)
        mixed, flat = _mixed(sums, tables[1::2]), dropped.flatten(0, 1)
        context = flat @ v if mixed is None else torch.baddbmm(mixed.view_as(q), flat, v)
        return context.view(*shape[:3], -1)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        with torch.autocast(gradients[0].device.type, enabled=False):
            return _backward(ctx, gradients[0])


def _backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
    q, k, v, weights, kept, *rest = ctx.saved_tensors
    tables, sums, around = rest[: ctx.n_tables], rest[ctx.n_tables :], ctx.around
    d_context = gradient.to(q.dtype).reshape(q.shape)  # (B * H, Tq, D / H)
    picked, v_t = _picked(around, d_context, tables[1::2]), v.transpose(1, 2)
    d_weights = d_context @ v_t if picked is None else torch.baddbmm(picked, d_context, v_t)
    d_weights, dropped = d_weights.view(weights.shape), weights
    if kept is not None:
        factor = 1 / (1 - around.dropout) if around.dropout < 1 else 0.0
        dropped = weights * kept * factor
        d_weights = aten.native_dropout_backward(d_weights, kept, factor)
    d_scores = aten._softmax_backward_data(d_weights, weights, -1, weights.dtype)
    flat, nothing = d_scores.flatten(0, 1), q.new_empty(1)  # (B * H, Tq, T)
    scaled = {"beta": 0, "alpha": ctx.scale}
    d_q = torch.baddbmm(nothing, flat, k, **scaled)
    d_k = torch.baddbmm(nothing, flat.transpose(1, 2), q, **scaled)
    d_v = dropped.flatten(0, 1).transpose(1, 2) @ d_context
    d_tables: list[Tensor | None] = [None] * len(tables)
    for i, (one, key, mass) in enumerate(zip(around.rows, tables[::2], sums, strict=True)):
        if key is not None:
            by_row = one.sums(d_scores).flatten(0, 2)  # (B * H * Tq, n)
            d_q.flatten(0, 1).addmm_(by_row, key.to(q.dtype), alpha=ctx.scale)
            d_key = torch.addmm(nothing, by_row.T, q.flatten(0, 1), **scaled)
            d_tables[2 * i] = d_key.to(key.dtype)
        if mass is not None:
            d_tables[2 * i + 1] = (mass.T @ d_context.flatten(0, 1)).to(tables[2 * i + 1].dtype)
    d_added = None
    if ctx.added is not None:
        shape, dtype = ctx.added
        d_added = d_scores.sum_to_size(shape).to(dtype)
    heads = _unflattened((d_q, d_k, d_v), weights.size(0), ctx.dtypes)
    return None, *heads, d_added, *d_tables
