"""Measures how well attention heads find the arcs of trees. Clark et al. (2019), section 4.2.

    a_uv    the weight of word v for word u: the sum over the pieces of v, averaged over those of u
    up      argmax over v != u of a_uv is the parent of u
    down    argmax over v != u of a_vu is the parent of u

Both are accuracies over words that have a parent, as in the paper and its code: the end of
sentence and the word itself are left out of the argmax. A weight of 0 points nowhere. A word
without a piece of its own (the second of a multiword token) neither looks nor is looked at, and
an arc from or to it does not count. The baseline is the best fixed offset: each word's parent is
the word k places to the right. The paper tries k from -3 to 2; here any k is tried.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from synmt_cli.core.analysis import records_with_trees
from synmt_cli.core.analysis.opened_run import OpenedRun
from synmt_cli.core.analysis.witness import witnessed
from synmt_cli.core.data.ragged import Array
from synmt_cli.core.model.modifier import Side
from synmt_cli.core.model.moving import moved
from synmt_cli.core.model.transformer import Transformer
from synmt_cli.core.trees.heads import ROOT
from synmt_cli.core.trees.relations import universal
from synmt_cli.formats.record import NO_WORD, Record
from synmt_cli.formats.reports.analysis.heads import (
    DIRECTIONS,
    HeadFigures,
    HeadsReport,
    RelationFigures,
    RunFigures,
)
from synmt_cli.formats.reports.table import ALL


@dataclass(frozen=True, slots=True)
class Arcs:
    """The arcs of a batch: row of the sentence, dependent, parent and relation, each (n,)."""

    row: Tensor
    dependent: Tensor
    parent: Tensor
    relation: Sequence[str]

    def on(self, device: torch.device) -> "Arcs":
        """The same arcs on a device."""
        row, dependent, parent = (moved(t, device) for t in (self.row, self.dependent, self.parent))
        return Arcs(row, dependent, parent, self.relation)


@dataclass(slots=True)
class Tally:
    """Sums over the arcs of one relation. found, weight: (layers, heads, directions)."""

    found: Array
    weight: Array
    offsets: Counter[int] = field(default_factory=Counter)  # parent - dependent -> arcs


def pieces_of_words(records: Sequence[Record], width: int) -> Tensor:
    """1 where a token is a piece of a word, else 0. (B, W, width)."""
    n_words = max(len(one.heads or ()) for one in records)
    members = np.zeros((len(records), n_words, width), np.float32)
    for row, record in enumerate(records):
        words = np.array(record.piece_word or (), dtype=np.int64)
        places = np.flatnonzero(words != NO_WORD)
        members[row, words[places], places] = 1.0
    return torch.from_numpy(members)


def word_weights(weights: Tensor, members: Tensor) -> Tensor:
    """The weights between words, 0 from a word to itself. (B, H, W, W).

    weights: (B, H, T, T) between tokens. members: (B, W, T), the pieces of words.
    """
    senders = members / members.sum(-1, keepdim=True).clamp(min=1)  # the mean over pieces
    between = senders[:, None] @ weights @ members[:, None].transpose(-1, -2)  # (B, H, W, W)
    between.diagonal(dim1=-2, dim2=-1).zero_()
    return between


class HeadMeter:
    """Counts how many arcs each head of an encoder finds. subtypes: whether relations keep them."""

    def __init__(self, model: Transformer, *, subtypes: bool = False) -> None:
        self._encoder = model.encoder
        self._shape = model.size.encoder_layers, model.size.n_heads, len(DIRECTIONS)
        self._relation: Callable[[str], str] = str if subtypes else universal
        self._tallies: dict[str, Tally] = {}
        self.n_sentences = 0

    @torch.inference_mode()
    def add(self, records: Sequence[Record], side: Side) -> None:
        """Encodes a batch of records with trees and pieces, and counts it."""
        arcs = self._arcs(records)
        of_relation: dict[str, list[int]] = {}
        for i, relation in enumerate(arcs.relation):
            of_relation.setdefault(relation, []).append(i)
        offsets = (arcs.parent - arcs.dependent).tolist()
        for relation, rows in of_relation.items():
            self._tally(relation).offsets.update(offsets[i] for i in rows)

        device = side.ids.device
        members = moved(pieces_of_words(records, side.ids.size(1)), device)
        arcs = arcs.on(device)

        def count(layer: int, weights: Tensor) -> None:
            found, weight = (one.cpu().numpy() for one in found_by(weights, members, arcs))
            for relation, rows in of_relation.items():
                tally = self._tally(relation)
                tally.found[layer] += found[rows].sum(0)
                tally.weight[layer] += weight[rows].sum(0)

        with witnessed(self._encoder, see_weights=count):
            self._encoder(side)
        self.n_sentences += len(records)

    def _arcs(self, records: Sequence[Record]) -> Arcs:
        """The arcs between words that have pieces."""
        found: list[tuple[int, int, int]] = []
        relations: list[str] = []
        for row, record in enumerate(records):
            with_pieces = {*(record.piece_word or ())} - {NO_WORD}
            for word, head in enumerate(record.heads or ()):
                if head != ROOT and {word, head} <= with_pieces:
                    found.append((row, word, head))
                    relations.append(self._relation((record.deprels or [])[word]))
        columns = torch.tensor(found).long().reshape(-1, 3).unbind(1)
        return Arcs(columns[0], columns[1], columns[2], relations)

    def _tally(self, relation: str) -> Tally:
        if relation not in self._tallies:
            self._tallies[relation] = Tally(np.zeros(self._shape), np.zeros(self._shape))
        return self._tallies[relation]

    def relations(self) -> list[RelationFigures]:
        """The figures of all relations together, then of each one, the most frequent first."""
        whole = Tally(np.zeros(self._shape), np.zeros(self._shape))
        for tally in self._tallies.values():
            whole.found += tally.found
            whole.weight += tally.weight
            whole.offsets += tally.offsets
        ordered = sorted(self._tallies.items(), key=lambda one: (-one[1].offsets.total(), one[0]))
        return [_figures(relation, tally) for relation, tally in [(ALL, whole), *ordered]]


def found_by(weights: Tensor, members: Tensor, arcs: Arcs) -> tuple[Tensor, Tensor]:
    """Whether each head finds each arc, and the arc's weight, both (n, H, directions) float64.

    weights: (B, H, T, T). members: (B, W, T).
    """
    between = word_weights(weights.float(), members)
    between = between.clamp(max=1.0)  # a sum of float32 may be a little more
    found, weight = [], []
    for matrix in (between, between.transpose(-1, -2)):  # up, down
        candidates = matrix[arcs.row, :, arcs.dependent]  # (n, H, W)
        best, word = candidates.max(-1)  # (n, H)
        found.append((word == arcs.parent[:, None]) & (best > 0))
        parent = arcs.parent[:, None, None].expand(-1, candidates.size(1), 1)
        weight.append(candidates.gather(-1, parent).squeeze(-1))
    return torch.stack(found, -1).double(), torch.stack(weight, -1).double()


def _figures(relation: str, tally: Tally) -> RelationFigures:
    n = tally.offsets.total()
    if n == 0:
        return RelationFigures(relation, 0, None, None, [])
    # Among equally frequent offsets the nearest wins, and to the right rather than to the left
    offset, hits = min(tally.offsets.items(), key=lambda one: (-one[1], abs(one[0]), -one[0]))
    heads = [
        HeadFigures(layer, head, DIRECTIONS[way], float(found) / n, float(tally.weight[at]) / n)
        for at, found in np.ndenumerate(tally.found)
        for layer, head, way in [at]
    ]
    return RelationFigures(relation, n, offset, hits / n, heads)


def measure(
    runs: Sequence[OpenedRun],
    records: Iterable[Record],
    max_pieces: int,
    on_records: Callable[[int], None],
    *,
    subtypes: bool,
    least: int,
) -> HeadsReport:
    """The heads of each run over the same records. on_records: receives how many more were read.

    least: how many words a relation needs to be in the tables for people.
    """
    meters = [HeadMeter(run.model, subtypes=subtypes) for run in runs]
    to = [(run, meter.add) for run, meter in zip(runs, meters, strict=True)]
    left_out = records_with_trees.feed(to, records, max_pieces, on_records)
    figures = [
        RunFigures(run.name, run.variant, meter.n_sentences, meter.relations())
        for run, meter in zip(runs, meters, strict=True)
    ]
    return HeadsReport(figures, subtypes, least, left_out)
