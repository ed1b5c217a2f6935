"""From options to a Trainer: reads the data, opens the run directory, builds the model."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

from synmt_cli import signals
from synmt_cli.core import variants
from synmt_cli.core.data import cache
from synmt_cli.core.data.corpus import Corpus, refuse_empty
from synmt_cli.core.data.encoding import Encoding
from synmt_cli.core.data.labels import Labels
from synmt_cli.core.data.record_reader import Chunk, CorpusReader, RecordLines, lines_of
from synmt_cli.core.data.targets import Targets
from synmt_cli.core.data.task_tags import refuse_untagged
from synmt_cli.core.distributed.ranks import Ranks, local_device
from synmt_cli.core.run import device as devices
from synmt_cli.core.run.building import build, grammar, needs, target_needs
from synmt_cli.core.run.config import Config
from synmt_cli.core.run.directory import Run
from synmt_cli.core.text.vocabulary import Vocabularies, Vocabulary
from synmt_cli.core.training import run_folder
from synmt_cli.core.training.loop import Trainer
from synmt_cli.errors import ConfigError, Stopped, UsageError, printable
from synmt_cli.formats import record as records
from synmt_cli.io.digests import sha256
from synmt_cli.io.json_files import as_text
from synmt_cli.pool import ordered_map


@dataclass(frozen=True, slots=True)
class Inputs:
    """Files of a training run. dev, spm, spm_target and parser may be "".

    jobs: processes that read the records, 0 for every core.
    """

    train: Sequence[str]
    dev: str
    spm: str = ""
    spm_target: str = ""
    parser: str = ""
    jobs: int = 1


@dataclass(frozen=True, slots=True)
class Session:
    """The parts of a run, before its directory exists."""

    config: Config
    inputs: Inputs
    vocabularies: Vocabularies
    train: Corpus
    dev: Corpus | None
    train_sha256: Sequence[str]
    device: torch.device

    def tables(self) -> dict[str, Any]:
        """The content of config.toml."""
        data: dict[str, Any] = {
            "train": [*map(as_text, self.inputs.train)],
            "train_sha256": list(self.train_sha256),
        }
        if self.inputs.dev:
            data |= {"dev": as_text(self.inputs.dev), "dev_sha256": sha256(self.inputs.dev)}
        tables = self.config.to_toml()
        tables["vocabulary"] = {"fingerprint": self.vocabularies.fingerprint}
        tables["data"] = data
        if parser := self.inputs.parser:
            tables["parser"] = {"file": as_text(parser), "sha256": sha256(parser)}
        return tables

    def trainer(self, run: Run, ranks: Ranks) -> Trainer:
        """Builds the model with this run's seed; the first process writes or checks the run."""
        torch.manual_seed(self.config.training.seed)
        labels = self.train.encoding.labels
        model = build(self.config, self.vocabularies, len(labels))
        if ranks.is_first:
            machine = run_folder.environment(torch.get_num_threads(), str(self.device), ranks.size)
            run_folder.establish(run, self.tables(), self.vocabularies, labels.names, machine)
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


def open_session(
    config: Config,
    inputs: Inputs,
    device: str,
    request: signals.Request,
    kept: Path | None = None,
    ranks: Ranks | None = None,
    watch: Callable[[int], None] = lambda n: None,
) -> Session:
    """Reads everything that training needs. Raises SynmtError, and Stopped on `request`.

    kept: the folder for the training records as numbers, for the next start and for the other
    processes; None: memory. watch: called with the number of records just read.
    """
    if "-" in (*inputs.train, inputs.dev):
        raise UsageError("training reads its records more than once; name files, not -")
    chosen = local_device(devices.choose(device))
    vocabularies = _vocabularies(inputs)
    targets = Targets(vocabularies.target, grammar(config, vocabularies), target_needs(config))
    check = refuse_untagged if variants.plan(config.variant).data == "multitask" else None
    needed, limit = needs(config, training=True), config.training.max_length
    reader = CorpusReader(vocabularies, needed, targets, limit, check)

    def chunks(paths: Sequence[str], references: bool = False) -> Iterator[Chunk]:
        function = partial(reader.chunk, references=references)
        for chunk in ordered_map(function, _until(request, paths), inputs.jobs, chunk=1):
            yield chunk
            watch(chunk.n)

    if kept is None:
        encoding = Encoding(reader.needs, Labels(growing=True))
        train, _ = reader.corpus(chunks(inputs.train), encoding)
        encoding.labels.growing = False
        digests = [sha256(path) for path in inputs.train]
    else:
        train, digests = _cached(kept, reader, chunks, inputs.train, ranks or Ranks())
    refuse_empty(train, " ".join(inputs.train))
    dev = None
    if inputs.dev:
        dev, _ = reader.corpus(chunks([inputs.dev], references=True), train.encoding)
        refuse_empty(dev, inputs.dev)
    return Session(config, inputs, vocabularies, train, dev, digests, chosen)


def _until(request: signals.Request, paths: Sequence[str]) -> Iterator[RecordLines]:
    """Yields the lines of files. Raises Stopped on `request`."""
    for lines in lines_of(paths):
        if request:
            raise Stopped("stopped while reading the records; the same command starts again")
        yield lines


def _cached(
    kept: Path,
    reader: CorpusReader,
    chunks: Callable[[Sequence[str]], Iterator[Chunk]],
    paths: Sequence[str],
    ranks: Ranks,
) -> tuple[Corpus, list[str]]:
    """The corpus in the cache, which the first process makes if there is none."""
    wanted = cache.made_of(reader, paths)
    corpus = None
    if ranks.is_first:
        corpus = cache.stored(kept, wanted) or cache.make(kept, reader, chunks(paths), paths)
    ranks.wait()
    corpus = corpus or cache.stored(kept, wanted)
    if corpus is None:
        raise ConfigError(
            f"{printable(str(kept))}: not what the first process made of the records; all "
            "processes have to see the same run directory and records"
        )
    return corpus


def _vocabularies(inputs: Inputs) -> Vocabularies:
    if not inputs.spm:
        with contextlib.closing(lines_of(inputs.train)) as lines:
            first = next(lines, None)
        fingerprint = records.from_bytes(first.lines[0], first.name).vocab if first else None
        folders = [*(Path(path).parent for path in inputs.train), Path()]
        return run_folder.find_vocabularies(fingerprint, folders)
    source = Vocabulary.load(inputs.spm)
    target = Vocabulary.load(inputs.spm_target) if inputs.spm_target else source
    return Vocabularies(source, target)
