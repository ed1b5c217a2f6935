"""Modules without values: to read their shapes, or to fill them with weights from a file."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode


@contextmanager
def without_values() -> Iterator[None]:
    """Inside, modules are built with shapes but without memory or values."""
    with torch.device("meta"), _Uninitialised():
        yield


class _Uninitialised(TorchFunctionMode):
    """Skips normal_, which on the meta device would import all of torch's compiler."""

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> object:
        kwargs = kwargs or {}
        if func in (torch.nn.init.normal_, Tensor.normal_):
            return args[0] if args else kwargs["tensor"]
        return func(*args, **kwargs)
