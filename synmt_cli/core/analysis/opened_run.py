"""A run directory opened for analysis: takes records, gives batches of sources."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from synmt_cli.core.data.batch import by_length, to_device
from synmt_cli.core.data.encoding import Encoding
from synmt_cli.core.data.ragged import Array, Ragged
from synmt_cli.core.data.unseen_labels import UnseenLabels
from synmt_cli.core.decoding import ensemble
from synmt_cli.core.jobs.translation.input import Reader
from synmt_cli.core.model.modifier import Side
from synmt_cli.core.model.transformer import Transformer
from synmt_cli.core.run.building import read_config
from synmt_cli.core.run.directory import Run
from synmt_cli.core.text.udpipe import Parser
from synmt_cli.core.text.vocabulary import Vocabularies
from synmt_cli.errors import ConfigError
from synmt_cli.formats.record import OK, Record

BATCH_SIZE, BATCH_PIECES = 64, 4096  # sentences, and padded pieces, that are encoded together


@dataclass(frozen=True, slots=True)
class OpenedRun:
    """A trained model in eval mode. variant: its name, as in `--variant`.

    encoding: the features that the model reads, and further ones that the analysis needs.
    prepare: as in Ensemble. unseen: counts the labels of the records that were prepared.
    """

    name: str
    variant: str
    model: Transformer
    vocabularies: Vocabularies
    encoding: Encoding
    prepare: Callable[[Record], Record]
    load_parser: Callable[[], Parser] | None
    device: torch.device
    unseen: UnseenLabels

    def reader(self) -> Reader:
        """Turns files into records with this model's pieces."""
        return Reader(self.vocabularies.source, self.vocabularies.target, self.load_parser)

    def prepared(self, record: Record) -> Record:
        """The record as the model was trained to see it: between task tags, or unchanged.

        A record whose status is not `ok` loses its tree, as in translation.
        """
        self.unseen.add(record)
        return self.prepare(record if record.status == OK else record.without_tree())

    def batches(self, records: Sequence[Record]) -> Iterator[tuple[Array, Side]]:
        """Yields batches of prepared records, longest first: their indices and their sources."""
        if not records:
            return
        source = self.vocabularies.source
        ids = Ragged.of([source.source_ids(one.pieces) for one in records], np.int64)
        features = self.encoding.ragged([self.encoding.values(one) for one in records])
        for full in by_length(ids.lengths, BATCH_PIECES):
            for rows in np.split(full, range(BATCH_SIZE, len(full), BATCH_SIZE)):
                yield rows, to_device(self.encoding.side(ids, features, rows), self.device)


def open_run(
    folder: str, checkpoint: str, device: torch.device, parser: str = "", also: Sequence[str] = ()
) -> OpenedRun:
    """Opens a run directory. Raises SynmtError.

    checkpoint: best, last or step-N. parser: for text, instead of the run's own. also:
    features to compute besides those that the model reads; then text is always parsed.
    """
    loaded = ensemble.load([folder], checkpoint, device)
    run = Run(Path(folder))
    if also:
        encoding = Encoding(sorted({*loaded.encoding.needs, *also}), loaded.encoding.labels)
        loaded = replace(loaded, encoding=encoding, parsers={run.folder: run.parser()})
    return OpenedRun(
        folder,
        read_config(run).variant,
        loaded.models[0],
        loaded.vocabularies,
        loaded.encoding,
        loaded.prepare,
        loaded.parser_loader(parser),
        device,
        UnseenLabels(loaded.encoding),
    )


def warnings(runs: Iterable[OpenedRun]) -> Iterator[str]:
    """Yields a warning for each run that did not see many of the labels in training."""
    for run in runs:
        yield from (f"{run.name}: {line}" for line in run.unseen.warnings())


def refuse_other_vocabulary(runs: Sequence[OpenedRun]) -> None:
    """Raises ConfigError if records of the first run do not fit another run."""
    first = runs[0]
    for run in runs[1:]:
        if run.vocabularies.fingerprint != first.vocabularies.fingerprint:
            raise ConfigError(
                f"the same records cannot be shown to all: {first.name} has vocabulary "
                f"{first.vocabularies.fingerprint}, {run.name} "
                f"{run.vocabularies.fingerprint}"
            )
