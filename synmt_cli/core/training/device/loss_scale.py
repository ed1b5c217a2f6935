"""Loss scaling, for gradients in fp16 (Micikevicius et al. 2018).

fp16 has no numbers below 6e-8. The loss is multiplied by a scale, and the gradient divided by it
in single precision. Where a gradient overflows, the update is left out and the scale halved;
after AFTER updates without overflow it is doubled. The host does not wait for the device: the
optimizer reads there whether to leave out an update (as with torch.amp.GradScaler, which does not
support gradients that are summed over processes).
"""

from __future__ import annotations

import torch
from torch import Tensor

FIRST, AFTER, LEAST, MOST = 2.0**16, 2000, 1.0, 2.0**24


class LossScale:
    """scale: by which the loss is multiplied. age: updates since it changed. Both 0-dimensional."""

    def __init__(self, device: torch.device, scale: float = FIRST, age: float = 0.0) -> None:
        self.scale = torch.tensor(scale, device=device)
        self.age = torch.tensor(age, device=device)

    def update(self, norm: Tensor) -> tuple[Tensor, Tensor]:
        """norm: of a gradient -> 1 if it overflowed, else 0; and the norm, 0 if it overflowed.

        If it did at the least scale, the norm stays as it is, which ends the training: no smaller
        scale is left to try.
        """
        is_lost = ~norm.isfinite()
        known = norm.masked_fill(is_lost & (self.scale > LEAST), 0.0)
        age = torch.where(is_lost, 0.0, self.age + 1)
        grows = age >= AFTER
        factor = torch.where(is_lost, 0.5, torch.where(grows, 2.0, 1.0))
        self.scale = (self.scale * factor).clamp(LEAST, MOST)
        self.age = torch.where(grows, 0.0, age)
        return is_lost.float(), known
