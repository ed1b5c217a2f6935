"""Pairs as padded tensors. Padding is on the right, on both sides, always.

The source ends in EOS; the decoder reads the target after BOS and writes it up to EOS.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from synmt_cli.core.data.ragged import Array, Ragged
from synmt_cli.core.model.modifier import Paths, Side

if TYPE_CHECKING:
    from synmt_cli.core.data.labels import PathTree


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


def side(
    ids: Ragged, features: Mapping[str, Ragged], rows: Array, pad: int, paths: PathTree
) -> Side:
    """The source side of these rows. Feature values at padding are 0 and never matter.

    paths: the tree whose rows are the values of the feature `path`.
    """
    padded = torch.from_numpy(ids.padded(rows, pad))
    lengths = ids.lengths_of(rows)
    ragged = bool((lengths != lengths.max(initial=0)).any())
    mask = torch.from_numpy(np.arange(padded.size(1)) >= lengths[:, None]) if ragged else None
    values = {name: f.padded(rows, 0) for name, f in features.items()}
    own_paths = None
    if "path" in values:
        values["path"], own_paths = paths.batch(values["path"])
    return Side(padded, mask, {n: torch.from_numpy(v) for n, v in values.items()}, own_paths)


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
