"""Pairs as models read them, and the columns of numbers that hold many of them.

A column has one row for each pair: `source` and `target` hold ids, `source.depth` and the like the
features of the source, `after.arc` and the like those of the target, and `n_pieces` how many pieces
a target of transitions has.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from synmt_cli.core.data.encoding import Encoding, Values
from synmt_cli.core.data.ragged import Ragged
from synmt_cli.core.data.targets import Target

SOURCE, TARGET, N_PIECES = "source", "target", "n_pieces"
AFTER = "after"  # the features that a target has after each of its tokens


class Pair(NamedTuple):
    """A source and a target as numbers.

    source: ids, which end in EOS. features: one value for each of them. n_pieces: of the target,
    where a column has them.
    """

    source: list[int]
    features: Values
    target: Target
    n_pieces: int = 0


@dataclass(frozen=True, slots=True)
class PairColumns:
    """The columns of pairs whose source and target have these features.

    has_n_pieces: whether there is a column `n_pieces`.
    """

    needs: Sequence[str]
    target_needs: Sequence[str]
    has_n_pieces: bool = False

    def dtypes(self) -> dict[str, type]:
        """The columns, and the types of their values."""
        features = {name_in(SOURCE, name): Encoding.dtype(name) for name in self.needs}
        targets = {name_in(AFTER, name): np.int32 for name in self.target_needs}
        n_pieces = {N_PIECES: np.int32} if self.has_n_pieces else {}
        return {SOURCE: np.int32, **features, TARGET: np.int32, **targets, **n_pieces}

    def of(self, pairs: Sequence[Pair]) -> dict[str, Ragged]:
        """The columns of some pairs, (len(pairs),) rows each."""
        values: dict[str, list[Sequence[float]]] = {
            SOURCE: [pair.source for pair in pairs],
            TARGET: [pair.target.ids for pair in pairs],
        }
        if self.has_n_pieces:
            values[N_PIECES] = [[pair.n_pieces] for pair in pairs]
        for name in self.needs:
            values[name_in(SOURCE, name)] = [pair.features[name] for pair in pairs]
        for name in self.target_needs:
            values[name_in(AFTER, name)] = [pair.target.features[name] for pair in pairs]
        return {name: Ragged.of(values[name], dtype) for name, dtype in self.dtypes().items()}


def name_in(group: str, feature: str) -> str:
    """The name of the column of a feature. group: SOURCE or AFTER."""
    return f"{group}.{feature}"


def features_in(group: str, columns: Mapping[str, Ragged]) -> dict[str, Ragged]:
    """The columns of features, under the names of the features. group: SOURCE or AFTER."""
    found = ((name.partition("."), rows) for name, rows in columns.items())
    return {feature: rows for (own, dot, feature), rows in found if dot and own == group}
