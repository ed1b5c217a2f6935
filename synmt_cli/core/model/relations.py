"""Attention with a learned vector for the relation of each pair of tokens, in few kernel launches.

    e_ij = q_i . (k_j + w^K[r_ij]) / sqrt(d_head)            Shaw et al. (2018), eq. 4
    z_i  = sum_j alpha_ij (v_j + w^V[r_ij])                  eq. 3

There are few relations, R, so each query is multiplied by all their vectors once, and each pair
picks its product; the weights are summed over the pairs of each relation, and the sums mix the
vectors: (B, H, Tq, R), never (B, T, T, d_head). Several relations of a pair add up.

Picking and summing are each other's gradient. Sums are in single precision at least, and in an
order that is always the same: where kernels add in any order (on a GPU), the pairs of a query are
sorted by relation once for each batch, and a segment is summed by one thread.

The tables of several modifiers are joined into one, in which the vectors of one modifier follow
those of the other: one product, one pick and one sum for all. A pair that a mask hides picks an
extra row there, whose product is the lowest number.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor

aten = torch.ops.aten

# The fewest numbers in the queries of a head that torch multiplies, with at least 16 keys: it
# computes products of fewer than 400 numbers in a loop that rounds differently, so that wider
# padding would change results.
LEAST = 25


T = TypeVar("T")
Made = dict[Any, Any]


def once(made: Made, key: object, make: Callable[[], T]) -> T:
    """Returns what `make` returned at the first call, kept in `made` for the other layers.

    key: a number or a name; any other object is known by its identity, and kept, so that no other
    object gets its id.
    """
    place = key if isinstance(key, int | str) else id(key)
    if place not in made:
        made[place] = make(), key
    result: T = made[place][0]
    return result


@dataclass(frozen=True, slots=True)
class Rows:
    """The relations of each pair as rows of a table. n: how many rows the table has.

    index: (B or 1, Tq, P * T), the row of each pair for each of P modifiers, side by side.
    n_heads: H, in the layers that use them. order: the positions that sort `index` within each
    query, None where it is sorted. bounds: where the sorted rows begin and end,
    (B, H, Tq, n + 1), None where kernels add in order.
    """

    index: Tensor
    n: int
    n_heads: int
    order: Tensor | None = None
    bounds: Tensor | None = None
    n_parts: int = 1
    made: Made = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(
        cls, index: Tensor, n: int, n_sentences: int, n_heads: int, is_rising: bool = False
    ) -> Rows:
        """index: (B or 1, T, T). n_sentences: B. is_rising: rows never fall along a query."""
        if index.device.type == "cpu":
            return cls(index, n, n_heads)
        return cls.in_order(index, n, n_sentences, n_heads, is_rising)

    @classmethod
    def in_order(
        cls, index: Tensor, n: int, n_sentences: int, n_heads: int, is_rising: bool = False
    ) -> Rows:
        """Like `of`, for kernels that would add in any order."""
        rows, order = index, None
        if not is_rising:
            rows, order = index.sort(stable=True, dim=-1)  # (B or 1, T, T)
        every = torch.arange(n + 1, device=index.device).expand(*index.shape[:2], n + 1)
        bounds = torch.searchsorted(rows, every.contiguous())[:, None]  # (B or 1, 1, T, n + 1)
        whole = bounds.expand(n_sentences, n_heads, -1, -1).contiguous()
        return cls(index, n, n_heads, order, whole)

    def of_queries(self, n_queries: int) -> Rows:
        """The rows of the last n_queries tokens alone."""
        if n_queries == self.index.size(1):
            return self

        def last() -> Rows:
            order = None if self.order is None else self.order[:, -n_queries:]
            bounds = None if self.bounds is None else self.bounds[:, :, -n_queries:].contiguous()
            index = self.index[:, -n_queries:]
            return Rows(index, self.n, self.n_heads, order, bounds, self.n_parts)

        return once(self.made, n_queries, last)

    def in_slots(self, slots: Tensor, n_slots: int) -> Rows:
        """The rows of the last tokens of B * K prefixes, as K queries to the slots of B sources.

        slots: (B, K, T), the slot of each of the T tokens, or n_slots for none. A slot without a
        token of the query gets row 0, since a mask hides it.
        """

        def moved() -> Rows:
            newest = self.index[:, -1].expand(slots.shape[:2].numel(), -1).view_as(slots)
            index = newest.new_zeros(*slots.shape[:2], n_slots + 1).scatter_(2, slots, newest)
            return Rows.of(index[..., :n_slots], self.n, len(slots), self.n_heads)

        return once(self.made, slots, moved)

    def beside(self, other: Rows) -> Rows:
        """Both side by side, for a table in which the rows of `other` follow these."""
        index, order, bounds = _beside(self.index, other.index + self.n), None, None
        if self.bounds is not None and other.bounds is not None:
            begin = self.index.size(-1)
            order = _beside(self._order(), other._order())
            bounds = torch.cat((self.bounds, other.bounds[..., 1:] + begin), dim=-1)
        n_parts = self.n_parts + other.n_parts
        return Rows(index, self.n + other.n, self.n_heads, order, bounds, n_parts)

    def _order(self) -> Tensor:
        if self.order is not None:
            return self.order
        return torch.arange(self.index.size(-1), device=self.index.device).expand_as(self.index)

    def picked(self, by_row: Tensor, allowed: Tensor | None = None) -> Tensor:
        """by_row: (B, H, Tq, n) -> the sum of the numbers that each pair picks, (B, H, Tq, T).

        allowed: bool, broadcasts to (B, 1, Tq, T); by_row then has one more number, for the pairs
        that are not allowed.
        """
        index = (self.index[:, None] if allowed is None else self._hidden(allowed)).expand(
            *by_row.shape[:2], -1, -1
        )
        if self.n_parts == 1:
            return by_row.gather(-1, index)
        if self.bounds is not None:
            return by_row.gather(-1, index).unflatten(-1, (self.n_parts, -1)).sum(-2)
        first, *others = index.chunk(self.n_parts, dim=-1)
        total = by_row.gather(-1, first)
        for one in others:
            total += by_row.gather(-1, one)
        return total

    def _hidden(self, allowed: Tensor) -> Tensor:
        """The index with row n for the pairs that are not allowed, (B or 1, 1, Tq, P * T)."""

        def hidden() -> Tensor:
            index = self.index[:, None]
            first, *others = index.chunk(self.n_parts, dim=-1)  # (B or 1, 1, Tq, T) each
            first = torch.where(allowed, first, self.n)
            if others:  # the lowest number once is enough
                first = torch.cat([first, *(x.expand_as(first) for x in others)], dim=-1)
            return first

        return once(self.made, allowed, hidden)

    def sums(self, x: Tensor) -> Tensor:
        """x: (B, H, Tq, T) -> the sum over the pairs of each relation, (B, H, Tq, n)."""
        if self.bounds is None:
            total = x.new_zeros(*x.shape[:-1], self.n)
            for index in self.index[:, None].chunk(self.n_parts, dim=-1):
                total.scatter_add_(-1, index.expand_as(x), x)
            return total
        by_relation = x
        if self.order is not None:
            by_relation = x.gather(-1, self.order[:, None].expand(*x.shape[:2], -1, -1))
        return torch.segment_reduce(
            by_relation, "sum", offsets=self.bounds, axis=3, unsafe=True, initial=0
        )


def _beside(one: Tensor, other: Tensor) -> Tensor:
    """(B or 1, Tq, T) each -> (B or 1, Tq, 2 T)."""
    n = max(one.size(0), other.size(0))
    return torch.cat((one.expand(n, -1, -1), other.expand(n, -1, -1)), dim=-1)


@dataclass(frozen=True, slots=True)
class Table:
    """Vectors of relations in each layer, (layers, rows.n, d_head)."""

    rows: Rows
    vectors: Tensor
    made: Made = field(default_factory=dict, repr=False, compare=False)

    def of(self, layer: int) -> Tensor:
        """The vectors of one layer, (rows.n, d_head)."""
        return once(self.made, "layers", self.vectors.unbind)[layer]

    def beside(self, other: Table) -> Table:
        """One table of both, in which the rows of `other` follow these."""

        def joined() -> Table:
            vectors = torch.cat((self.vectors, other.vectors), dim=1)
            return Table(self.rows.beside(other.rows), vectors)

        return once(self.made, other, joined)

    def in_slots(self, slots: Tensor, n_slots: int) -> Table:
        """The same vectors, picked by the rows of `Rows.in_slots`."""

        def moved() -> Table:
            return Table(self.rows.in_slots(slots, n_slots), self.vectors)

        return once(self.made, slots, moved)

    def with_hidden(self, layer: int) -> Tensor:
        """The vectors of one layer, detached, and a row of zeros for pairs that are hidden."""

        def with_hidden() -> Sequence[Tensor]:
            return F.pad(self.vectors.detach(), (0, 0, 0, 1)).unbind()

        return once(self.made, "hidden", with_hidden)[layer]


class Related(NamedTuple):
    """The tables whose vectors one modifier adds to keys and values in a layer; None adds none."""

    key: Table | None
    value: Table | None
    layer: int

    def in_slots(self, slots: Tensor, n_slots: int) -> Related:
        """The same for both tables: see `Table.in_slots`."""
        key, value = (
            t if t is None else t.in_slots(slots, n_slots) for t in (self.key, self.value)
        )
        return Related(key, value, self.layer)


def in_scores(one: Related, q: Tensor) -> Tensor | None:
    """q_i . w^K[r_ij] / sqrt(d_head), for eager attention. q: (B, H, Tq, D / H).

    Returns (B, H, Tq, T), in single precision at least, or None if there are no w^K.
    """
    if one.key is None:
        return None
    rows, dtype = one.key.rows.of_queries(q.size(2)), _exact(q)
    with torch.autocast(q.device.type, enabled=False):
        vectors = one.key.of(one.layer).to(dtype)
        by_row = q.to(dtype) @ vectors.T / math.sqrt(q.size(-1))  # (B, H, Tq, n)
        picked: Tensor = _Picked.apply(by_row, rows)
    return picked


def in_context(one: Related, weights: Tensor) -> Tensor | None:
    """sum_j alpha_ij w^V[r_ij], for eager attention. weights: (B, H, Tq, T).

    Returns (B, H, Tq, D / H), in single precision at least, or None if there are no w^V.
    """
    if one.value is None:
        return None
    rows, dtype = one.value.rows.of_queries(weights.size(2)), _exact(weights)
    with torch.autocast(weights.device.type, enabled=False):
        sums: Tensor = _Summed.apply(weights.to(dtype), rows)
        return sums @ one.value.of(one.layer).to(dtype)


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
    """The other inputs of attention, besides queries, keys, values and vectors.

    n_heads: H. key, value: the rows of their tables. shown: the table of keys with an extra row
    for hidden pairs, None where `allowed` masks the scores instead. allowed: bool, broadcasts to
    (B, H, Tq, T). dropout: of the weights. dtype: of the result.
    """

    n_heads: int
    key: Rows | None
    value: Rows | None
    shown: Tensor | None
    allowed: Tensor | None
    dropout: float
    dtype: torch.dtype


def attention(
    qkv: Sequence[Tensor],
    n_heads: int,
    allowed: Tensor | None,
    dropout: float,
    related: Sequence[Related],
    added: Tensor | None = None,
    dtype: torch.dtype | None = None,
) -> Tensor:
    """qkv: q (B, Tq, D), k, v (B, T, D); or all in one (B, T, 3 D), which is faster.

    Without gradients, heads may be split already: q (B, H, Tq, D / H), k, v (B, H, T, D / H).
    allowed: bool, broadcasts to (B, H, Tq, T). added: numbers added to the scaled scores. Returns
    (B, Tq, D), computed in single precision at least and converted to `dtype`.
    """
    n_queries, layer = qkv[0].size(-2), related[0].layer
    key, value = (_joined(tables) for tables in zip(*(one[:2] for one in related), strict=True))
    key_rows, value_rows = (t if t is None else t.rows.of_queries(n_queries) for t in (key, value))
    shown = None
    if key is not None and allowed is not None and _is_hidden_in_rows(key.rows, allowed):
        shown = key.with_hidden(layer)
    around = Around(n_heads, key_rows, value_rows, shown, allowed, dropout, dtype or _exact(qkv[0]))
    vectors = (t if t is None else t.of(layer) for t in (key, value))
    with torch.autocast(qkv[0].device.type, enabled=False):
        out: Tensor = _Attention.apply(around, added, *vectors, *qkv)
    return out


def _joined(tables: Sequence[Table | None]) -> Table | None:
    """The tables as one, or None if there are none."""
    some = [one for one in tables if one is not None]
    return functools.reduce(Table.beside, some) if some else None


def _is_hidden_in_rows(rows: Rows, allowed: Tensor) -> bool:
    """Whether picking applies this mask: only if heads share it, and where launches count."""
    return rows.bounds is not None and (allowed.dim() < 3 or allowed.size(-3) == 1)


@functools.cache
def _lowest(dtype: torch.dtype, device: torch.device) -> Tensor:
    """The score of hidden pairs, as a tensor: `where` would make one of a number each time."""
    with torch.inference_mode(False):
        return torch.full((), torch.finfo(dtype).min, dtype=dtype, device=device)


@functools.cache
def _lowest_last(n: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """n zeros and the lowest number."""
    with torch.inference_mode(False):
        return F.pad(
            torch.zeros(n, dtype=dtype, device=device), (0, 1), value=torch.finfo(dtype).min
        )


def _exact(x: Tensor) -> torch.dtype:
    """The type of x, or single precision if that is more."""
    return torch.promote_types(x.dtype, torch.float32)


def _flat(qkv: Sequence[Tensor], n_heads: int) -> Sequence[Tensor]:
    """q, k and v, (B * H, Tq or T, D / H) each, in single precision at least."""
    dtype = _exact(qkv[0])
    if qkv[0].dim() == 4:  # in heads already
        return [x.to(dtype).flatten(0, 1) for x in qkv]
    if len(qkv) > 1:
        split = (x.unflatten(-1, (n_heads, -1)).transpose(1, 2) for x in qkv)
        return [x.to(dtype).flatten(0, 1) for x in split]
    split = qkv[0].unflatten(-1, (3, n_heads, -1)).permute(2, 0, 3, 1, 4)  # (3, B, H, T, D / H)
    return _copied(split, dtype).flatten(1, 2).unbind()


def _copied(x: Tensor, dtype: torch.dtype) -> Tensor:
    """A contiguous copy of x in another type, in one launch."""
    return x.to(dtype, memory_format=torch.contiguous_format, copy=True)


def _by_row(x: Tensor, vectors: Tensor, n_heads: int, last: Tensor | None = None) -> Tensor:
    """The products of x, (B * H, Tq, D / H), and all n vectors: (B, H, Tq, n).

    last: (n,), is added to them.
    """
    flat, columns = x.flatten(0, 1), vectors.to(x.dtype).T
    products = flat @ columns if last is None else torch.addmm(last, flat, columns)
    return products.view(-1, n_heads, x.size(1), products.size(-1))


def _dots(q: Tensor, k: Tensor, factor: float, x: Tensor | None) -> Tensor:
    """factor * (x + q k^T), in place of x. q: (N, Tq, D / H). k: (N, T, D / H). x: (N, Tq, T)."""
    if q.size(1) * q.size(2) < LEAST:
        dots = (q[:, :, None] * k[:, None]).sum(-1)
        return (dots if x is None else x.add_(dots)).mul_(factor)
    if x is None:
        return torch.baddbmm(q.new_empty(1), q, k.transpose(1, 2), beta=0, alpha=factor)
    return x.baddbmm_(q, k.transpose(1, 2), beta=factor, alpha=factor)


def _mixture(weights: Tensor, v: Tensor, x: Tensor | None = None) -> Tensor:
    """x + weights v, in place of x, (N, Tq, D / H). weights: (N, Tq, T). v: (N, T, D / H)."""
    if weights.size(1) * v.size(2) < LEAST:
        mixture = (weights[..., None] * v[:, None]).sum(2)
        return mixture if x is None else x.add_(mixture)
    return weights @ v if x is None else x.baddbmm_(weights, v)


class _Attention(torch.autograd.Function):
    """Computes `attention`. key, value: vectors, (n, D / H), or None. The rest is as there."""

    @staticmethod
    def forward(
        ctx: Any,
        around: Around,
        added: Tensor | None,
        key: Tensor | None,
        value: Tensor | None,
        *qkv: Tensor,
    ) -> Tensor:
        n_heads, rows = around.n_heads, around.key
        ctx.around, ctx.dtypes = around, [x.dtype for x in qkv]
        ctx.added = None if added is None else (added.shape, added.dtype)
        q, k, v = _flat(qkv, n_heads)  # (B * H, Tq or T, D / H)
        ctx.scale = scale = 1 / math.sqrt(q.size(-1))
        allowed, picked = around.allowed, None
        if rows is not None and key is not None:
            if around.shown is None:
                picked = rows.picked(_by_row(q, key, n_heads)).flatten(0, 1)
            else:
                lowest = _lowest_last(rows.n, q.dtype, q.device)
                by_row = _by_row(q, around.shown, n_heads, lowest)
                picked, allowed = rows.picked(by_row, allowed).flatten(0, 1), None
        scores = _dots(q, k, scale, picked).unflatten(0, (-1, n_heads))  # (B, H, Tq, T)
        if added is not None:
            scores += added
        if allowed is not None:
            scores = torch.where(allowed, scores, _lowest(scores.dtype, scores.device))
        weights = dropped = scores.softmax(-1)  # (B, H, Tq, T)
        kept = sums = None
        if around.dropout:
            dropped, kept = torch.native_dropout(weights, around.dropout, True)
        flat = dropped.flatten(0, 1)
        if around.value is None or value is None:
            context = _mixture(flat, v)  # (B * H, Tq, D / H)
        else:
            sums = around.value.sums(dropped).flatten(0, 2)  # (B * H * Tq, n)
            context = _mixture(flat, v, (sums @ value.to(sums.dtype)).view_as(q))
        ctx.save_for_backward(q, k, v, weights, kept, key, value, sums)
        joined = context.unflatten(0, (-1, n_heads)).transpose(1, 2)  # (B, Tq, H, D / H)
        if joined.size(1) == 1:  # heads are joined already
            return joined.to(around.dtype).flatten(2)
        return _copied(joined, around.dtype).flatten(2)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        with torch.autocast(gradients[0].device.type, enabled=False):
            return _backward(ctx, gradients[0])


def _backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
    """The gradients of the inputs of `_Attention`. gradient: of its output, (B, Tq, D)."""
    q, k, v, weights, kept, key, value, sums = ctx.saved_tensors
    around, d_key, d_value, d_added = ctx.around, None, None, None
    by_head = gradient.unflatten(-1, (around.n_heads, -1)).transpose(1, 2)  # (B, H, Tq, D / H)
    d_context, v_t = _copied(by_head, q.dtype).flatten(0, 1), v.transpose(1, 2)
    if value is None:
        d_weights = d_context @ v_t
    else:
        d_weights = around.value.picked(_by_row(d_context, value, around.n_heads)).flatten(0, 1)
        d_weights.baddbmm_(d_context, v_t)
        d_value = (sums.T @ d_context.flatten(0, 1)).to(value.dtype)
    d_weights, dropped = d_weights.view(weights.shape), weights
    if kept is not None:
        factor = 1 / (1 - around.dropout) if around.dropout < 1 else 0.0
        dropped = weights * kept * factor
        d_weights = aten.native_dropout_backward(d_weights, kept, factor)
    d_scores = aten._softmax_backward_data(d_weights, weights, -1, weights.dtype)
    flat, nothing = d_scores.flatten(0, 1), q.new_empty(1)  # (B * H, Tq, T)
    scaled = {"beta": 0, "alpha": ctx.scale}
    whole = (
        q.new_empty(3, *q.shape) if q.shape == k.shape else [torch.empty_like(x) for x in (q, k, v)]
    )
    d_q, d_k, d_v = whole
    torch.baddbmm(nothing, flat, k, **scaled, out=d_q)
    torch.baddbmm(nothing, flat.transpose(1, 2), q, **scaled, out=d_k)
    torch.bmm(dropped.flatten(0, 1).transpose(1, 2), d_context, out=d_v)
    if key is not None:
        by_row = around.key.sums(d_scores).flatten(0, 2)  # (B * H * Tq, n)
        d_q.flatten(0, 1).addmm_(by_row, key.to(q.dtype), alpha=ctx.scale)
        d_key = torch.addmm(nothing, by_row.T, q.flatten(0, 1), **scaled).to(key.dtype)
    if ctx.added is not None:
        shape, dtype = ctx.added
        d_added = d_scores.sum_to_size(shape).to(dtype)
    return None, d_added, d_key, d_value, *_joined_heads(whole, around.n_heads, ctx.dtypes)


def _joined_heads(
    gradients: Tensor | Sequence[Tensor], n_heads: int, dtypes: Sequence[torch.dtype]
) -> Sequence[Tensor]:
    """The gradients of q, k, v, (B * H, T, D / H) each -> (B, T, D) each, or one (B, T, 3 D)."""
    if len(dtypes) == 1 and isinstance(gradients, Tensor):
        split = gradients.unflatten(1, (-1, n_heads)).permute(1, 3, 0, 2, 4)  # (B, T, 3, H, D / H)
        return [_copied(split, dtypes[0]).flatten(2)]
    return [
        _copied(d.unflatten(0, (-1, n_heads)).transpose(1, 2), dtype).flatten(2)
        for d, dtype in zip(gradients, dtypes, strict=True)
    ]
