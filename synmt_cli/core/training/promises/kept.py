"""The values that modifiers and their file keep between passes, to see which of them change.

Numbers, texts, tensors and arrays are found in attributes of modules, in attributes of classes and
objects of the file, in its global variables, in what its functions keep (defaults, closures and
attributes), and in containers there. Other objects are not looked into.
"""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from types import FunctionType, SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from synmt_cli.core.variants.table import OWN

LARGE = 10_000  # of containers that have more values, only the number is compared
OF_EVERY_MODULE = {*vars(nn.Module())}
PLAIN = (int, float, complex, str, bytes, type(None), np.generic)

Named = tuple[str, Any]
Snapshot = dict[tuple[int, str], Any]  # by the number of a root, and the name from there


@dataclass(frozen=True, slots=True)
class _Size:
    """How many values a container has."""

    n: int


def snapshot(modules: Sequence[nn.Module], variables: dict[str, Any]) -> Snapshot:
    """Copies of the values that modules keep, except for parameters.

    variables: those of the file, by name; what they keep is copied, too.
    """
    roots: list[Named] = [(type(module).__name__, module) for module in modules]
    roots.append(("", variables))
    found: Snapshot = {}
    seen: set[int] = set()
    for number, root in enumerate(roots):
        left: list[Named] = [root]
        while left:
            name, value = left.pop()
            if isinstance(value, PLAIN):
                found[number, name] = value
            elif isinstance(value, Tensor | np.ndarray):
                found[number, name] = _copied(value)
            elif id(value) not in seen:
                seen.add(id(value))
                if isinstance(value, dict | list | tuple | deque | set | frozenset) and name:
                    found[number, name] = _Size(len(value))
                left += _parts(name, value)
    return found


def changed(before: Snapshot, after: Snapshot) -> list[str]:
    """The names of values that are others than before."""
    both = ((key, before[key], after[key]) for key in before if key in after)
    return [
        name
        for (_, name), was, now in both
        if not isinstance(was, _Size) and not _is_same(was, now)
    ]


def resized(before: Snapshot, after: Snapshot) -> list[str]:
    """The names of containers that have more or fewer values than before."""
    return [
        key[1]
        for key, was in before.items()
        if isinstance(was, _Size) and after.get(key, was) != was
    ]


def _copied(value: Tensor | np.ndarray) -> Tensor | np.ndarray | None:
    """A copy; None of what cannot be compared by value."""
    if isinstance(value, np.ndarray):
        return None if value.dtype.hasobject else value.copy()
    if is_lazy(value) or value.layout is not torch.strided:
        return None
    return value.detach().clone()


def _is_same(one: Any, other: Any) -> bool:
    if type(one) is not type(other):
        return False
    if isinstance(one, Tensor | np.ndarray):
        if (one.shape, one.dtype) != (other.shape, other.dtype):
            return False
        return bool(((one == other) | ((one != one) & (other != other))).all())
    return bool(one == other or (one != one and other != other))


def _parts(name: str, value: Any) -> Iterable[Named]:
    """The named parts of a value that is looked into; none of any other."""
    if isinstance(value, staticmethod | classmethod):
        value = value.__func__
    if isinstance(value, dict | list | tuple | deque):
        return _items(name, value) if len(value) <= LARGE else ()
    within = f"{name}." if name else ""
    return ((within + key, part) for key, part in _attributes(value))


def _items(name: str, value: Mapping[Any, Any] | Iterable[Any]) -> Iterator[Named]:
    if not isinstance(value, dict):
        yield from ((f"{name}[{place}]", part) for place, part in enumerate(value))
        return
    for key, part in value.items():
        shown = repr(key) if isinstance(key, PLAIN) else f"<{type(key).__name__} {id(key)}>"
        if name:
            yield f"{name}[{shown}]", part
        elif isinstance(key, str) and not key.startswith("__"):
            yield key, part


def _attributes(value: Any) -> Iterator[Named]:
    """What a module, a class, an object or a function of the file keeps under names."""
    if isinstance(value, nn.Module):
        own = ((key, part) for key, part in vars(value).items() if key not in OF_EVERY_MODULE)
        yield from chain(own, value._buffers.items(), value._modules.items())
    elif isinstance(value, FunctionType) and value.__module__ == OWN:
        yield from vars(value).items()
        parameters = inspect.signature(value, follow_wrapped=False).parameters.values()
        yield from ((one.name, one.default) for one in parameters)
        for key, cell in zip(value.__code__.co_freevars, value.__closure__ or (), strict=True):
            with suppress(ValueError):  # the cell is still empty
                yield key, cell.cell_contents
    elif isinstance(value, type):
        if value.__module__ == OWN:
            yield from ((key, part) for key, part in vars(value).items() if key[:2] != "__")
    elif isinstance(value, SimpleNamespace) or type(value).__module__ == OWN:
        yield from getattr(value, "__dict__", {}).items()
        slots = getattr(type(value), "__slots__", ())
        names = (slots,) if isinstance(slots, str) else slots
        yield from ((name, getattr(value, name)) for name in names if hasattr(value, name))
