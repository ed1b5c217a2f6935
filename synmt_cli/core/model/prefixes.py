"""Prefixes packed into rows, for decoders that re-read them.

Two prefixes share a row that has room for both: the longest and the shortest, the next longest
and the next shortest, and so on. A target of T tokens has prefixes of n and of T + 1 - n tokens,
which fill a row, so if all are read, padding is due only to different lengths of the targets in
a pass, and to a middle prefix that is left alone. A mask keeps the prefixes apart.

    T = 4:   1 2 3 4 | 1        the prefixes of 4 tokens and of 1
             1 2 3 | 1 2        the prefixes of 3 and of 2

All of this is computed on the host from the lengths: no device is asked for anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from synmt_cli.core.model.layers import PackedPrefixes
from synmt_cli.core.model.modifier import Side
from synmt_cli.core.model.moving import moved
from synmt_cli.core.trees.arc_standard import NEVER

IN_ROW = 2  # prefixes at most


def tokens_per_pass(device: torch.device, d_model: int) -> int:
    """The number of tokens in a pass. Training takes more where a batch has more.

    The cache of a CPU is small. A GPU starts as many kernels for a small pass as for a large one,
    so a pass has as many numbers as 2^14 tokens of a model of base size.
    """
    return 2**13 if device.type == "cpu" else max(2**14, 2**23 // d_model)


class Place(NamedTuple):
    """The place of one prefix of `length` tokens: its row and the column where it begins."""

    row: int
    begin: int
    length: int


@dataclass(frozen=True, slots=True)
class Pass:
    """R rows of packed prefixes, R / B consecutive ones for each of the B targets in `targets`.

    cells: (5, R, W), for each token of a row: its index among all targets' tokens (B * T); the
    number of its prefix, -1 at padding; its position there; the column where the prefix begins,
    and its length. newest: (R, 2), the columns of the last tokens. ends: (N,), the indices in
    newest.flatten() that have one. predicted: (N,), the index in Batch.target_out.flatten() of the
    token that each of these predicts.
    """

    targets: slice
    cells: Tensor
    newest: Tensor
    ends: Tensor
    predicted: Tensor

    def to(self, device: torch.device) -> Pass:
        """The same pass on a device."""
        tensors = self.cells, self.newest, self.ends, self.predicted
        return Pass(self.targets, *(moved(x, device) for x in tensors))

    def side(self, target: Side) -> Side:
        """The packed prefixes, (R, W). target: the whole targets, (B, T).

        Positions in features become columns; arcs that come only after a prefix are left out.
        """
        flat, number, _, begin, length = self.cells.unbind()  # (R, W) each
        ids = target.ids.take(flat)
        values = {name: x.take(flat) for name, x in target.features.items()}
        if values:
            is_known = (values["arc"] < length) & (number >= 0)
            values["arc"] = (values["arc"] + begin).where(is_known, NEVER)
            values["head_begin"] = values["head_begin"] + begin
            values["head_end"] = values["head_end"] + begin
        return Side(ids, features=values)

    def prefixes(self) -> PackedPrefixes:
        """The positions of the tokens, which of them see each other, and which are the newest."""
        _, number, position, _, _ = self.cells.unbind()  # (R, W) each
        visible = number[:, None, :, None] == number[:, None, None, :]  # (R, 1, W, W)
        return PackedPrefixes(position, visible, self.newest)


def longest_first(lengths: Sequence[int], device: torch.device) -> tuple[list[int], Tensor]:
    """The lengths in falling order, as `packed_passes` takes them, and the target of each."""
    order = np.argsort(-np.array(lengths), kind="stable")
    return [lengths[row] for row in order], moved(torch.from_numpy(order), device)


def draw(longest: int, share: float) -> list[int]:
    """Draws lengths of prefixes to read, in rising order, each with probability `share`."""
    if share >= 1:
        return list(range(1, longest + 1))
    return [n for n, drawn in enumerate(torch.rand(longest).lt(share).tolist(), 1) if drawn]


def packed(lengths: Sequence[int], width: int) -> list[Place]:
    """Places prefixes of these lengths, which rise, in as few rows of `width` tokens as possible.

    >>> [tuple(place) for place in packed([1, 2, 3], 4)]
    [(0, 0, 3), (0, 3, 1), (1, 0, 2)]
    """
    places: list[Place] = []
    low, high, row = 0, len(lengths) - 1, 0
    while low <= high:
        places.append(Place(row, 0, lengths[high]))
        if low < high and lengths[high] + lengths[low] <= width:
            places.append(Place(row, lengths[high], lengths[low]))
            low += 1
        high, row = high - 1, row + 1
    return places


def packed_passes(
    lengths: Sequence[int], longest: int, drawn: Sequence[int], n_cells: int
) -> Iterator[Pass]:
    """Yields passes of at most n_cells tokens, padding counted, or of one row.

    lengths: of the targets, in falling order. longest: their length with padding. drawn: the
    lengths of the prefixes to read, in rising order.
    """
    begin = 0
    while begin < len(lengths) and (own := _up_to(lengths[begin], drawn)):
        width = own[-1] + (own[0] if len(own) > 1 else 0)
        n_rows = packed(own, width)[-1].row + 1  # shorter targets need no more of that width
        end = min(len(lengths), begin + max(1, n_cells // (n_rows * width)))
        at_once = max(1, n_cells // width) if end == begin + 1 else n_rows
        here = lengths[begin:end]
        places = {n: _table(packed(_up_to(n, drawn), width)) for n in set(here)}
        for first in range(0, n_rows, at_once):
            rows = range(first, min(first + at_once, n_rows))
            chosen = [places[length] for length in here]
            yield _pass(slice(begin, end), chosen, rows, width, longest)
        begin = end


def _up_to(length: int, drawn: Sequence[int]) -> list[int]:
    """The drawn prefixes that a target of this length has."""
    return [n for n in drawn if n <= length]


def _table(places: Sequence[Place]) -> np.ndarray:
    """The places as an array, (N, 3)."""
    return np.array(places, np.int64).reshape(-1, len(Place._fields))


def _pass(
    targets: slice, places: Sequence[np.ndarray], rows: range, width: int, longest: int
) -> Pass:
    """The pass with these rows of each target. places: for each target what `_table` returns."""
    known = np.concatenate(places)  # (P, 3), of all targets
    which = np.repeat(np.arange(len(places)), [len(own) for own in places])
    here = (known[:, 0] >= rows.start) & (known[:, 0] < rows.stop)
    (row, begin, length), which = known[here].T, which[here]
    line = which * len(rows) + row - rows.start  # the row in this pass
    start = (targets.start + which) * longest
    column = (begin > 0).astype(np.int64)

    # The prefix of each token, and its position there.
    prefix = np.repeat(np.arange(len(length)), length)
    position = np.arange(len(prefix)) - np.repeat(length.cumsum() - length, length)
    cells = np.zeros((5, len(places) * len(rows) * width), np.int64)
    cells[1] = -1
    tokens = start[prefix] + position, column[prefix], position, begin[prefix], length[prefix]
    cells[:, (line * width + begin)[prefix] + position] = tokens
    newest = np.zeros((len(places) * len(rows), IN_ROW), np.int64)
    newest[line, column] = begin + length - 1
    predicted = np.full(newest.shape, -1, np.int64)
    predicted[line, column] = start + length - 1
    flat = predicted.ravel()
    ends = np.flatnonzero(flat >= 0)
    return Pass(
        targets,
        torch.from_numpy(cells.reshape(5, -1, width)),
        torch.from_numpy(newest),
        torch.from_numpy(ends),
        torch.from_numpy(flat[ends]),
    )
