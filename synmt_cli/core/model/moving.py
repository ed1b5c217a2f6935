"""Tensors on their way to a device."""

import torch
from torch import Tensor


def moved(x: Tensor, device: torch.device | str) -> Tensor:
    """The same values on a device. From pinned memory, so that the host does not wait for a GPU."""
    if x.device.type == "cpu" and torch.device(device).type == "cuda":
        x = x.pin_memory()
    return x.to(device, non_blocking=True)
