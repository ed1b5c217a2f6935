"""From options to a Trainer: reads the data, opens the run directory, builds the model."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from synmt_cli import signals, streams
from synmt_cli.core import corpus as corpora
from synmt_cli.core import device as devices
from synmt_cli.core import variants
from synmt_cli.core.corpus import Corpus
from synmt_cli.core.encoding import Encoding
from synmt_cli.core.labels import Labels
from synmt_cli.core.multitask import refuse_untagged
from synmt_cli.core.run import (
    Run,
    Vocabularies,
    build,
    grammar,
    needs,
    sha256,
    target_needs,
)
from synmt_cli.core.targets import Targets
from synmt_cli.core.training import folder
from synmt_cli.core.training.config import Config
from synmt_cli.core.training.loop import Trainer
from synmt_cli.core.training.ranks import Ranks, local_device
from synmt_cli.core.vocabulary import Vocabulary
from synmt_cli.errors import Stopped, UsageError
from synmt_cli.formats import record
from synmt_cli.formats.record import Record


@dataclass(frozen=True, slots=True)
class Inputs:
    """Files of a training run. dev, spm, spm_target and parser may be ""."""

    train: Sequence[str]
    dev: str
    spm: str = ""
    spm_target: str = ""
    parser: str = ""


@dataclass(frozen=True, slots=True)
class Session:
    """All that a run is made of, before a run directory exists."""

    config: Config
    inputs: Inputs
    vocabularies: Vocabularies
    train: Corpus
    dev: Corpus | None
    labels: Labels
    device: torch.device

    def tables(self) -> dict[str, Any]:
        """What config.toml holds."""
        data: dict[str, Any] = {
            "train": list(self.inputs.train),
            "train_sha256": [sha256(path) for path in self.inputs.train],
        }
        if self.inputs.dev:
            data |= {"dev": self.inputs.dev, "dev_sha256": sha256(self.inputs.dev)}
        tables = self.config.to_toml()
        tables["vocabulary"] = {"fingerprint": self.vocabularies.fingerprint}
        tables["data"] = data
        if parser := self.inputs.parser:
            tables["parser"] = {"file": parser, "sha256": sha256(parser)}
        return tables

    def trainer(self, run: Run, ranks: Ranks) -> Trainer:
        """Builds the model with this run's seed; the first process writes or checks the run."""
        torch.manual_seed(self.config.training.seed)
        model = build(self.config, self.vocabularies, len(self.labels))
        if ranks.is_first:
            around = folder.environment(torch.get_num_threads(), str(self.device), ranks.size)
            folder.establish(run, self.tables(), self.vocabularies, self.labels.names, around)
        ranks.wait()
        return Trainer(
            run,
            self.config.training,
            model,
            self.vocabularies,
            self.train,
            self.dev,
            self.device,
            ranks,
        )


def open_session(config: Config, inputs: Inputs, device: str, request: signals.Request) -> Session:
    """Reads everything that training needs. Raises SynmtError, and Stopped on `request`."""
    if "-" in (*inputs.train, inputs.dev):
        raise UsageError("training reads its records more than once; name files, not -")
    chosen = local_device(devices.choose(device))
    encoding = Encoding(needs(config, training=True), Labels(growing=True))
    limit = config.training.max_length
    check = refuse_untagged if variants.plan(config.variant).data == "multitask" else None
    with contextlib.closing(_records(inputs.train, request)) as records:
        first = next(records, None)
        vocabularies = _vocabularies(inputs, first[0].vocab if first else None)
        again = itertools.chain([first] if first else [], records)
        targets = Targets(vocabularies.target, grammar(config, vocabularies), target_needs(config))
        train = corpora.read(again, vocabularies, encoding, targets, limit, check=check)
    corpora.refuse_empty(train, " ".join(inputs.train))
    encoding.labels.growing = False
    dev = None
    if inputs.dev:
        with contextlib.closing(_records([inputs.dev], request)) as records:
            dev = corpora.read(records, vocabularies, encoding, targets, limit, True, check)
        corpora.refuse_empty(dev, inputs.dev)
    return Session(config, inputs, vocabularies, train, dev, encoding.labels, chosen)


def _records(
    paths: Sequence[str], request: signals.Request
) -> Generator[tuple[Record, str, int], None, None]:
    for source in streams.sources(paths):
        for number, one in enumerate(record.read(source), 1):
            if request:
                raise Stopped("stopped while reading the records; the same command starts again")
            yield one, source.name, number


def _vocabularies(inputs: Inputs, fingerprint: str | None) -> Vocabularies:
    if not inputs.spm:
        folders = [*(Path(path).parent for path in inputs.train), Path()]
        return folder.find_vocabularies(fingerprint, folders)
    source = Vocabulary.load(inputs.spm)
    target = Vocabulary.load(inputs.spm_target) if inputs.spm_target else source
    return Vocabularies(source, target)
