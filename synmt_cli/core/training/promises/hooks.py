"""Checks, at each call, what the hooks of a modifier return (core/model/modifier.py)."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NoReturn

import torch
from torch import Tensor

from synmt_cli.core.model.modifier import Dot, Modifier, Side, Site
from synmt_cli.core.model.relations import Related, Table
from synmt_cli.core.trees.features import FEATURES
from synmt_cli.core.variants import own_file
from synmt_cli.errors import ConfigError

ATTENTION = ("scores", "added", "related", "visible", "context")
Shape = tuple[int, int, int, int]  # sentences, heads, tokens, numbers of a head
Places = Iterable[tuple[Modifier, Shape, Tensor | None]]


@contextmanager
def watched(places: Places) -> Iterator[None]:
    """Inside, the hooks of these modifiers are checked.

    places: each modifier with the shape and the padding, (B, T), of what its stack reads.
    """
    hooks = [
        _Hook(modifier, name, getattr(modifier, name), shape, pad)
        for modifier, shape, pad in places
        for name in ("prepare", *PROMISES)
        if modifier.overrides(name)
    ]
    for hook in hooks:
        setattr(hook.modifier, hook.name, partial(_checked, hook))
    try:
        yield
    finally:
        for hook in hooks:
            delattr(hook.modifier, hook.name)


@dataclass(frozen=True, slots=True)
class _Hook:
    """A hook of a modifier. shape, pad: as in `watched`."""

    modifier: Modifier
    name: str
    function: Callable[..., Any]
    shape: Shape
    pad: Tensor | None

    def refuse(self, problem: str) -> NoReturn:
        """Raises ConfigError."""
        where = f"{own_file.path()}: variant {self.modifier.name}"
        raise ConfigError(f"{where}: {type(self.modifier).__name__}.{self.name} {problem}")


def _checked(hook: _Hook, *given: Any) -> Any:
    try:
        inspect.signature(hook.function).bind(*given)
    except TypeError:
        _, *expected = inspect.signature(getattr(Modifier, hook.name)).parameters  # without self
        hook.refuse(f"has to take ({', '.join(expected)})")
    if hook.name == "prepare":
        return _prepared(hook, *given)
    result = hook.function(*given)
    if problem := PROMISES[hook.name](hook, result, *given):
        hook.refuse(f"has to return {problem}")
    return result


def _prepared(hook: _Hook, side: Side) -> Any:
    given = {f"side.features[{name!r}]": values for name, values in side.features.items()}
    given["side.ids"] = side.ids
    if side.pad is not None:
        given["side.pad"] = side.pad
    before = {name: values.clone() for name, values in given.items()}
    state = hook.function(replace(side, features=_Features(side.features, hook)))
    for name, values in given.items():
        if not torch.equal(values, before[name]):
            hook.refuse(f"changes {name} in place, which others read, too")
    return state


class _Features(dict[str, Tensor]):
    """Features that refuse to be read by a hook whose modifier does not name them."""

    def __init__(self, features: Mapping[str, Tensor], hook: _Hook) -> None:
        super().__init__(features)
        self.hook = hook

    def __missing__(self, name: str) -> NoReturn:
        if name not in FEATURES:
            raise KeyError(name)
        if name in self.hook.modifier.learns:
            advice = f"take side.features.get({name!r}), which is None there"
            self.hook.refuse(f"reads {name!r} of `learns`, which translation has not; {advice}")
        self.hook.refuse(f"reads the feature {name!r}, which is not in needs")


def _of_shape(result: Any, shape: Sequence[int], *, dtype: str = "numbers") -> str:
    """Why a result is not a tensor that broadcasts to a shape; "" if it is."""
    wanted = f"{dtype} of shape {tuple(shape)}"
    if not isinstance(result, Tensor):
        return f"{wanted}, not {type(result).__name__}"
    if (result.dtype is torch.bool) != (dtype == "bool"):
        return f"{wanted}, not {result.dtype}"
    try:
        result.expand(tuple(shape))
    except RuntimeError:
        return f"{wanted}, not {tuple(result.shape)}"
    return "" if result.isfinite().all() else f"finite {wanted}"


def _of_floats(result: Tensor) -> str:
    """Why the mask of attention cannot be added to a result, or ""."""
    return "" if result.is_floating_point() else f"floating-point numbers, not {result.dtype}"


def _as_given(hook: _Hook, result: Any, *given: Any) -> str:
    """What is wrong with a result that should be like the last argument, or ""."""
    was = given[-1]
    if isinstance(result, Tensor) and result.shape != was.shape:
        return f"numbers of shape {tuple(was.shape)}, not {tuple(result.shape)}"
    if isinstance(result, Tensor) and result.dtype != was.dtype:
        return f"numbers of type {was.dtype}, not {result.dtype}"
    return _of_shape(result, was.shape)


def _as_positions(hook: _Hook, result: Any, state: Any, positions: Tensor) -> str:
    return _of_shape(result, (hook.shape[0], *positions.shape[1:]))


def _as_added(hook: _Hook, result: Any, state: Any, site: Site) -> str:
    if result is None:
        return ""
    if not isinstance(result, Dot):
        shape = (*site.q.shape[:3], site.k.size(2))
        return _of_shape(result, shape) or _of_floats(result)
    (q, k), (like_q, like_k) = result, (site.q, site.k)
    if q.shape[:3] == like_q.shape[:3] and k.shape == (*like_k.shape[:3], q.size(-1)):
        return ""
    wanted = f"a Dot of {(*like_q.shape[:3], 'D')} and {(*like_k.shape[:3], 'D')}"
    return f"{wanted}, not of {tuple(q.shape)} and {tuple(k.shape)}"


def _as_related(hook: _Hook, result: Any, state: Any, layer: int) -> str:
    if result is None:
        return ""
    if not isinstance(result, Related):
        return f"a Related or None, not {type(result).__name__}"
    tables = [table for table in result[:2] if table is not None]
    return next(filter(None, (_as_table(hook, table, result.layer) for table in tables)), "")


def _as_table(hook: _Hook, table: Any, layer: int) -> str:
    """What is wrong with a table of a Related, or ""."""
    n_rows, n_heads, n_tokens, d_head = hook.shape
    if not isinstance(table, Table):
        return f"a Related of Tables, not of {type(table).__name__}"
    rows, vectors = table.rows, table.vectors
    if not isinstance(vectors, Tensor):
        return f"a Related with vectors in one Tensor, not {type(vectors).__name__}"
    if vectors.dim() != 3 or vectors.shape[1:] != (rows.n, d_head):
        shape = f"(layers, {rows.n}, {d_head})"
        return f"a Related with vectors of shape {shape}, not {tuple(vectors.shape)}"
    if not 0 <= layer < len(vectors):
        return f"a Related with vectors for layer {layer}, not only up to layer {len(vectors) - 1}"
    if rows.n_heads != n_heads:
        return f"a Related with Rows for {n_heads} heads, not for {rows.n_heads}"
    problem = _as_index(rows.index, (n_rows, n_tokens, rows.n_parts * n_tokens), rows.n)
    return problem and f"a Related whose index of rows has {problem}"


def _as_index(index: Tensor, shape: Sequence[int], n: int) -> str:
    """What is wrong with the rows of n that pairs of tokens pick, or ""."""
    if index.dtype not in (torch.int32, torch.int64):
        return f"whole numbers, not {index.dtype}"
    if index.shape not in (tuple(shape), (1, *shape[1:])):
        return f"the shape {tuple(shape)}, not {tuple(index.shape)}"
    low, high = index.aminmax()
    if low < 0 or high >= n:
        return f"values from 0 to {n - 1}, not from {low} to {high}"
    return ""


def _as_visible(hook: _Hook, result: Any, state: Any, n_queries: int) -> str:
    n_rows, n_heads, n_tokens, _ = hook.shape
    shape = (n_rows, n_heads, n_queries, n_tokens)
    if result is None:
        return ""
    if problem := _of_shape(result, shape, dtype="bool"):
        return problem
    pad = torch.zeros(n_rows, n_tokens, dtype=torch.bool) if hook.pad is None else hook.pad
    sees = (result.expand(shape) & ~pad[:, None, None, :]).any(-1)  # (B, H, Tq)
    sees = sees | pad[:, None, -n_queries:]
    return "" if sees.all() else "something to see for each token"


def _as_loss(hook: _Hook, result: Any, state: Any) -> str:
    return "" if result is None else _of_shape(result, ())


PROMISES: dict[str, Callable[..., str]] = {
    **dict.fromkeys(("tokens", "inputs", "scores", "context"), _as_given),
    "positions": _as_positions,
    "added": _as_added,
    "related": _as_related,
    "visible": _as_visible,
    "loss": _as_loss,
}
