"""Rows of different lengths, end to end in one array: in memory, or mapped from a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

Array = np.ndarray


@dataclass(frozen=True, slots=True)
class Ragged:
    """n rows. values: (sum of lengths,). offsets: (n + 1,), where each row begins, then the end."""

    values: Array
    offsets: Array

    @classmethod
    def of(cls, rows: Sequence[Sequence[float]], dtype: type) -> Ragged:
        """Copies the rows into one array."""
        offsets = np.zeros(len(rows) + 1, np.int64)
        np.cumsum(np.fromiter(map(len, rows), np.int64, len(rows)), out=offsets[1:])
        flat = (value for row in rows for value in row)
        values: Array = np.fromiter(flat, dtype, int(offsets[-1]))
        return cls(values, offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> Array:
        """The lengths of all rows, (n,)."""
        return np.diff(self.offsets)

    def lengths_of(self, rows: Array) -> Array:
        """The lengths of some rows, (len(rows),)."""
        lengths: Array = self.offsets[rows + 1] - self.offsets[rows]
        return lengths

    def padded(self, rows: Array, fill: float) -> Array:
        """The chosen rows, (len(rows), longest), padded with `fill`.

        Integers become 64 bits wide, however they are kept, since torch indexes with those.
        """
        lengths, starts = self.lengths_of(rows), self.offsets[rows]
        columns = np.arange(lengths.max(initial=0))
        inside = columns < lengths[:, None]
        kept = self.values.dtype
        out = np.full(inside.shape, fill, kept if kept.kind == "f" else np.int64)
        out[inside] = self.values[(starts[:, None] + columns)[inside]]
        return out
