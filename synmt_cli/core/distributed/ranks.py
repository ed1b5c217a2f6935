"""Several processes that train one model, and the messages between them (torch.distributed).

Each process has all records, and the whole model or its shard of each layer (sharding.py). The
batches of an update are shared out (training/updates.py), so no pair is read twice or lost.
Gradients and losses are summed over the processes once an update, and every process makes the
same step. Only the first one validates, saves and reports.
"""

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import Tensor, nn

from synmt_cli import signals
from synmt_cli.core.distributed.launch import (
    MEETING,
    PeerLost,
    is_one_of_several,
    refuse_one_card,
)
from synmt_cli.core.run import device as devices
from synmt_cli.errors import ConfigError, is_of_memory

PATIENCE = timedelta(hours=2)  # the first process may validate that long
OWN = "@"  # before the rank, in names of tensors that belong to one process


class Ranks:
    """This process, `rank`, among `size`. Alone it sends no messages.

    Tensors on GPUs go from card to card. Messages of the host, such as flags, go from host to
    host, so that no card is waited for.
    """

    def __init__(self, rank: int = 0, size: int = 1) -> None:
        self.rank, self.size = rank, size

    @property
    def is_first(self) -> bool:
        """Whether this is the process that saves and reports."""
        return self.rank == 0

    def reduce(self, parameters: Sequence[nn.Parameter], sums: Tensor) -> Tensor:
        """Makes each gradient the sum over all processes. Returns the sums over all processes.

        sums: (N,) float64. A parameter that no process used gets no gradient.
        """
        if self.size == 1:
            return sums
        gradients = [p.grad if p.grad is not None else torch.zeros_like(p) for p in parameters]
        flat = torch.cat([gradient.flatten() for gradient in gradients])
        used = torch.tensor([p.grad is not None for p in parameters], dtype=sums.dtype)
        self.total(flat)
        if sums.device.type == "cpu":  # one message instead of two
            used, sums = self.total(torch.cat((used, sums))).split([len(used), len(sums)])
        else:
            used, sums = self.total(used), self.total(sums)
        parts = flat.split([p.numel() for p in parameters])
        for parameter, part, n_users in zip(parameters, parts, used.tolist(), strict=True):
            parameter.grad = part.view_as(parameter) if n_users else None
        return sums

    def total(self, tensor: Tensor) -> Tensor:
        """Makes the tensor the sum of all processes' tensors, and returns it."""
        if self.size > 1:
            with _collective():
                dist.all_reduce(tensor)
        return tensor

    def any(self, flag: bool) -> bool:
        """Whether the flag is set in any process."""
        return bool(self.total(torch.tensor(int(flag))).item())

    def from_first(self, values: Sequence[float]) -> list[float]:
        """The values of the first process; the others pass as many, which do not matter."""
        if self.size == 1:
            return list(values)
        message = torch.tensor(values, dtype=torch.float64)
        with _collective():
            dist.broadcast(message, 0)
        return [float(value) for value in message.tolist()]

    def refuse_unequal(self, value: int, what: str) -> None:
        """Raises ConfigError, in all processes, where the value of one is not that of the first.

        value: below 2^53. what: names in the plural what the value stands for.
        """
        (of_first,) = self.from_first([value])
        differs = torch.zeros(self.size)
        differs[self.rank] = value != of_first
        if others := self.total(differs).nonzero().tolist():
            numbers = ", ".join(str(number) for (number,) in others)
            have = f"process {numbers} has" if len(others) == 1 else f"processes {numbers} have"
            raise ConfigError(
                f"{have} other {what} than process 0 of this training; all need the same"
            )

    def wait(self) -> None:
        """Returns when all processes are here."""
        self.any(False)

    def gather(self, own: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The CPU tensors of all processes, of one shape each; those of rank n > 0 as `name@n`."""
        gathered = dict(own)
        if self.size == 1:
            return gathered
        for name, tensor in own.items():
            everyones = [torch.empty_like(tensor) for _ in range(self.size)]
            with _collective():
                dist.all_gather(everyones, tensor)
            gathered |= {f"{name}{OWN}{n}": t for n, t in enumerate(everyones) if n}
        return gathered

    def own(self, gathered: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """This process's part of `gathered`; {} if another number of processes gathered."""
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
def _collective() -> Iterator[None]:
    """Wraps a collective operation. Raises PeerLost if another process is gone."""
    try:
        yield
    except RuntimeError as error:
        if is_of_memory(error):
            raise
        raise _lost(error) from error


@contextlib.contextmanager
def collectives_inside() -> Iterator[None]:
    """Wraps work with collective operations. Raises PeerLost if they fail; other errors pass."""
    try:
        yield
    except RuntimeError as error:
        if isinstance(error, dist.DistError) or "gloo" in str(error):
            raise _lost(error) from error
        raise


def _lost(error: RuntimeError) -> PeerLost:
    """The error for a failed message to other processes. error: what the library says."""
    said = str(error).partition("\n")[0]
    return PeerLost(
        "another process of this training has ended or cannot be reached; unless it says why, the "
        f"same command resumes from the last checkpoint ({said})"
    )


def own_device(name: str) -> torch.device:
    """The device of this process: its own GPU if several were started here for GPUs.

    It is chosen before anything is put on a device, so no process takes memory on another's card.
    Raises Unavailable, UsageError, and ConfigError where there are fewer cards than processes.
    """
    device = devices.named(name)
    if device.type != "cuda" or not is_one_of_several():
        return devices.tried(device)
    if _has_given_card():
        return devices.tried(torch.device("cuda", device.index or 0))
    refuse_one_card(name, int(os.environ.get("LOCAL_WORLD_SIZE", "1")))
    if device.index is None:
        index, n_cards = int(os.environ.get("LOCAL_RANK", "0")), torch.cuda.device_count()
        if 0 < n_cards <= index:
            raise ConfigError(
                f"process {index} of this machine, counted from 0, has no GPU of its own: "
                f"there are {n_cards}; start as many processes"
            )
        device = torch.device("cuda", index)
    return devices.tried(device)


def _has_given_card() -> bool:
    """Whether each process was given one card, as SLURM does for --gpus-per-task=1.

    `launch` and torchrun give all processes that they start the same cards.
    """
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    shared = {MEETING, "TORCHELASTIC_RUN_ID"} & os.environ.keys()
    return not shared and bool(visible) and "," not in visible


@contextlib.contextmanager
def joined(device: torch.device, request: signals.Request) -> Iterator[Ranks]:
    """Joins the other processes that `launch` or torchrun started, if any. Raises PeerLost.

    request: to end; while this process waits for the others, a signal ends it at once.
    """
    if not is_one_of_several():
        yield Ranks()
        return
    backend = "cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo"
    with signals.ending_at_once(request), _collective():
        if (meeting := os.environ.get(MEETING)) is None:
            dist.init_process_group(backend, timeout=PATIENCE)
        else:
            rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
            store = dist.FileStore(meeting, size)  # type: ignore[attr-defined]
            dist.init_process_group(backend, None, PATIENCE, size, rank, store)
    try:
        yield Ranks(dist.get_rank(), dist.get_world_size())
    finally:
        dist.destroy_process_group()
