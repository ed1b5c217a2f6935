"""Probing tasks: what the states of a frozen encoder hold. Conneau et al. (2018).

Applied to translation as by Wang et al. (2019, section 5.3): a sentence is the mean of the
encoder's states, with that of the end of sentence and without padding; a classifier with one
hidden layer is trained on these means. They do not say how they pool and classify; this is our
reading.
"""

from collections import Counter
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from synmt_cli.core.analysis import classifier
from synmt_cli.core.analysis.classifier import ClassifierSettings
from synmt_cli.core.analysis.datasets import Dataset
from synmt_cli.core.analysis.opened_run import OpenedRun
from synmt_cli.core.decoding.translator import windows
from synmt_cli.core.jobs.translation_input import Reader
from synmt_cli.errors import UsageError
from synmt_cli.formats.record import Record
from synmt_cli.formats.reports.probes import ProbeResult, TaskInfo
from synmt_cli.formats.senteval import SPLITS, Example

WINDOW = 1000  # sentences that are sorted by length at a time


class Probe:
    """Probes one run. remarks: what happened to sentences -> how many.

    on_sentences: receives how many more were encoded.
    """

    def __init__(
        self,
        run: OpenedRun,
        max_pieces: int,
        settings: ClassifierSettings,
        on_sentences: Callable[[int], None],
    ) -> None:
        self._run = run
        self._max_pieces = max_pieces
        self._settings = settings
        self._reader = run.reader()
        self._on_sentences = on_sentences
        self.remarks: Counter[str] = Counter()

    def probe(self, dataset: Dataset) -> ProbeResult:
        """Encodes the sentences of a task once, then trains and tests."""
        labels = {label: number for number, label in enumerate(dataset.labels)}
        splits = {}
        for split in SPLITS:
            vectors, kept = self._encode(dataset.of(split))
            if not kept:
                limit = f"--max-pieces {self._max_pieces}"
                raise UsageError(f"{limit} leaves nothing of split {split} of {dataset.task}")
            classes = torch.tensor([labels[example.label] for example in kept], dtype=torch.long)
            splits[split] = vectors, classes  # (n, D), (n,)
        fit = classifier.fit(splits, len(labels), self._settings)
        return ProbeResult(dataset.task, fit.test, fit.dev, fit.epochs)

    def _encode(self, examples: Sequence[Example]) -> tuple[Tensor, list[Example]]:
        """A vector for each example that is not too long, and those examples."""
        kept: list[Example] = []
        vectors = [torch.empty(0, self._run.model.size.d_model)]
        for window in windows(examples, WINDOW):
            pairs = [(example, record_of(self._reader, example)) for example in window]
            short = [pair for pair in pairs if self._fits(pair[1])]
            kept += [example for example, _ in short]
            vectors.append(sentence_vectors(self._run, [record for _, record in short]))
            self._on_sentences(len(window))
        return torch.cat(vectors), kept  # (n, D)

    def _fits(self, record: Record) -> bool:
        if len(record.pieces or ()) > self._max_pieces:
            self.remarks[f"of more than {self._max_pieces:,} pieces: left out"] += 1
            return False
        if self._run.encoding.needs and not (record.heads and record.status == "ok"):
            self.remarks["without a tree: encoded as pieces that stand for themselves"] += 1
        return True


def record_of(reader: Reader, example: Example) -> Record:
    """The record of an example, with its own tree; without one it is parsed if necessary."""
    if example.tree is None:
        return reader.of_text(example.text, "1")
    return reader.featurizer.record([example.tree], "1")


@torch.inference_mode()
def sentence_vectors(run: OpenedRun, records: Sequence[Record]) -> Tensor:
    """The mean of each sentence's encoder states, end of sentence included. (n, D), on the CPU."""
    vectors = torch.empty(len(records), run.model.size.d_model)
    prepared = [run.prepared(record) for record in records]
    for rows, side in run.batches(prepared):
        states = run.model.encode(side).states.float()  # (B, T, D)
        if side.pad is not None:
            states = states.masked_fill(side.pad[..., None], 0.0)
            n = (~side.pad).sum(1, keepdim=True)  # (B, 1)
        else:
            n = states.new_full((len(rows), 1), states.size(1))  # (B, 1)
        vectors[torch.from_numpy(rows)] = (states.sum(1) / n).cpu()
    return vectors


def info(dataset: Dataset) -> TaskInfo:
    """A data set as reports describe it."""
    train, dev, test = (len(dataset.of(split)) for split in SPLITS)
    n_classes, majority = len(dataset.labels), dataset.majority
    return TaskInfo(dataset.task, dataset.group, n_classes, train, dev, test, majority)
