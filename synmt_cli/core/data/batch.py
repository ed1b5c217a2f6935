"""Pairs as padded tensors, as many as a budget of tokens allows. Padding is always on the right.

The source ends in EOS; the decoder reads the target after BOS and writes it up to EOS.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from synmt_cli.core.data.ragged import Array
from synmt_cli.core.model.modifier import Side
from synmt_cli.core.model.moving import moved


@dataclass(frozen=True, slots=True)
class Batch:
    """Some pairs, ready for the model. target begins with BOS, target_out ends in EOS.

    target has no `pad`: its padding is in the future of every token, or not read at all.
    lengths: of the targets, EOS counted. real: (N,), the places of their tokens in
    target_out.flatten(); None if it has no padding. Both are made with the batch: asking a
    device for them later would mean waiting for it.
    """

    source: Side
    target: Side
    target_out: Tensor
    lengths: tuple[int, ...]
    real: Tensor | None

    @classmethod
    def of(cls, source: Side, target: Side, target_out: Tensor, lengths: Array) -> Batch:
        """A batch on the CPU. lengths: (B,), of the targets, EOS counted."""
        width = target_out.size(1)
        is_real = np.arange(width) < lengths[:, None]  # (B, T)
        real = None if is_real.all() else torch.from_numpy(np.flatnonzero(is_real))
        return cls(source, target, target_out, tuple(lengths.tolist()), real)

    def tokens(self) -> Tensor:
        """The target tokens without padding, (N,)."""
        return self.without_padding(self.target_out)

    def without_padding(self, values: Tensor) -> Tensor:
        """What stands at the target tokens: (B, T, ...) -> (N, ...)."""
        flat = values.flatten(0, 1)
        return flat if self.real is None else flat.index_select(0, self.real)

    def to(self, device: torch.device) -> Batch:
        """The batch on a device."""
        return Batch(
            to_device(self.source, device),
            to_device(self.target, device),
            moved(self.target_out, device),
            self.lengths,
            None if self.real is None else moved(self.real, device),
        )

    def tensors(self) -> Iterator[Tensor]:
        """Yields every tensor of the batch."""
        for side in (self.source, self.target):
            yield from (side.ids, *side.features.values())
            yield from () if side.pad is None else (side.pad,)
            if side.paths:
                yield from (side.paths.labels, side.paths.shorter)
                yield from (side.paths.whole, side.paths.places)
        yield self.target_out
        yield from () if self.real is None else (self.real,)


def to_device(source: Side, device: torch.device) -> Side:
    """The same side on another device."""

    return Side(
        moved(source.ids, device),
        None if source.pad is None else moved(source.pad, device),
        {name: moved(values, device) for name, values in source.features.items()},
        source.paths and source.paths.to(device),
        source.is_single,
        source.lengths,
    )


def fill(order: Array, lengths: Array, batch_tokens: int, batch_rows: int = 0) -> list[Array]:
    """Cuts `order` so that rows x longest <= batch_tokens; a single row may be longer.

    batch_rows: how many rows at most; 0 is any number.
    """
    cuts = []
    begin, longest = 0, 0
    for i, length in enumerate(lengths[order].tolist()):
        longest = max(longest, length)
        full = (i - begin + 1) * longest > batch_tokens or i - begin == (batch_rows or -1)
        if full and i > begin:
            cuts.append(i)
            begin, longest = i, length
    return np.split(order, cuts) if len(order) else []


def by_length(lengths: Array, batch_tokens: int, batch_rows: int = 0) -> list[Array]:
    """All rows, the longest first, cut by `fill`: rows of a batch are of similar length."""
    return fill(np.argsort(-lengths, kind="stable"), lengths, batch_tokens, batch_rows)
