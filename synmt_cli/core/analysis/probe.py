"""Probing tasks: what the states of a frozen encoder hold. Conneau et al. (2018).

Applied to translation as by Wang et al. (2019, section 5.3): a sentence is the mean of the
encoder's states, end of sentence included and padding left out; a classifier with one
hidden layer is trained on these means. They do not say how they pool and classify; this is our
reading.

A control task (Hewitt and Liang 2019) has labels that can only be memorised: each word type gets
a random one, in the proportions of the task. A probe that learns it as well shows what the probe
can learn, and not what the states hold. Their control tasks label words; here a sentence has the
label of its first word, case aside, because first words occur in training and in test alike.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from random import Random
from statistics import mean, stdev

import torch
from torch import Tensor, nn

from synmt_cli.core.analysis import classifier
from synmt_cli.core.analysis.classifier import ClassifierSettings
from synmt_cli.core.analysis.datasets import Dataset
from synmt_cli.core.analysis.opened_run import OpenedRun
from synmt_cli.core.decoding.translator import windows
from synmt_cli.core.jobs.translation.input import Reader
from synmt_cli.core.model.layers import Encoder
from synmt_cli.errors import UsageError
from synmt_cli.formats.record import OK, Record
from synmt_cli.formats.reports.analysis.probes import ProbeResult, TaskInfo
from synmt_cli.formats.senteval import SPLITS, TEST, TRAIN, Example

WINDOW = 1000  # sentences that are sorted by length at a time


class Probe:
    """Probes one run. remarks: what happened to sentences -> how many.

    layers: those that are probed, from 0, the bottom layer; None is the encoder's output.
    n_seeds: how many seeds to train with, from that of settings on. control: whether there is a
    control task. on_sentences: receives how many more were encoded.
    """

    def __init__(
        self,
        run: OpenedRun,
        max_pieces: int,
        settings: ClassifierSettings,
        on_sentences: Callable[[int], None],
        layers: Sequence[int | None] = (None,),
        n_seeds: int = 1,
        control: bool = False,
    ) -> None:
        self._layers = layers
        self._n_seeds = n_seeds
        self._control = control
        self.run = run
        self._max_pieces = max_pieces
        self._settings = settings
        self._reader = run.reader()
        self._on_sentences = on_sentences
        self.remarks: Counter[str] = Counter()

    def probe(self, dataset: Dataset) -> tuple[Dataset, list[ProbeResult]]:
        """Encodes the sentences of a task once, then trains and tests classifiers for each layer.

        Returns the data that was probed, without sentences that are too long, and the results.
        """
        splits = {}
        limit = f"--max-pieces {self._max_pieces}"
        for split in SPLITS:
            vectors, kept = self._encode(dataset.of(split))
            if not kept:
                raise UsageError(f"{limit} leaves nothing of split {split} of {dataset.task}")
            splits[split] = vectors, kept  # (L, n, D), n examples
        try:
            probed = Dataset(dataset.task, [one for _, kept in splits.values() for one in kept])
        except ValueError as error:
            raise UsageError(f"{limit} leaves too little of {dataset.task}: {error}") from None
        labels = {label: number for number, label in enumerate(probed.labels)}
        known = [labels[example.label] for example in splits[TRAIN][1]]
        results = []
        for i in range(len(self._layers)):
            of_layer = {split: (vectors[i], kept) for split, (vectors, kept) in splits.items()}
            fits = [
                self._fit(of_layer, lambda one: labels[one.label], len(labels), n)
                for n in range(self._n_seeds)
            ]
            controls = []
            if self._control:
                controls = [
                    self._fit(
                        of_layer, control_task(known, self._settings.seed + n), len(labels), n
                    )
                    for n in range(self._n_seeds)
                ]
            results.append(_result(dataset.task, fits, controls, len(splits[TEST][1])))
        return probed, results

    def _fit(
        self,
        splits: Mapping[str, tuple[Tensor, list[Example]]],
        label: Callable[[Example], int],
        n_classes: int,
        number: int,
    ) -> classifier.Fit:
        """Trains and tests a classifier for the labels that `label` gives.

        splits: vectors (n, D), n examples. number: what is added to the seed of the settings.
        """
        data = {
            split: (vectors, torch.tensor([*map(label, kept)], dtype=torch.long))
            for split, (vectors, kept) in splits.items()
        }
        settings = replace(self._settings, seed=self._settings.seed + number)
        return classifier.fit(data, n_classes, settings)

    def _encode(self, examples: Sequence[Example]) -> tuple[Tensor, list[Example]]:
        """Vectors of each example that is not too long, (L, n, D), and those examples."""
        kept: list[Example] = []
        vectors = [torch.empty(len(self._layers), 0, self.run.model.size.d_model)]
        for window in windows(examples, WINDOW):
            pairs = [(example, record_of(self._reader, example)) for example in window]
            short = [pair for pair in pairs if self._fits(pair[1])]
            kept += [example for example, _ in short]
            records = [record for _, record in short]
            vectors.append(layer_vectors(self.run, records, self._layers))
            self._on_sentences(len(window))
        return torch.cat(vectors, 1), kept  # (L, n, D)

    def _fits(self, record: Record) -> bool:
        if len(record.pieces or ()) > self._max_pieces:
            self.remarks[f"of more than {self._max_pieces:,} pieces: left out"] += 1
            return False
        if self.run.encoding.needs and not (record.heads and record.status == OK):
            self.remarks["without a tree: encoded as pieces that stand for themselves"] += 1
        return True


def record_of(reader: Reader, example: Example) -> Record:
    """The record of an example, with its own tree; without one it is parsed if necessary."""
    if example.tree is None:
        return reader.of_text(example.text, "1")
    return reader.featurizer.of_trees([example.tree], "1")


def control_task(classes: Sequence[int], seed: int) -> Callable[[Example], int]:
    """Returns a function that draws a label of `classes` for a sentence, by its first word.

    The same word and seed always give the same label.
    """

    def label(example: Example) -> int:
        first = example.text.split(maxsplit=1)[:1]
        word = "".join(first).lower()
        return Random(f"synmt analyze probe {seed} control {word}").choice(classes)

    return label


def _result(
    task: str, fits: Sequence[classifier.Fit], controls: Sequence[classifier.Fit], n_test: int
) -> ProbeResult:
    accuracy = mean([one.test for one in fits])
    control = mean([one.test for one in controls]) if controls else None
    return ProbeResult(
        task,
        accuracy,
        mean([one.dev for one in fits]),
        mean([one.epochs for one in fits]),
        stdev([one.test for one in fits]) if len(fits) > 1 else None,
        error_of_share(accuracy, n_test),
        control,
        None if control is None else accuracy - control,
    )


def error_of_share(percent: float, n: int) -> float:
    """The standard error of a percentage of n cases."""
    return math.sqrt(percent * (100 - percent) / n)


@torch.inference_mode()
def layer_vectors(
    run: OpenedRun, records: Sequence[Record], layers: Sequence[int | None]
) -> Tensor:
    """The mean of each sentence's states at several layers, end of sentence included.

    layers: None is the encoder's output. Returns (L, n, D), on the CPU.
    """
    vectors = torch.empty(len(layers), len(records), run.model.size.d_model)
    prepared = [run.prepared(record) for record in records]
    with states_of(run.model.encoder, layers) as seen:
        for rows, side in run.batches(prepared):
            seen[None] = run.model.encode(side).states
            means = [_mean(seen[layer].float(), side.pad) for layer in layers]
            vectors[:, torch.from_numpy(rows)] = torch.stack(means).cpu()
    return vectors


def _mean(states: Tensor, pad: Tensor | None) -> Tensor:
    """The mean state of each sentence, without padding: (B, T, D) -> (B, D)."""
    if pad is None:
        return states.mean(1)
    return states.masked_fill(pad[..., None], 0.0).sum(1) / (~pad).sum(1, keepdim=True)


@contextmanager
def states_of(encoder: Encoder, layers: Sequence[int | None]) -> Iterator[dict[int | None, Tensor]]:
    """Keeps the latest output of these layers, (B, T, D), in the dictionary it gives."""
    seen: dict[int | None, Tensor] = {}

    def keep(layer: int) -> Callable[[nn.Module, tuple[object, ...], Tensor], None]:
        def after(module: nn.Module, arguments: tuple[object, ...], output: Tensor) -> None:
            seen[layer] = output

        return after

    with ExitStack() as handles:
        for layer in layers:
            if layer is not None:
                hook = encoder.layers[layer].register_forward_hook(keep(layer))
                handles.callback(hook.remove)
        yield seen


def info(dataset: Dataset) -> TaskInfo:
    """A data set as reports describe it."""
    train, dev, test = (len(dataset.of(split)) for split in SPLITS)
    n_classes, majority = len(dataset.labels), dataset.majority
    return TaskInfo(dataset.task, dataset.group, n_classes, train, dev, test, majority)
