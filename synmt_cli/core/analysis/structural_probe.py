"""Structural probes: whether trees are distances in a space of states. Hewitt and Manning (2019).

A linear map B of rank k is learned on the states h of a frozen encoder, one for each word:

    distance:  |B h_i - B h_j|^2  against the arcs between words i and j
    depth:     |B h_i|^2          against the arcs between word i and the root

The loss of a sentence of n words is the mean of the absolute differences, over n^2 pairs or n
words, and the loss of a batch the mean over its sentences. As in their published code: B is drawn
from [-0.05, 0.05]; Adam, 0.001, batches of 20 sentences; after an epoch without a better loss on
dev the rate is divided by 10; the B that is best on dev is kept, and training ends after 5 epochs
without an improvement, or after 40; the state of a word is the mean over its pieces.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from statistics import mean, stdev
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from synmt_cli.core.analysis.opened_run import OpenedRun
from synmt_cli.core.analysis.probe import error_of_share, states_of
from synmt_cli.core.analysis.tree_geometry import (
    Array,
    DepthScores,
    DistanceScores,
    Geometry,
    geometry,
)
from synmt_cli.core.run.device import one_thread
from synmt_cli.errors import UsageError
from synmt_cli.formats.conllu import Sentence
from synmt_cli.formats.record import NO_WORD, OK, Record
from synmt_cli.formats.reports.analysis.structural_probes import StructuralFigures
from synmt_cli.formats.senteval import DEV, SPLITS, TEST, TRAIN

BATCH, MOST_EPOCHS, PATIENCE = 20, 40, 5
RATE, DECAY, SPREAD, LEAST_GAIN = 0.001, 0.1, 0.05, 1e-4
FEWEST = 10  # sentences, of which one is for dev and one for test
Kind = Literal["distance", "depth"]


@dataclass(frozen=True, slots=True)
class ProbedSentence:
    """A sentence of n words. states: (n, D). gold: the geometry of these words in the tree."""

    states: Tensor
    gold: Geometry


Splits = Mapping[str, Sequence[ProbedSentence]]


@dataclass(frozen=True, slots=True)
class Fit:
    """A probe. projection: (D, k), B transposed. loss: on dev."""

    projection: Tensor
    loss: float
    epochs: int


def parted(sentences: Sequence[Sentence], seed: int) -> dict[str, list[Sentence]]:
    """Splits at random: eight tenths for training, one each for dev and test. Raises UsageError."""
    if len(sentences) < FEWEST:
        problem = f"{len(sentences)} different sentences with trees; it needs {FEWEST}"
        raise UsageError(f"--structural: {problem}")
    order = list(sentences)
    Random(f"{seed} structural").shuffle(order)
    n = len(order) // 10
    return {TEST: order[:n], DEV: order[n : 2 * n], TRAIN: order[2 * n :]}


class StructuralProbe:
    """Probes one run. remarks: what happened to sentences -> how many.

    rank: k; 0 for the width of the states. n_seeds: how many seeds to train with, `seed` first.
    on_sentences: receives how many more were encoded.
    """

    def __init__(
        self,
        run: OpenedRun,
        max_pieces: int,
        rank: int,
        seed: int,
        n_seeds: int,
        on_sentences: Callable[[int], None],
    ) -> None:
        self._run = run
        self._max_pieces = max_pieces
        self.rank = rank or run.model.size.d_model
        self._seeds = range(seed, seed + n_seeds)
        self._on_sentences = on_sentences
        self._featurizer = run.reader().featurizer
        self.remarks: Counter[str] = Counter()
        if self.rank > run.model.size.d_model:
            width = run.model.size.d_model
            problem = f"the states of {run.name} have {width} numbers"
            raise UsageError(f"--structural {rank}: {problem}")

    def prepared(self, sentences: Mapping[str, Sequence[Sentence]]) -> dict[str, list[Record]]:
        """The records of each split that can be probed."""
        records = {split: [*self._records(sentences[split])] for split in SPLITS}
        for split, kept in records.items():
            if not kept:
                why = "".join(f"; {n:,} {remark}" for remark, n in self.remarks.items())
                raise UsageError(f"--structural: nothing of split {split} can be probed{why}")
        return records

    def _records(self, sentences: Sequence[Sentence]) -> Iterator[Record]:
        for sentence in sentences:
            record = self._featurizer.of_trees([sentence], "1")
            if len(record.pieces or ()) > self._max_pieces:
                self.remarks[f"of more than {self._max_pieces:,} pieces: left out"] += 1
            elif record.status != OK or len(words_of(record)) < 2:
                self.remarks["without two words that have pieces: left out"] += 1
            else:
                yield self._run.prepared(record)

    def probe(
        self, records: Mapping[str, Sequence[Record]], layer: int | None
    ) -> StructuralFigures:
        """Encodes all records, then trains and tests both probes with each seed."""
        splits = {split: self._encoded(of, layer) for split, of in records.items()}
        distances, depths, epochs = [], [], []
        for seed in self._seeds:
            by_distance = fit(splits, "distance", self.rank, seed)
            by_depth = fit(splits, "depth", self.rank, seed)
            epochs += [by_distance.epochs, by_depth.epochs]
            distances.append(DistanceScores())
            depths.append(DepthScores())
            for one in splits[TEST]:
                found = predicted(one.states, by_distance.projection, "distance")
                distances[-1].add(one.gold, found)
                found = predicted(one.states, by_depth.projection, "depth")
                depths[-1].add(one.gold, found)
        return figures(distances, depths, mean(epochs))

    def baseline(self, records: Sequence[Record]) -> StructuralFigures:
        """Positions instead of states: |i - j| as the distance, i as the depth."""
        distances, depths = DistanceScores(), DepthScores()
        for record in records:
            words = words_of(record)
            places = np.array(words, np.float64)
            gold = _gold(record, words)
            distances.add(gold, np.abs(places[:, None] - places))
            depths.add(gold, places)
        return figures([distances], [depths], None)

    @torch.inference_mode()
    def _encoded(self, records: Sequence[Record], layer: int | None) -> list[ProbedSentence]:
        found: dict[int, ProbedSentence] = {}
        with states_of(self._run.model.encoder, [layer]) as seen:
            for rows, side in self._run.batches(records):
                seen[None] = self._run.model.encode(side).states
                states = seen[layer].float().cpu()  # (B, T, D)
                for row, of_pieces in zip(rows.tolist(), states, strict=True):
                    words = words_of(records[row])
                    vectors = word_states(of_pieces, records[row].piece_word or (), words)
                    found[row] = ProbedSentence(vectors, _gold(records[row], words))
                self._on_sentences(len(rows))
        return [found[row] for row in range(len(records))]


def _gold(record: Record, words: Sequence[int]) -> Geometry:
    return geometry(record.heads or (), record.upos or (), words)


def words_of(record: Record) -> list[int]:
    """The words that have pieces, in order; of a multiword token that is only the first."""
    return sorted({word for word in record.piece_word or () if word != NO_WORD})


def word_states(states: Tensor, piece_word: Sequence[int], words: Sequence[int]) -> Tensor:
    """The mean of each word's pieces, (n, D). states: (T, D), of the pieces and what follows."""
    place = {word: i for i, word in enumerate(words)}
    pieces = [i for i, word in enumerate(piece_word) if word != NO_WORD]
    owners = torch.tensor([place[piece_word[i]] for i in pieces])
    sums = states.new_zeros(len(words), states.size(1)).index_add_(0, owners, states[pieces])
    return sums / torch.bincount(owners, minlength=len(words))[:, None]


def squared_distances(projected: Tensor) -> Tensor:
    """|x_i - x_j|^2 of all pairs, (B, n, n). projected: (B, n, k).

    They are computed from products, so that no (B, n, n, k) is made.
    """
    norms = projected.pow(2).sum(-1)  # (B, n)
    products = projected @ projected.transpose(1, 2)  # (B, n, n)
    return (norms[:, :, None] + norms[:, None] - 2 * products).clamp(min=0)


def predicted(states: Tensor, projection: Tensor, kind: Kind) -> Array:
    """Distances (n, n) or depths (n,) of one sentence. states: (n, D), projection: (D, k)."""
    projected = (states @ projection).double()
    found = projected.pow(2).sum(-1) if kind == "depth" else squared_distances(projected[None])[0]
    values: Array = found.numpy()
    return values


def loss(projection: Tensor, batch: Sequence[ProbedSentence], kind: Kind) -> Tensor:
    """The loss of the module's docstring, a scalar. projection: (D, k)."""
    states = torch.nn.utils.rnn.pad_sequence([one.states for one in batch], batch_first=True)
    projected = states @ projection  # (B, n, k)
    lengths = torch.tensor([len(one.states) for one in batch])
    real = torch.arange(states.size(1)) < lengths[:, None]  # (B, n)
    if kind == "depth":
        gold = states.new_zeros(real.shape)
        for row, one in zip(gold, batch, strict=True):
            row[: len(one.states)] = torch.from_numpy(one.gold.depths)
        differences = (projected.pow(2).sum(-1) - gold).abs() * real  # (B, n)
        return (differences.sum(1) / lengths).mean()
    gold = states.new_zeros(*real.shape, real.size(1))  # (B, n, n)
    for matrix, one in zip(gold, batch, strict=True):
        n = len(one.states)
        matrix[:n, :n] = torch.from_numpy(one.gold.distances)
    pairs = real[:, :, None] & real[:, None]
    differences = (squared_distances(projected) - gold).abs() * pairs
    return (differences.sum((1, 2)) / lengths**2).mean()


def fit(splits: Splits, kind: Kind, rank: int, seed: int) -> Fit:
    """Learns B. The same seed gives the same result; torch's generator is left as it was."""
    with torch.random.fork_rng(devices=[]), one_thread():
        torch.manual_seed(seed)
        train, dev = splits[TRAIN], splits[DEV]
        projection = torch.empty(train[0].states.size(1), rank).uniform_(-SPREAD, SPREAD)
        projection.requires_grad_()
        optimizer = torch.optim.Adam([projection], RATE)
        schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=DECAY, patience=0)
        best = Fit(projection.detach().clone(), float("inf"), 0)
        epoch = since = 0
        while epoch < MOST_EPOCHS and since < PATIENCE:
            epoch += 1
            for rows in torch.randperm(len(train)).split(BATCH):
                optimizer.zero_grad()
                loss(projection, [train[row] for row in rows.tolist()], kind).backward()
                optimizer.step()
            on_dev = _loss(projection.detach(), dev, kind)
            schedule.step(on_dev)
            since += 1
            if on_dev < best.loss - LEAST_GAIN:
                best, since = Fit(projection.detach().clone(), on_dev, epoch), 0
        return Fit(best.projection, best.loss, epoch)


def _loss(projection: Tensor, sentences: Sequence[ProbedSentence], kind: Kind) -> float:
    total = 0.0
    for first in range(0, len(sentences), BATCH):
        batch = sentences[first : first + BATCH]
        total += len(batch) * float(loss(projection, batch, kind))
    return total / len(sentences)


def figures(
    distances: Sequence[DistanceScores], depths: Sequence[DepthScores], epochs: float | None
) -> StructuralFigures:
    """Means and standard deviations over the probes of all seeds."""
    columns = {
        "uuas": [one.uuas for one in distances],
        "distance_spearman": [one.spearman for one in distances],
        "root": [one.accuracy for one in depths],
        "depth_spearman": [one.spearman for one in depths],
    }
    known = {name: [n for n in values if n is not None] for name, values in columns.items()}
    means = {name: mean(values) if values else None for name, values in known.items()}
    # The standard errors from the draw of test sentences, which is the same for all seeds
    of_uuas = [one.standard_error for one in distances if one.standard_error is not None]
    root, n = means["root"], len(depths[0].roots)
    return StructuralFigures(
        means,
        {name: stdev(values) if len(values) > 1 else None for name, values in known.items()},
        {
            "uuas": mean(of_uuas) if of_uuas else None,
            "root": None if root is None else error_of_share(root, n),
        },
        epochs,
    )
