"""Several processes that train one model, and what they tell each other (torch.distributed).

Each process has the whole model, or its share of each layer (sharding.py), and all records.
Of each batch it takes every n-th pair, so no pair is read twice or lost; gradients and losses of
all are added up once an update, and every process makes the same step. The first one alone
validates, saves and shows what happens.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import Tensor, nn

from synmt_cli.core.data.ragged import Array
from synmt_cli.errors import ConfigError, WorkerLost

PATIENCE = timedelta(hours=2)  # the first one may validate that long
OWN = "@"  # before the rank, in names of what belongs to one process


class Ranks:
    """This process, `rank`, among `size`. Alone, nothing is sent. device: of what is sent."""

    def __init__(self, rank: int = 0, size: int = 1, device: torch.device | None = None) -> None:
        self.rank, self.size, self._device = rank, size, device or torch.device("cpu")

    @property
    def is_first(self) -> bool:
        """Whether this process writes and shows."""
        return self.rank == 0

    def part(self, rows: Array) -> Array:
        """Those of the rows that this process takes."""
        return rows[self.rank :: self.size]

    def add_up(self, parameters: Sequence[nn.Parameter], sums: Sequence[float]) -> list[float]:
        """Makes each gradient that of all processes. Returns the sums of all.

        A parameter that is used nowhere keeps no gradient.
        """
        if self.size == 1:
            return list(sums)
        flat = [p.grad if p.grad is not None else torch.zeros_like(p) for p in parameters]
        buffer = torch.cat([gradient.flatten() for gradient in flat])
        used = [float(p.grad is not None) for p in parameters]
        told = torch.tensor([*used, *sums], dtype=torch.float64, device=self._device)
        with _all_there():
            dist.all_reduce(buffer)
            dist.all_reduce(told)
        parts = buffer.split([p.numel() for p in parameters])
        for parameter, part, n_users in zip(parameters, parts, told.tolist(), strict=False):
            parameter.grad = part.view_as(parameter) if n_users else None
        return told.tolist()[len(parameters) :]

    def total(self, tensor: Tensor) -> Tensor:
        """The tensor becomes the sum of all processes' tensors, and is returned."""
        if self.size > 1:
            with _all_there():
                dist.all_reduce(tensor)
        return tensor

    def any(self, flag: bool) -> bool:
        """Whether the flag is up in any process."""
        if self.size == 1:
            return flag
        told = torch.tensor(int(flag), device=self._device)
        with _all_there():
            dist.all_reduce(told)
        return bool(told.item())

    def from_first(self, values: Sequence[float]) -> list[float]:
        """What the first process says; the others give as many values."""
        if self.size == 1:
            return list(values)
        told = torch.tensor(values, dtype=torch.float64, device=self._device)
        with _all_there():
            dist.broadcast(told, 0)
        found: list[float] = told.tolist()
        return found

    def wait(self) -> None:
        """Until all processes are here."""
        self.any(False)

    def gather(self, own: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The tensors of all processes, of one shape each; those of rank n > 0 as `name@n`."""
        found = dict(own)
        if self.size == 1:
            return found
        for name, tensor in own.items():
            here = tensor.to(self._device)
            everyones = [torch.empty_like(here) for _ in range(self.size)]
            with _all_there():
                dist.all_gather(everyones, here)
            found |= {f"{name}{OWN}{n}": t.cpu() for n, t in enumerate(everyones) if n}
        return found

    def own(self, gathered: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """This process's part of what `gather` found; empty if others were asked then."""
        n_others = len({name.partition(OWN)[2] for name in gathered} - {""})
        if n_others + 1 != self.size:
            return {}
        mine = str(self.rank) if self.rank else ""
        return {
            name.partition(OWN)[0]: tensor
            for name, tensor in gathered.items()
            if name.partition(OWN)[2] == mine
        }


@contextlib.contextmanager
def _all_there() -> Iterator[None]:
    """Raises WorkerLost where another process is gone."""
    try:
        yield
    except RuntimeError as error:
        if "out of memory" in str(error):
            raise
        raise _lost() from error


@contextlib.contextmanager
def sending_inside() -> Iterator[None]:
    """The same around work that sends things now and then: other errors stay what they are."""
    try:
        yield
    except RuntimeError as error:
        if isinstance(error, dist.DistError) or "gloo" in str(error):
            raise _lost() from error
        raise


def _lost() -> WorkerLost:
    return WorkerLost(
        "another process of this training has ended or cannot be reached; the same command "
        "resumes from the last checkpoint"
    )


def asked_for() -> bool:
    """Whether torchrun started this process."""
    return {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"} <= os.environ.keys()


def local_device(device: torch.device) -> torch.device:
    """The GPU of this process, where torchrun started one for each; any other stays."""
    if device.type != "cuda" or device.index is not None or not asked_for():
        return device
    index = int(os.environ.get("LOCAL_RANK", "0"))
    if index >= torch.cuda.device_count():
        raise ConfigError(f"process {index} of this machine has no GPU of its own")
    torch.cuda.set_device(index)
    return torch.device("cuda", index)


@contextlib.contextmanager
def joined(device: torch.device) -> Iterator[Ranks]:
    """Meets the other processes that torchrun started; alone without it. Raises WorkerLost."""
    if not asked_for():
        yield Ranks()
        return
    with _all_there():
        dist.init_process_group("nccl" if device.type == "cuda" else "gloo", timeout=PATIENCE)
    try:
        yield Ranks(dist.get_rank(), dist.get_world_size(), device)
    finally:
        dist.destroy_process_group()
