"""What one of several processes keeps of the model: all of it, or a share of each layer.

Sharing out is torch's FSDP2 (Zhao et al. 2023; Rajbhandari et al. 2020, stage 3): of each
encoder and decoder layer a process keeps 1/N of the parameters, their gradients and their
moments. A layer is whole only while it is passed through. Embeddings, the output, modifiers
and the last normalisation stay whole, and their gradients go through `Ranks.add_up`.

Each pass through a layer is a meeting of all processes, so that all of them have to make the
same passes in the same order.
"""

from __future__ import annotations

import contextlib
import ctypes
import platform
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from synmt_cli.core.distributed import ranks as processes
from synmt_cli.core.distributed.ranks import Ranks
from synmt_cli.core.model.transformer import Transformer
from synmt_cli.core.run import tensors
from synmt_cli.errors import Unavailable

if TYPE_CHECKING:
    from torch.distributed.fsdp import FSDPModule
    from torch.distributed.tensor import DTensor

TINY = 1e-6  # as in clip_grad_norm_
M_MMAP_THRESHOLD = -3  # <malloc.h>
LARGE = 2**18  # bytes


class Share:
    """A model that is whole in this process.

    whole: the parameters that are; their gradients are to be added up over the processes.
    """

    must_pass = False  # whether all processes have to make as many passes

    def __init__(self, model: Transformer, ranks: Ranks, device: torch.device) -> None:
        self.model, self.ranks = model.to(device), ranks
        self.whole: list[nn.Parameter] = list(model.parameters())

    def groups(self) -> list[dict[str, list[nn.Parameter]]]:
        """The parameters for an optimizer, each group of one kind of tensor."""
        return [{"params": self.whole}]

    def clip(self, max_norm: float) -> None:
        """Scales the gradient, added up before, so that its norm is at most max_norm."""
        nn.utils.clip_grad_norm_(self.whole, max_norm)

    @contextlib.contextmanager
    def passing(self) -> Iterator[None]:
        """Around passes through the model in training. Raises WorkerLost."""
        yield

    @contextlib.contextmanager
    def gathered(self) -> Iterator[None]:
        """Inside, the first process has the whole model and may use it alone."""
        yield

    def full(self, tensor: Tensor) -> Tensor:
        """All values of a parameter or moment, for the first process; all have to ask."""
        return tensor

    def hand_over(self, parts: Mapping[str, Tensor]) -> None:
        """Takes part in what the first process does in `tensors.write(..., full)`."""
        for name in tensors.asked_for(parts):
            self.full(parts[name])

    def own(self, parameter: nn.Parameter, values: Tensor) -> Tensor:
        """What this process keeps of all values of a parameter, of a moment or a step count."""
        # A fused optimizer wants its step count, too, where the parameter is.
        return values.to(parameter.device)


class Shards(Share):
    """A model whose layers are shared out; they move to `device` one by one.

    Raises Unavailable where torch is too old.
    """

    must_pass = True

    def __init__(self, model: Transformer, ranks: Ranks, device: torch.device) -> None:
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import FSDPModule, fully_shard
        from torch.distributed.tensor import DTensor

        if not hasattr(FSDPModule, "set_force_sum_reduction_for_comms"):
            raise Unavailable(f"training.shard needs torch 2.8 or newer, not {torch.__version__}")
        if device.type == "cpu":
            _give_back_freed()
        mesh = init_device_mesh(device.type, (ranks.size,))
        self._layers: list[FSDPModule] = []
        for stack in (model.encoder, model.decoder):
            for layer in stack.layers:
                fully_shard(layer, mesh=mesh, reshard_after_forward=True)
                self._layers += [layer] if isinstance(layer, FSDPModule) else []
            # The stack has no share; it only knows its layers' order, to ask for them ahead.
            fully_shard(stack, mesh=mesh, ignored_params=set(stack.parameters()))
        for shared, before in zip(self._layers, [*self._layers[:1], *self._layers], strict=False):
            # Named, not from torch's record of passes: the first process passes more when it
            # validates. The bottom layer names itself, which asks for nothing.
            shared.set_modules_to_backward_prefetch([before])
            # The loss is divided by the tokens of all: gradients add up, none is a mean. As a
            # sum, because gloo has no other reduction.
            shared.set_gradient_divide_factor(1.0)
            shared.set_force_sum_reduction_for_comms(True)
        super().__init__(model, ranks, device)
        everything = self.whole
        self.whole = [p for p in everything if not isinstance(p, DTensor)]
        self._shards: list[nn.Parameter] = [p for p in everything if isinstance(p, DTensor)]

    def groups(self) -> list[dict[str, list[nn.Parameter]]]:
        """Whole ones and shards apart: a fused step takes one kind of tensor at a time."""
        return [*super().groups(), {"params": self._shards}]

    def clip(self, max_norm: float) -> None:
        """As torch's clip_grad_norm_, with the squares of all shards added up."""
        whole = [p.grad for p in self.whole if p.grad is not None]
        parts = [_local(p.grad) for p in self._shards if p.grad is not None]
        squares = self.ranks.total(nn.utils.get_total_norm(parts).square())
        norm = (nn.utils.get_total_norm(whole).square() + squares).sqrt()
        factor = (max_norm / (norm + TINY)).clamp(max=1.0)
        for gradient in (*whole, *parts):
            gradient.mul_(factor)

    @contextlib.contextmanager
    def passing(self) -> Iterator[None]:
        """Layers are sent for in both directions."""
        with processes.sending_inside():
            yield

    @contextlib.contextmanager
    def gathered(self) -> Iterator[None]:
        """All processes send; only the first keeps what it was sent, until the end."""
        for layer in self._layers:
            layer.set_reshard_after_forward(False)
            with processes.sending_inside():
                layer.unshard()
            if not self.ranks.is_first:
                layer.reshard()
        try:
            yield
        finally:
            for layer in self._layers:
                layer.reshard()
                layer.set_reshard_after_forward(True)

    def full(self, tensor: Tensor) -> Tensor:
        """Gathers one tensor; all but the first process forget it at once."""
        from torch.distributed.tensor import DTensor

        if not isinstance(tensor, DTensor):
            return tensor
        with processes.sending_inside():
            whole: Tensor = tensor.full_tensor().detach()
        return whole

    def own(self, parameter: nn.Parameter, values: Tensor) -> Tensor:
        """A copy of this process's rows; scalars, which are step counts, stay whole."""
        from torch.distributed.tensor import DTensor, distribute_tensor

        values = super().own(parameter, values)
        if not isinstance(parameter, DTensor) or not values.ndim:
            return values
        # Every process has read all values: none is sent. The part is a view of the whole.
        part = distribute_tensor(
            values, parameter.device_mesh, parameter.placements, src_data_rank=None
        )
        return torch.empty_like(part).copy_(part)


def _give_back_freed() -> None:
    """Large tensors go back to the system when they are freed, where the C library is glibc.

    It would learn from layers that come and go to keep them, each in pieces of its own, and the
    process would be as large as with the whole model. What it learned it forgets here.
    """
    if platform.libc_ver()[0] == "glibc":
        ctypes.CDLL(None).mallopt(M_MMAP_THRESHOLD, LARGE)


def _local(tensor: Tensor) -> Tensor:
    """This process's rows of a shared-out tensor, the same memory."""
    shared: DTensor = tensor  # type: ignore[assignment]
    return shared.to_local()
