"""Pairs as padded tensors. Padding is on the right, on both sides, always.

The source ends in EOS; the decoder reads the target after BOS and writes it up to EOS.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from synmt_cli.core.model.modifier import Paths, Side


@dataclass(frozen=True, slots=True)
class Batch:
    """Some pairs, ready for the model. target begins with BOS, target_out ends in EOS.

    target has no `pad`: its padding is in the future of every token, or not read at all.
    """

    source: Side
    target: Side
    target_out: Tensor

    def to(self, device: torch.device) -> Batch:
        """The batch on a device."""
        return Batch(
            to_device(self.source, device),
            to_device(self.target, device),
            self.target_out.to(device, non_blocking=True),
        )


def to_device(source: Side, device: torch.device) -> Side:
    """The same side on another device."""

    def moved(x: Tensor) -> Tensor:
        return x.to(device, non_blocking=True)

    paths = source.paths
    return Side(
        moved(source.ids),
        None if source.pad is None else moved(source.pad),
        {name: moved(values) for name, values in source.features.items()},
        paths and Paths(moved(paths.labels), moved(paths.shorter), paths.sizes),
    )
