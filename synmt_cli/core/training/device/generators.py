"""The states of torch's random generators that training draws from, as tensors of a checkpoint."""

from collections.abc import Mapping

import torch
from torch import Tensor

PREFIX = "random."  # of their names
CPU, CUDA = f"{PREFIX}cpu", f"{PREFIX}cuda"


def states(device: torch.device) -> dict[str, Tensor]:
    """The state of the CPU's generator, and on a GPU also that of the GPU's."""
    found = {CPU: torch.get_rng_state()}
    if device.type == "cuda":
        found[CUDA] = torch.cuda.get_rng_state(device)
    return found


def restore(saved: Mapping[str, Tensor], device: torch.device) -> None:
    """Sets the generators to what `states` returned."""
    torch.set_rng_state(saved[CPU])
    if device.type == "cuda" and CUDA in saved:
        torch.cuda.set_rng_state(saved[CUDA], device)


def problem(name: str, state: Tensor) -> str:
    """What is wrong with a saved state, or "". A GPU's is checked when it is used."""
    like = torch.get_rng_state()
    is_cpu = name == CPU
    fits = state.dtype == like.dtype and (state.shape == like.shape or not is_cpu)
    if fits and is_cpu and not state.is_meta:
        try:
            torch.Generator().set_state(state)
        except RuntimeError:
            fits = False
    return "" if fits else "is not a generator state"
