"""Dropout of activations. Srivastava et al. (2014).

On a CPU torch draws one number for each element, which takes a tenth of an update of a small model.
Here 64 random bits decide on four elements.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

LEVELS = 2**16  # rates are rounded to one of them


def dropout(x: Tensor, rate: float, training: bool) -> Tensor:
    """Sets each element to 0 with probability `rate` and divides what is left by 1 - rate."""
    if not (training and rate):
        return x
    if x.device.type != "cpu":
        return F.dropout(x, rate)
    n_dropped = round(rate * LEVELS)
    if n_dropped == LEVELS:
        return x * 0
    bits = torch.randint(-(2**63), 2**63 - 1, (-(-x.numel() // 4),))
    drawn = bits.view(torch.int16)[: x.numel()].view(x.shape)  # from -LEVELS / 2 on
    factor = torch.empty(x.shape, dtype=x.dtype)
    torch.ge(drawn, n_dropped - LEVELS // 2, out=factor)
    scale = LEVELS / (LEVELS - n_dropped)
    if x.dtype != torch.float32:  # half precision would round the scale
        return x * factor * scale
    return x * factor.mul_(scale)
