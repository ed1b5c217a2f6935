"""The largest of many numbers, faster than torch.topk over a whole vocabulary."""

import torch
from torch import Tensor

GROUP = 64


def top(x: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """x.topk(k): values and indices, (..., k), along the last axis.

    The k largest lie in the k groups with the largest maxima, and maxima are cheap: over
    8,000 numbers this takes a third of topk's time. The choice among equal values is undefined.

    >>> top(torch.arange(1000.0), 2)[1].tolist()
    [999, 998]
    """
    n_groups = x.size(-1) // GROUP
    if n_groups <= k or x.device.type != "cpu":  # a GPU does it in one launch
        values, indices = x.topk(k, dim=-1)
        return values, indices
    n_grouped = n_groups * GROUP
    groups = x[..., :n_grouped].unflatten(-1, (n_groups, GROUP))
    best = groups.amax(-1).topk(k, dim=-1).indices.sort(-1).values  # (..., k) groups
    members = groups.gather(-2, best[..., None].expand(*best.shape, GROUP)).flatten(-2)
    indices = best[..., None] * GROUP + torch.arange(GROUP, device=x.device)  # (..., k, GROUP)
    rest = torch.arange(n_grouped, x.size(-1), device=x.device)  # too few for a group
    candidates = torch.cat((members, x[..., n_grouped:]), dim=-1)  # (..., k * GROUP + rest)
    indices = torch.cat((indices.flatten(-2), rest.expand(*x.shape[:-1], -1)), dim=-1)
    values, places = candidates.topk(k, dim=-1)  # (..., k)
    return values, indices.gather(-1, places)
