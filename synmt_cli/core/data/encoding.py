"""Features of records as numbers, ready for the model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import torch

from synmt_cli.core.data.labels import Labels, PathTree
from synmt_cli.core.data.ragged import Array, Ragged
from synmt_cli.core.model.modifier import Side
from synmt_cli.core.text.vocabulary import PAD
from synmt_cli.core.trees.features import FEATURES, Feature, PieceTree, tree_of
from synmt_cli.core.trees.heads import ROOT
from synmt_cli.formats.record import Record

Values = dict[str, list[float]]  # of one sentence: feature -> one number for each token


def reads_labels(needs: Iterable[str]) -> bool:
    """Whether features tell the labels of words, and not only the shape of the tree."""
    return any(FEATURES[name].kind in ("label", "labels") for name in needs)


class Encoding:
    """Computes the features that a model needs. Labels become ids, paths rows of a PathTree."""

    def __init__(self, needs: Sequence[str], labels: Labels, paths: PathTree | None = None) -> None:
        self.needs, self.labels, self.paths = tuple(needs), labels, paths or PathTree()

    def frozen(self) -> Encoding:
        """An encoding of the same features for new sentences, without any paths yet.

        It knows the labels that there are now and adds none: a model has no weights for them.
        """
        return Encoding(self.needs, Labels(self.labels.names))

    def values(self, record: Record) -> Values:
        """Each feature of a record's pieces and of the end of sentence after them.

        Takes time linear in the sentence. Raises ValueError for a piece whose heads never reach a
        root.
        """
        if not self.needs:
            return {}
        tree = tree_of(record)
        return {name: self._numbers(FEATURES[name], tree) for name in self.needs}

    def _numbers(self, feature: Feature, tree: PieceTree) -> list[float]:
        if feature.kind == "labels":
            return self._path_rows(tree)
        values = [*feature.compute(tree), feature.eos(tree)]
        return [self.labels.id(label) for label in values] if feature.kind == "label" else values

    def _path_rows(self, tree: PieceTree) -> list[float]:
        """The row of the path of each piece's word, and of the end of sentence.

        It is one label after the row of the head, so no path is written out: those of a chain of n
        words have n * n / 2 labels. New labels and rows get the numbers that `PathTree.row` would
        give them for one piece's path after the other.
        """
        rows = {ROOT: 0}  # by word; a piece without a word has the empty path, too
        for word in tree.piece_word:
            above: list[int] = []
            while word not in rows:
                if len(above) == len(tree.heads):
                    raise ValueError("a cycle of heads")
                above.append(word)
                word = tree.heads[word]
            for own in reversed(above):
                label = self.labels.id(tree.deprels[own])
                rows[own] = self.paths.longer(rows[tree.heads[own]], label)
        return [*(rows[word] for word in tree.piece_word), rows[ROOT]]

    def ragged(self, sentences: Sequence[Values]) -> dict[str, Ragged]:
        """The values of many sentences: feature -> one row for each sentence."""
        return {
            name: Ragged.of([values[name] for values in sentences], self.dtype(name))
            for name in self.needs
        }

    @staticmethod
    def dtype(name: str) -> type:
        """The type in which a feature's values are kept."""
        return np.float32 if FEATURES[name].kind == "float" else np.int32

    def merge(self, others: Encoding) -> dict[str, Array]:
        """Adds the labels and paths of `others`. Returns feature -> numbers here, by numbers there.

        Features whose values are numbers anyway are left out.
        """
        labels = self.labels.merge(others.labels)
        kinds = {name: FEATURES[name].kind for name in self.needs}
        paths = self.paths.merge(others.paths, labels) if "labels" in kinds.values() else labels
        maps = {"label": labels, "labels": paths}
        return {name: maps[kind] for name, kind in kinds.items() if kind in maps}

    def side(self, ids: Ragged, features: Mapping[str, Ragged], rows: Array) -> Side:
        """The source side of these rows. Feature values at padding are 0 and never matter."""
        padded = torch.from_numpy(ids.padded(rows, PAD))
        lengths = ids.lengths_of(rows)
        ragged = bool((lengths != lengths.max(initial=0)).any())
        mask = torch.from_numpy(np.arange(padded.size(1)) >= lengths[:, None]) if ragged else None
        values = {name: f.padded(rows, 0) for name, f in features.items()}
        own_paths = None
        if "path" in values:
            values["path"], own_paths = self.paths.paths_of(values["path"])
        is_single = "sentence" in values and bool(values["sentence"].max(initial=0) <= 0)
        tensors = {name: torch.from_numpy(v) for name, v in values.items()}
        return Side(padded, mask, tensors, own_paths, is_single, tuple(lengths.tolist()))
