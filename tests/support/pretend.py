"""A device that exists only for tests: a GPU as the program sees it, computed on the CPU.

Its tensors hold CPU values and refuse to meet tensors of the CPU. It counts what costs time on a
GPU whatever the size of the tensors: launches of kernels, and synchronisations, where the host
waits for the device (also in a copy to it that is not non_blocking). Where a GPU has one kernel for
what takes a CPU many (attention, dropout, the cell of an LSTM), it counts one.

    with pretend.counted() as counts:
        model(batch.to(pretend.DEVICE))
    assert counts.launches["aten::mm"] == 3
    assert not counts.synchronisations

Views of memory, and memory that is allocated without values, cost nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils import backend_registration
from torch.utils._python_dispatch import return_and_correct_aliasing
from torch.utils._pytree import tree_leaves, tree_map

NAME = "pretend"
aten = torch.ops.aten
FREE = {  # operations that start no kernel
    aten.empty.memory_format,
    aten.empty_strided.default,
    aten.empty_like.default,
    aten.new_empty.default,
    aten.new_empty_strided.default,
    aten._unsafe_view.default,
    aten._reshape_alias.default,
    aten.is_same_size.default,
    aten._has_compatible_shallow_copy_type.default,
    aten.lift_fresh.default,
}
# The host waits for these: it needs the result, or the size of the result.
WAITS = {
    aten._local_scalar_dense.default: "item",
    aten.nonzero.default: "nonzero",
    aten.masked_select.default: "masked_select",
    aten.equal.default: "equal",
    aten.is_nonzero.default: "item",
    aten._unique2.default: "unique",
    aten.unique_dim.default: "unique",
    aten.unique_consecutive.default: "unique",
    aten.repeat_interleave.Tensor: "repeat_interleave",
    aten.bincount.default: "bincount",
    aten.allclose.default: "allclose",
}
COPIES = {aten.copy_.default, aten._to_copy.default}
MAY_MIX = {*COPIES, aten._has_compatible_shallow_copy_type.default}


@dataclass(eq=False)
class Counts:
    """What the device did. launches: by operation. synchronisations: by what the host waited for.
    to_device: copies to the device for which it did not wait.
    """

    launches: Counter[str] = field(default_factory=Counter)
    synchronisations: Counter[str] = field(default_factory=Counter)
    to_device: int = 0

    @property
    def n_launches(self) -> int:
        """The launches of all operations."""
        return sum(self.launches.values())

    @property
    def n_synchronisations(self) -> int:
        """The synchronisations of all kinds."""
        return sum(self.synchronisations.values())


_counting: list[Counts] = []


@contextmanager
def counted() -> Iterator[Counts]:
    """Counts what happens on the device in this context, in any thread."""
    counts = Counts()
    _counting.append(counts)
    try:
        yield counts
    finally:
        _counting.remove(counts)


class PretendTensor(torch.Tensor):
    """A tensor on the pretend device. value: what it holds, on the CPU."""

    value: Tensor

    @staticmethod
    def __new__(cls, value: Tensor) -> PretendTensor:
        made = torch.Tensor._make_wrapper_subclass(
            cls,
            value.size(),
            strides=value.stride(),
            storage_offset=value.storage_offset(),
            dtype=value.dtype,
            device=DEVICE,
        )
        made.value = value
        return made

    def __repr__(self, **_: Any) -> str:
        return f"PretendTensor({self.value!r})"

    @classmethod
    def __torch_function__(
        cls, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        fused = FUSED.get(function)
        if fused is not None:
            with torch._C.DisableTorchFunctionSubclass():
                return fused(*args, **(kwargs or {}))
        with torch._C.DisableTorchFunctionSubclass():
            return function(*args, **(kwargs or {}))

    @classmethod
    def __torch_dispatch__(
        cls, operation: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        # With gradients off, operations arrive that are composed of others.
        parts = operation.decompose(*args, **(kwargs or {}))
        return _run(operation, args, kwargs or {}) if parts is NotImplemented else parts


def _run(operation: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Does an operation on the values, counts it, and gives tensors of the device."""
    target = kwargs.get("device")
    leaves = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
    _refuse_mixing(operation, leaves)
    leaves_device = target is not None and torch.device(target).type != NAME
    if operation is aten.copy_.default:
        leaves_device = not isinstance(args[0], PretendTensor)
    is_ahead = bool(kwargs.get("non_blocking") or (operation in COPIES and True in args[2:]))
    _count(operation, args, leaves, leaves_device, is_ahead)
    own_kwargs = dict(kwargs)
    if target is not None:
        own_kwargs["device"] = "cpu"
    values, own = tree_map(_value, (args, own_kwargs))
    with torch._C._AutoDispatchBelowAutograd():
        out = INSTEAD.get(operation, operation)(*values, **own)
    if leaves_device:
        return args[0] if operation is aten.copy_.default else tree_map(_copied, out)
    with torch.inference_mode(False):  # a view of an ordinary tensor is an ordinary one
        out = tree_map(lambda x: PretendTensor(x) if isinstance(x, Tensor) else x, out)
    if operation is aten._to_copy.default or operation in INSTEAD:
        return out
    return return_and_correct_aliasing(operation, args, kwargs, out)


def _value(x: Any) -> Any:
    return x.value if isinstance(x, PretendTensor) else x


def _copied(x: Any) -> Any:
    return x.clone() if isinstance(x, Tensor) else x


def _refuse_mixing(operation: Any, leaves: list[Tensor]) -> None:
    """Raises RuntimeError where tensors of two devices meet, as a GPU does.

    CPU tensors without dimensions may meet anything, except as an index.
    """
    strangers = [x for x in leaves if not isinstance(x, PretendTensor)]
    if operation in MAY_MIX or not strangers or len(strangers) == len(leaves):
        return
    if any(x.dim() for x in strangers) or operation.overloadpacket in (aten.index, aten.index_put):
        shapes = [tuple(x.shape) for x in strangers]
        raise RuntimeError(f"{operation}: tensors of the CPU {shapes} among those of {NAME}")


def _count(
    operation: Any, args: Any, leaves: list[Tensor], leaves_device: bool, is_ahead: bool
) -> None:
    """Counts an operation. is_ahead: whether the host goes on during a copy (non_blocking)."""
    if not _counting:
        return
    asked = "to the CPU" if leaves_device else _asked(operation, args)
    name = operation.name().partition(".")[0]
    arrives = operation in COPIES and not all(isinstance(x, PretendTensor) for x in leaves)
    if arrives and not asked and not is_ahead:
        asked = "from the CPU"
    for counts in _counting:
        if asked:
            counts.synchronisations[asked] += 1
        elif arrives:
            counts.to_device += 1
        elif operation not in FREE and not _is_view(operation):
            counts.launches[name] += 1


def _asked(operation: Any, args: Any) -> str:
    """The name of what the host waits for, or ""."""
    if operation.overloadpacket in (aten.index, aten.index_put, aten.index_put_):
        indices = [x for x in args[1] if x is not None]
        if any(x.dtype in (torch.bool, torch.uint8) for x in indices):
            return "boolean index"
    return WAITS.get(operation, "")


def _is_view(operation: Any) -> bool:
    """Whether an operation returns memory that it was given, unchanged."""
    returned = [one.alias_info for one in operation._schema.returns]
    return bool(returned) and all(info is not None and not info.is_write for info in returned)


# What a GPU does in one kernel.


class _Attention(torch.autograd.Function):
    """Attention in one kernel, and its gradient in one."""

    @staticmethod
    def forward(ctx, q, k, v, mask, dropout, causal, scale):  # type: ignore[no-untyped-def]
        ctx.set_materialize_grads(False)
        ctx.saved, ctx.options = (q, k, v, mask), (dropout, causal, scale)
        ctx.state = torch.get_rng_state()
        _refuse_mixing(
            aten.scaled_dot_product_attention.default, [x for x in ctx.saved if x is not None]
        )
        return _fused("attention", lambda: _attention(*map(_value, ctx.saved), *ctx.options))

    @staticmethod
    def backward(ctx, gradient):  # type: ignore[no-untyped-def]
        wanted = ctx.needs_input_grad[:4]
        state = torch.get_rng_state()
        torch.set_rng_state(ctx.state)

        def differentiate():  # type: ignore[no-untyped-def]
            with torch.enable_grad():
                inputs = [
                    None if x is None else x.value.detach().requires_grad_(bool(w))
                    for x, w in zip(ctx.saved, wanted, strict=True)
                ]
                out = _attention(*inputs, *ctx.options)
            asked = [x for x, w in zip(inputs, wanted, strict=True) if w]
            return torch.autograd.grad(out, asked, gradient.value)

        found = iter(_fused("attention_backward", differentiate))
        torch.set_rng_state(state)
        return *(next(found) if w else None for w in wanted), None, None, None


def _attention(q, k, v, mask, dropout, causal, scale):  # type: ignore[no-untyped-def]
    return F.scaled_dot_product_attention(q, k, v, mask, dropout, causal, scale=scale)


def _fused(name: str, compute: Any) -> Any:
    """The values that `compute` gives, as tensors of the device, in one launch."""
    for counts in _counting:
        counts.launches[name] += 1
    return tree_map(lambda x: PretendTensor(x) if isinstance(x, Tensor) else x, compute())


def _scaled_dot_product_attention(  # type: ignore[no-untyped-def]
    query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False
):
    return _Attention.apply(query, key, value, attn_mask, dropout_p, is_causal, scale)


def _dropout(input, p=0.5, training=True, inplace=False):  # type: ignore[no-untyped-def]
    return torch.native_dropout(input, p, True)[0] if training and p > 0 else input


def _lstm_cell(input_gates, hidden_gates, cx, input_bias=None, hidden_bias=None):  # type: ignore[no-untyped-def]
    gates = input_gates + hidden_gates
    if input_bias is not None:
        gates = gates + input_bias + hidden_bias
    i, f, g, o = gates.chunk(4, 1)
    i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
    cy = f * cx + i * g
    return o * cy.tanh(), cy, torch.cat((i, f, g, o), 1)


def _lstm_cell_backward(grad_hy, grad_cy, cx, cy, workspace, has_bias):  # type: ignore[no-untyped-def]
    i, f, g, o = workspace.chunk(4, 1)
    t = cy.tanh()
    d_h = torch.zeros_like(cy) if grad_hy is None else grad_hy
    d_c = d_h * o * (1 - t * t)
    d_c = d_c if grad_cy is None else d_c + grad_cy
    gates = (
        d_c * g * i * (1 - i),
        d_c * cx * f * (1 - f),
        d_c * i * (1 - g * g),
        d_h * t * o * (1 - o),
    )
    d_gates = torch.cat(gates, 1)
    return d_gates, d_c * f, d_gates.sum(0) if has_bias else None


FUSED = {
    F.scaled_dot_product_attention: _scaled_dot_product_attention,
    F.dropout: _dropout,
    Tensor.tolist: lambda x: x.cpu().tolist(),
}
INSTEAD = {
    aten._has_compatible_shallow_copy_type.default: lambda one, other: False,
    aten._thnn_fused_lstm_cell.default: _lstm_cell,
    aten._thnn_fused_lstm_cell_backward_impl.default: _lstm_cell_backward,
}


class _Module(backend_registration._DummyBackendModule):
    """torch.pretend."""

    def get_amp_supported_dtype(self) -> list[torch.dtype]:
        return [torch.bfloat16, torch.float16]


def _register(library: torch.library.Library, *operations: Any) -> None:
    for operation in operations:
        name = operation.name().removeprefix("aten::")
        library.impl(
            name, lambda *args, it=operation, **kwargs: _run(it, args, kwargs), "PrivateUse1"
        )


# There is no DEVICE where torch sees a GPU, since with one it pins no memory for the GPU. DEVICE
# cannot be made later, since the first backward pass starts a thread for each device there is.
if not torch.cuda.is_available():
    backend_registration._setup_privateuseone_for_python_backend(NAME, _Module())
    DEVICE = torch.device(NAME, 0)
    # For operations that make a tensor on the device from none: torch.zeros(..., device=DEVICE).
    _library = torch.library.Library("_", "IMPL")
    _library.fallback(
        lambda operation, *args, **kwargs: _run(operation, args, kwargs), "PrivateUse1"
    )
    # These would begin with an empty tensor and resize it, or need the copy without this class.
    _aten = torch.library.Library("aten", "IMPL")
    _register(_aten, aten.arange.default, aten.arange.start, aten.arange.start_step)
    _register(_aten, aten.eye.default, aten.eye.m, aten.copy_.default)
