"""The slots in which tokens of prefixes are remembered, known to the host.

A source has slots that its K prefixes share. The prefixes of a beam soon have one ancestor, so
most tokens that were ever read belong to no prefix any longer: their slots are free, and new
tokens take the first free ones. A source needs about as many slots as its longest prefix has
tokens, and a few for what its prefixes differ in. Which slot a token takes depends on the
prefixes of its own source alone.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from synmt_cli.core.data.ragged import Array
from synmt_cli.core.decoding.batching.supply import whole


class Slots:
    """The slots of B sources, none at first.

    in_order: whether `slots_of_tokens` is going to be called.
    """

    def __init__(self, in_order: bool) -> None:
        self._own = np.zeros((0, 0, 0), dtype=bool)  # (B, K, room for slots): whether it has them
        # The slot of each token of each prefix, (B, K, room for tokens).
        self._slot_of_token = np.zeros((0, 0, 0), dtype=np.int64) if in_order else None

    def enter(self, places: Sequence[int], n: int) -> None:
        """Puts new sources, which have no slots yet, into these places, out of n."""
        self._own = _lengthened(self._own, n)
        self._own[places] = False
        if self._slot_of_token is not None:
            self._slot_of_token = _lengthened(self._slot_of_token, n)

    def take(self, n_beams: int) -> Array:
        """A slot for a new token of each prefix, (B, K)."""
        if self._own.shape[1] != n_beams:  # the first token of all
            self._own = np.zeros((len(self._own), n_beams, 0), dtype=bool)
        taken = self._own.any(1)  # (B, room)
        room = taken.shape[1]
        missing = n_beams - room + int(np.count_nonzero(taken, axis=1).max(initial=0))
        if missing > 0:
            more = whole(room + missing) - room
            self._own = np.pad(self._own, ((0, 0), (0, 0), (0, more)))
            taken = np.pad(taken, ((0, 0), (0, more)))
        if n_beams == 1:  # the first that is free
            slots: Array = taken.argmin(axis=1)[:, None]
        else:
            slots = taken.argsort(axis=1, kind="stable")[:, :n_beams]
        rows = np.arange(len(slots))[:, None]
        self._own[rows, np.arange(n_beams), slots] = True
        if self._slot_of_token is not None:
            self._write_down(slots)
        return slots

    def _write_down(self, slots: Array) -> None:
        assert self._slot_of_token is not None
        n_sources, n_beams = slots.shape
        if self._slot_of_token.shape[1] != n_beams:
            self._slot_of_token = np.zeros((n_sources, n_beams, 0), dtype=np.int64)
        position = self._own.sum(2) - 1  # (B, K)
        room = self._slot_of_token.shape[2]
        more = whole(int(position.max(initial=0)) + 1) - room
        if more > 0:
            self._slot_of_token = np.pad(self._slot_of_token, ((0, 0), (0, 0), (0, more)))
        np.put_along_axis(self._slot_of_token, position[..., None], slots[..., None], axis=2)

    def seen(self) -> Array:
        """(B, K, M) bool: the slots of each prefix's tokens. M: a `whole` number."""
        used = np.flatnonzero(self._own.any((0, 1)))
        return self._own[..., : whole(int(used[-1]) + 1 if len(used) else 1)]

    def slots_of_tokens(self, width: int) -> Array:
        """(B, K, width): the slot of each token of each prefix; any number after the last token."""
        assert self._slot_of_token is not None
        more = width - self._slot_of_token.shape[2]
        if more > 0:
            return np.pad(self._slot_of_token, ((0, 0), (0, 0), (0, more)))
        return self._slot_of_token[..., :width]

    def select(self, places: Sequence[int], parents: Array | None) -> None:
        """Drops sources and reorders prefixes, like `Scorer.select`. places: of those that stay."""
        rows = np.array(places, dtype=np.int64)
        index = rows if parents is None else (rows[:, None], parents)
        self._own = self._own[index]
        if self._slot_of_token is not None:
            self._slot_of_token = self._slot_of_token[index]


def _lengthened(x: Array, n: int) -> Array:
    """x with n rows; rows after its own are zero."""
    return x if len(x) == n else np.pad(x, ((0, n - len(x)), (0, 0), (0, 0)))
