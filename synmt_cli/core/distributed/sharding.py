"""A process's share of the work and of the model: the whole model, or a part of each layer.

Sharding is torch's FSDP2 (Zhao et al. 2023; Rajbhandari et al. 2020, stage 3): a process keeps
1/N of the parameters of each encoder and decoder layer, of their gradients and their moments.
A layer is whole only while it is passed through. Embeddings, the output, modifiers and the last
normalisation stay whole, and their gradients go through `Ranks.reduce`.

All processes meet at each pass through a layer, so all of them have to make the same passes in
the same order. To save, the first process gathers the whole tensors of one file at a time
(`full`); nothing else has to know that there are shards.
"""

from __future__ import annotations

import contextlib
import ctypes
import platform
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor, nn

from synmt_cli.core.data.ragged import Array
from synmt_cli.core.distributed import ranks as processes
from synmt_cli.core.distributed.ranks import Ranks
from synmt_cli.core.model.transformer import Transformer
from synmt_cli.errors import Unavailable

if TYPE_CHECKING:
    from torch.distributed.fsdp import FSDPModule
    from torch.distributed.tensor import DTensor

TINY = 1e-6  # as in clip_grad_norm_
M_MMAP_THRESHOLD = -3  # <malloc.h>
LARGE = 2**18  # bytes


class Part(NamedTuple):
    """The pairs of one pass of a process. counts: whether they add to the gradient.

    Pairs that do not count are only passed through the model, to keep the processes in step.
    """

    rows: Array
    counts: bool


class Share:
    """A model that is whole in this process.

    whole: the parameters that are not sharded; their gradients are summed over the processes.
    """

    def __init__(self, model: Transformer, ranks: Ranks, device: torch.device) -> None:
        self.model, self.ranks = model.to(device), ranks
        self.whole: list[nn.Parameter] = list(model.parameters())

    def groups(self) -> list[dict[str, list[nn.Parameter]]]:
        """The parameters for an optimizer, each group of one kind of tensor."""
        return [{"params": self.whole}]

    def parts(self, shares: Sequence[Sequence[Array]]) -> list[Part]:
        """This process's passes. shares: the pairs of each pass of each process."""
        return [Part(rows, True) for rows in shares[self.ranks.rank]]

    def reduce(self, sums: Tensor) -> Tensor:
        """Sums the gradient over all processes. Returns `sums`, summed over them, too."""
        return self.ranks.reduce(self.whole, sums)

    def divide(self, scale: Tensor) -> None:
        """Divides the gradient by a number that lies on the device."""
        for parameter in self.whole:
            if parameter.grad is not None:
                parameter.grad.div_(scale)

    def clip(self, max_norm: float) -> Tensor:
        """Scales the reduced gradient so that its norm is at most max_norm; 0 is no limit.

        Returns the norm before scaling, on the device.
        """
        if max_norm:
            norm = nn.utils.clip_grad_norm_(self.whole, max_norm)
        else:
            norm = nn.utils.get_total_norm([p.grad for p in self.whole if p.grad is not None])
        return norm.to(self.whole[0].device)  # without any gradient it is on the CPU

    @contextlib.contextmanager
    def passing(self) -> Iterator[None]:
        """Wraps passes through the model in training. Raises WorkerLost."""
        yield

    @contextlib.contextmanager
    def gathered(self) -> Iterator[None]:
        """Inside, the first process has the whole model and may use it alone."""
        yield

    def full(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The whole tensors of parameters and moments, in the first process; {} in the others.

        They are in the CPU's memory, each copied there once. Every process has to ask for the same
        ones in the same order.
        """
        return {name: x.cpu() for name, x in tensors.items()} if self.ranks.is_first else {}

    def own(self, parameter: nn.Parameter, values: Tensor) -> Tensor:
        """This process's part of a whole parameter, or of its moment, on its device."""
        return values.to(parameter.device)


class Shards(Share):
    """A model whose layers are sharded; they move to `device` one by one.

    Raises Unavailable where torch is too old.
    """

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
            # The stack itself is not sharded; it only knows its layers' order, to prefetch them.
            fully_shard(stack, mesh=mesh, ignored_params=set(stack.parameters()))
        for sharded, before in zip(self._layers, [*self._layers[:1], *self._layers], strict=False):
            # The layer to prefetch is named here, because torch's record of passes differs in the
            # first process, which also validates. The bottom layer names itself, which prefetches
            # nothing.
            sharded.set_modules_to_backward_prefetch([before])
            # The loss is divided by the tokens of all processes, so gradients add up; and gloo
            # has no other reduction than a sum.
            sharded.set_gradient_divide_factor(1.0)
            sharded.set_force_sum_reduction_for_comms(True)
        super().__init__(model, ranks, device)
        self._shards: list[nn.Parameter] = [p for p in self.whole if isinstance(p, DTensor)]
        self.whole = [p for p in self.whole if not isinstance(p, DTensor)]

    def groups(self) -> list[dict[str, list[nn.Parameter]]]:
        """Whole parameters and shards apart: a fused step takes one kind of tensor at a time."""
        return [*super().groups(), {"params": self._shards}]

    def parts(self, shares: Sequence[Sequence[Array]]) -> list[Part]:
        """As many passes as any process makes: those added pass a pair that does not count."""
        own = super().parts(shares)
        n_passes = max(map(len, shares))
        (first, *_), *_ = filter(None, shares)
        return own + [Part(first[:1], False)] * (n_passes - len(own))

    def clip(self, max_norm: float) -> Tensor:
        """Does what torch's clip_grad_norm_ does, over the shards of all processes."""
        whole = [p.grad for p in self.whole if p.grad is not None]
        parts = [_local(p.grad) for p in self._shards if p.grad is not None]
        squares = self.ranks.total(nn.utils.get_total_norm(parts).square())
        norm = (nn.utils.get_total_norm(whole).square() + squares).sqrt()
        if max_norm:
            factor = (max_norm / (norm + TINY)).clamp(max=1.0)
            for gradient in (*whole, *parts):
                gradient.mul_(factor)
        return norm

    @contextlib.contextmanager
    def passing(self) -> Iterator[None]:
        """Wraps passes in which layers are gathered, forwards and backwards."""
        with processes.collectives_inside():
            yield

    @contextlib.contextmanager
    def gathered(self) -> Iterator[None]:
        """All processes send their shards; only the first keeps the layers, until the end."""
        for layer in self._layers:
            layer.set_reshard_after_forward(False)
            with processes.collectives_inside():
                layer.unshard()
            if not self.ranks.is_first:
                layer.reshard()
        try:
            yield
        finally:
            for layer in self._layers:
                layer.reshard()
                layer.set_reshard_after_forward(True)

    def full(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Gathers each tensor once; the first process keeps them all, in the CPU's memory."""
        from torch.distributed.tensor import DTensor

        whole: dict[str, Tensor] = {}
        for name, tensor in tensors.items():
            if isinstance(tensor, DTensor):
                with processes.collectives_inside():
                    tensor = tensor.full_tensor().detach()
            if self.ranks.is_first:
                whole[name] = tensor.cpu()
        return whole

    def own(self, parameter: nn.Parameter, values: Tensor) -> Tensor:
        """A copy of this process's rows; a step count, which is a scalar, stays whole."""
        from torch.distributed.tensor import DTensor, distribute_tensor

        values = super().own(parameter, values)
        if not isinstance(parameter, DTensor) or not values.ndim:
            return values
        # Every process has read all values, so none is sent. The part is a view of the whole.
        part = distribute_tensor(
            values, parameter.device_mesh, parameter.placements, src_data_rank=None
        )
        return torch.empty_like(part).copy_(part)


def _give_back_freed() -> None:
    """Makes glibc return large tensors to the system when they are freed.

    As layers come and go, glibc would learn to keep their memory, and the process would grow
    as large as with the whole model. Setting the threshold stops it from learning.
    """
    if platform.libc_ver()[0] == "glibc":
        ctypes.CDLL(None).mallopt(M_MMAP_THRESHOLD, LARGE)


def _local(tensor: Tensor) -> Tensor:
    """This process's rows of a sharded tensor, the same memory."""
    sharded: DTensor = tensor  # type: ignore[assignment]
    return sharded.to_local()
