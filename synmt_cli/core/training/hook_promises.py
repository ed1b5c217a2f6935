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
from synmt_cli.core.model.relations import Related
from synmt_cli.core.trees.features import FEATURES
from synmt_cli.core.variants import own_file
from synmt_cli.errors import ConfigError

ATTENTION = ("scores", "added", "related", "visible", "context")
Shape = tuple[int, int, int]  # sentences, heads, tokens
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
    return hook.function(replace(side, features=_Features(side.features, hook)))


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
        return _of_shape(result, (*site.q.shape[:3], site.k.size(2)))
    (q, k), (like_q, like_k) = result, (site.q, site.k)
    if q.shape[:3] == like_q.shape[:3] and k.shape == (*like_k.shape[:3], q.size(-1)):
        return ""
    wanted = f"a Dot of {(*like_q.shape[:3], 'D')} and {(*like_k.shape[:3], 'D')}"
    return f"{wanted}, not of {tuple(q.shape)} and {tuple(k.shape)}"


def _as_related(hook: _Hook, result: Any, state: Any, layer: int) -> str:
    is_one = result is None or isinstance(result, Related)
    return "" if is_one else f"a Related or None, not {type(result).__name__}"


def _as_visible(hook: _Hook, result: Any, state: Any, n_queries: int) -> str:
    n_rows, n_heads, n_tokens = hook.shape
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
