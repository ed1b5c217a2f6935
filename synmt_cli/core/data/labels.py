"""Dependency labels as numbers: a label by its id, a path of labels by its row in a tree.

Ids follow the order in which labels first occur in training; labels.json keeps it. Id 0 stands for
no label (end of sentence, pieces outside the tree) and for labels that do not occur in training,
neither whole nor in their universal part (`nsubj` of `nsubj:outer`).
"""

from __future__ import annotations

import functools
from collections.abc import Iterable

import numpy as np
import torch

from synmt_cli.core.data.ragged import Array
from synmt_cli.core.model.modifier import Paths

UNKNOWN_LABEL = 0  # also the id of no label


class Labels:
    """The ids of labels. growing: whether a new label gets the next id, or UNKNOWN_LABEL."""

    def __init__(self, names: Iterable[str] = (), growing: bool = False) -> None:
        self._ids = {name: id for id, name in enumerate(names, UNKNOWN_LABEL + 1)}
        self.growing = growing

    def __len__(self) -> int:
        return len(self._ids)

    @property
    def names(self) -> list[str]:
        """The labels from id 1 on."""
        return list(self._ids)

    def id(self, name: str) -> int:
        """The id of a label, or of its part before the colon if the whole is not in training.

        "" is not a label.

        >>> labels = Labels(["nsubj", "obj"])
        >>> [labels.id(name) for name in ("obj", "obj:agent", "", "new")]
        [2, 2, 0, 0]
        """
        if name and self.growing:
            return self._ids.setdefault(name, len(self._ids) + UNKNOWN_LABEL + 1)
        return self._ids.get(name) or self._ids.get(name.partition(":")[0], UNKNOWN_LABEL)

    def merge(self, others: Labels) -> Array:
        """Adds the labels of `others`, if these here grow.

        Returns the id here of each label, indexed by its id there.
        """
        return np.array([UNKNOWN_LABEL, *map(self.id, others.names)], np.int64)


class PathTree:
    """Distinct paths as a tree of prefixes, which grows with each new path. Row 0: the empty path.

    The path of a word is the path of its head and one more label, so a corpus has few rows, and
    a row's result can be computed from the result of its prefix.
    """

    def __init__(self, table: Array | None = None) -> None:
        """table: that of another tree; may be a mapped file, which is not read until it is used."""
        root = np.array([(UNKNOWN_LABEL, 0, 0)], np.int64)
        self._table = root if table is None else table
        self._added: list[tuple[int, int, int]] = []  # rows that follow those of the table

    @property
    def table(self) -> Array:
        """(rows, 3): the last label of each path, the row of its prefix, its length."""
        if self._added:
            self._table = np.concatenate((self._table, np.array(self._added, np.int64)))
            self._added = []
        return self._table

    @functools.cached_property
    def _rows(self) -> dict[tuple[int, int], int]:
        """The row of each path by its last label and the row of its prefix."""
        pairs = self.table[1:, :2].tolist()
        return {(label, prefix): row for row, (label, prefix) in enumerate(pairs, 1)}

    def row(self, labels: Iterable[int]) -> int:
        """The row of a path of label ids.

        >>> tree = PathTree()
        >>> tree.row([]), tree.row([5, 7]), tree.row([5]), tree.row([5, 7])
        (0, 2, 1, 2)
        """
        row = 0
        for label in labels:
            row = self.longer(row, label)
        return row

    def longer(self, row: int, label: int) -> int:
        """The row of the path of `row` with one more label; adds it if it is new."""
        n_before = len(self._table)
        n = n_before + len(self._added)
        longer = self._rows.setdefault((label, row), n)
        if longer == n:
            prefix = self._table[row] if row < n_before else self._added[row - n_before]
            self._added.append((label, row, int(prefix[2]) + 1))
        return longer

    def merge(self, others: PathTree, labels: Array) -> Array:
        """Adds the paths of `others`. Returns the row here of each, indexed by its row there.

        labels: the id here of each label of `others`, indexed by its id there.
        """
        rows = [0]
        for label, prefix, _ in others.table[1:].tolist():
            rows.append(self.longer(rows[prefix], int(labels[label])))
        return np.array(rows, np.int64)

    def paths_of(self, rows: Array) -> tuple[Array, Paths]:
        """The same rows, of any shape, as rows of the batch's own paths, and these paths."""
        labels, shorter, lengths = self.table.T
        used = np.unique(np.append(rows, 0))
        # Add the prefixes: one may be the path of a word that has no piece.
        while len(closed := np.union1d(used, shorter[used])) > len(used):
            used = closed
        order = used[np.argsort(lengths[used], kind="stable")]
        own = np.empty(len(order), np.int64)  # the batch's row of each used path
        own[np.searchsorted(used, order)] = np.arange(len(order))
        prefixes = own[np.searchsorted(used, shorter[order])]
        whole, places = _sequences(prefixes, lengths[order])
        paths = Paths(
            torch.from_numpy(labels[order]),
            torch.from_numpy(prefixes),
            np.bincount(lengths[used]).tolist(),
            torch.from_numpy(whole),
            torch.from_numpy(places),
        )
        return own[np.searchsorted(used, rows)], paths


def _sequences(shorter: Array, lengths: Array) -> tuple[Array, Array]:
    """The fields `whole` and `places` of Paths. shorter, lengths: (P,), by rising lengths.

    >>> whole, places = _sequences(np.array([0, 0, 1, 1]), np.array([0, 1, 2, 2]))
    >>> whole.tolist(), places.tolist()
    ([[1, 1], [2, 3]], [0, 3, 4, 5])
    """
    leaves = np.setdiff1d(np.arange(1, len(shorter)), shorter)  # paths that none continues
    whole = np.zeros((lengths.max(), len(leaves)), np.int64)
    places = np.zeros(len(shorter), np.int64)
    rows, columns = leaves, np.arange(len(leaves))
    for step in range(len(whole), 0, -1):
        here = lengths[rows] == step  # the others end before this step
        whole[step - 1, here] = rows[here]
        places[rows[here]] = step * len(leaves) + columns[here]
        rows = np.where(here, shorter[rows], rows)
    return whole, places
