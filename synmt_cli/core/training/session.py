"""From options to a Trainer: reads the data, opens the run directory, builds the model."""

import contextlib
import hashlib
import json
import os
import time
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from synmt_cli import signals
from synmt_cli.core import variants
from synmt_cli.core.data import cache
from synmt_cli.core.data.corpus import Corpus, refuse_empty, refuse_treeless
from synmt_cli.core.data.record_reader import Chunk, CorpusReader, lines_of
from synmt_cli.core.data.targets import Targets
from synmt_cli.core.data.task_tags import refuse_parse, refuse_untagged
from synmt_cli.core.distributed.ranks import Ranks, own_device
from synmt_cli.core.model.transformer import Transformer
from synmt_cli.core.run.building import build, grammar, needs, target_needs
from synmt_cli.core.run.config import (
    Choice,
    Config,
    Precision,
    flatten,
    refuse_shard,
)
from synmt_cli.core.run.directory import PARSER, Run
from synmt_cli.core.run.presets import AUTO, SIZES, by_data
from synmt_cli.core.run.resuming import as_begun, refuse_another
from synmt_cli.core.text import tokenizers, vocabulary_finding
from synmt_cli.core.text.vocabulary import Vocabularies, Vocabulary
from synmt_cli.core.training.device import precision
from synmt_cli.core.training.length import Length
from synmt_cli.core.training.loop import Trainer
from synmt_cli.core.training.pretrained import Pretrained
from synmt_cli.core.training.saving import run_folder
from synmt_cli.core.variants import own_file
from synmt_cli.errors import (
    ConfigError,
    DataError,
    UsageError,
    cannot_read,
)
from synmt_cli.formats import record as records
from synmt_cli.formats import udpipe_model
from synmt_cli.io import regular_files
from synmt_cli.io.digests import sha256
from synmt_cli.io.json_files import as_text
from synmt_cli.io.reading import absolute, source_name
from synmt_cli.pool import ordered_map

STILL_READING = 60.0  # seconds between two messages of the process that reads to those that wait


@dataclass(frozen=True, slots=True)
class Inputs:
    """Files of a training run. dev, spm, spm_target and parser may be "".

    link_parser: the run names the parser instead of having a copy. jobs: processes that read the
    records, 0 for every core. pretrained: the model whose weights it begins with.
    """

    train: Sequence[str]
    dev: str
    spm: str = ""
    spm_target: str = ""
    parser: str = ""
    link_parser: bool = False
    jobs: int = 1
    pretrained: Pretrained | None = None


@dataclass(frozen=True, slots=True)
class Session:
    """The parts of a run, before its directory exists.

    train_sha256: of the files of records, or nothing where they have not been computed yet.
    """

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
            "train_sha256": list(self.train_sha256) or [*map(sha256, self.inputs.train)],
        }
        if self.inputs.dev:
            data |= {"dev": as_text(self.inputs.dev), "dev_sha256": sha256(self.inputs.dev)}
        tables = self.config.to_toml()
        tables["vocabulary"] = {"fingerprint": self.vocabularies.fingerprint}
        tables["data"] = data
        if parser := self.inputs.parser:
            file = as_text(absolute(parser)) if self.inputs.link_parser else PARSER
            tables["parser"] = {"file": file, "sha256": sha256(parser)}
        plan = variants.plan(self.config.variant)
        if entries := {one.name: own_file.entry(one) for one in plan.variants if one.own}:
            digest = hashlib.sha256(own_file.text()).hexdigest()
            tables["variants"] = {"sha256": digest, "entries": entries}
        if self.inputs.pretrained:
            tables["pretrained"] = dict(self.inputs.pretrained.record)
        return tables

    def _digest(self) -> int:
        """48 bits that tell what the model and its training are made of, wherever the files are."""
        tables = self.tables()
        for table, name in (("data", "train"), ("data", "dev"), ("parser", "file")):
            tables.get(table, {}).pop(name, None)
        tables.pop("pretrained", None)  # all begin with the weights of the first process
        content = json.dumps(tables, sort_keys=True)
        return int(hashlib.sha256(content.encode()).hexdigest()[:12], 16)

    def settled(self, choice: Choice, run: Run | None = None) -> tuple["Session", list[str]]:
        """This session with the settings that hold once data and run are known, and why.

        The data decide which preset `auto` is, but a run keeps the one that it began with. It also
        keeps settings that an earlier version of synmt began it with, unless others are asked for.
        """
        stored = _tables_begun_with(run)
        told = []
        preset = choice.preset
        if preset == AUTO:
            preset, why = self._size(stored)
            told.append(f"preset {preset}: {why}")
        config = choice.config(preset)
        if stored:
            layers = [as_begun(stored), *choice.layers]
            now, config = config, replace(choice, layers=layers).config(preset)
            told += _kept(flatten(now.to_toml()), flatten(config.to_toml()))
        return replace(self, config=config), told

    def _size(self, stored: Mapping[str, Any]) -> tuple[str, str]:
        """The preset for data and device, or that of the run, and why."""
        name = stored.get("preset")
        if isinstance(name, str) and name in SIZES:
            return name, "as this run began"
        name, why = by_data(self.train.n_target_pieces, self.device.type)
        return name, f"{why}; --preset NAME chooses another"

    def trainer(
        self,
        run: Run | None,
        ranks: Ranks,
        request: signals.Request | None = None,
        *,
        is_trial: bool = False,
    ) -> Trainer:
        """Builds the model with this run's seed, or with the weights of the pretrained one.

        The first process writes or checks the run. Raises Stopped on `request`.

        is_trial: nothing is written, and run may be None, for a new one. Trainer.why gives the
        reason for the precision.
        """
        if ranks.size > 1:
            ranks.refuse_unequal(self._digest(), "settings, records or variants")
        torch.manual_seed(self.config.training.seed)
        labels = self.train.encoding.labels
        model = build(self.config, self.vocabularies, len(labels))
        pretrained = self.inputs.pretrained
        if pretrained and not (run and run.steps()):  # else the checkpoint has all weights
            pretrained.begin(model, self.vocabularies, labels, ranks)
        taken, why = self._precision(model, run, ranks, request)
        training = replace(self.config.training, precision=taken)
        refuse_shard(training, self.config.variant, model.rereads)  # a run may begin with fp16
        session = replace(self, config=replace(self.config, training=training))
        if run is not None and is_trial and os.path.lexists(run.folder):
            run_folder.refuse_another_run(run, session.tables())
        if run is not None and ranks.is_first and not is_trial:
            session._establish(run, ranks)
        ranks.wait()
        return Trainer(
            run or Run(Path()),
            session.config.training,
            model,
            self.vocabularies,
            self.train,
            self.dev,
            self.device,
            ranks,
            why=why,
        )

    def _precision(
        self, model: Transformer, run: Run | None, ranks: Ranks, request: signals.Request | None
    ) -> tuple[Precision, str]:
        """The precision of the run, and why `auto` chose it, or ""."""
        settings = self.config.training
        if settings.precision != "auto":
            return settings.precision, ""
        stored = _tables_begun_with(run).get("training")
        name = stored.get("precision") if isinstance(stored, dict) else None
        for known in typing.get_args(Precision):
            if name == known:
                return known, "as this run began"
        updates = Length.of(self.train, settings).updates
        taken, why = "fp32", ""
        if ranks.is_first:  # the others wait, and leave it the processor
            taken, why = precision.choose(
                model, self.train, settings, updates, self.device, request
            )
        (is_bf16,) = ranks.from_first([float(taken == "bf16")])
        return ("bf16" if is_bf16 else "fp32"), why

    def _establish(self, run: Run, ranks: Ranks) -> None:
        """Writes the run directory, or checks that it is one of this run. Raises SynmtError."""
        labels = self.train.encoding.labels
        machine = run_folder.environment(torch.get_num_threads(), str(self.device), ranks.size)
        copied = "" if self.inputs.link_parser else self.inputs.parser
        run_folder.establish(run, self.tables(), self.vocabularies, labels.names, machine, copied)


def _kept(now: Mapping[str, Any], kept: Mapping[str, Any]) -> Iterator[str]:
    """Says which settings a run keeps from when it began. now: those that it would get today."""
    if changed := [f"{key} = {kept[key]}" for key in now if now[key] != kept[key]]:
        yield f"as this run began: {', '.join(changed)}"


def open_session(
    config: Config,
    inputs: Inputs,
    device: str,
    request: signals.Request,
    run: Run | None = None,
    ranks: Ranks | None = None,
    watch: Callable[[int], None] = lambda n: None,
) -> Session:
    """Reads everything that training needs. Raises SynmtError, and Stopped on `request`.

    run: its cache has the training records as numbers, for the next start and for the other
    processes; None: they are kept in memory. watch: called with the number of records just read.
    """
    _refuse_unusable(inputs)
    if inputs.dev and config.training.metric == "bleu":
        tokenizers.bleu(config.training.tokenize)  # raises now and not after an hour
    chosen = own_device(device)
    vocabularies = _vocabularies(inputs, run)
    targets = Targets(vocabularies.target, grammar(config, vocabularies), target_needs(config))
    needed, limit = needs(config, training=True), config.training.max_length
    labels = inputs.pretrained.labels if inputs.pretrained else ()
    reader = reader_of_dev = CorpusReader(vocabularies, needed, targets, limit, labels=labels)
    if variants.plan(config.variant).data == "multitask":
        reader = reader_of_dev = replace(reader, check=refuse_untagged)
        if config.training.metric == "bleu":
            reader_of_dev = replace(reader, check=refuse_parse)

    def chunks(paths: Sequence[str], is_dev: bool = False) -> Iterator[Chunk]:
        function = partial((reader_of_dev if is_dev else reader).chunk, references=is_dev)
        stopped = "stopped while reading the records; the same command starts again"
        lines = signals.until(request, lines_of(paths), stopped)
        for chunk in ordered_map(function, lines, inputs.jobs, chunk=1):
            yield chunk
            watch(chunk.n)

    if run is None:
        encoding = reader.encoding()
        train, _ = reader.corpus(chunks(inputs.train), encoding)
        encoding.labels.growing = False
        digests: list[str] = []
    else:
        train, digests = _cached(run, config, reader, chunks, inputs.train, ranks or Ranks())
    _refuse_useless(train, " ".join(inputs.train), config, training=True)
    dev = None
    if inputs.dev:
        dev, _ = reader.corpus(chunks([inputs.dev], is_dev=True), train.encoding)
        _refuse_useless(dev, inputs.dev, config, training=False)
    return Session(config, inputs, vocabularies, train, dev, digests, chosen)


def _refuse_unusable(inputs: Inputs) -> None:
    """Raises UsageError for records from a pipe, and ReadError or DataError for a dev set or a
    parser that is not one.
    """
    for path in (*inputs.train, inputs.dev):
        if path == "-" or (os.path.exists(path) and not os.path.isfile(path)):
            name = source_name(path)
            raise UsageError(f"{name}: training reads its records more than once; name a file")
    if inputs.dev:
        _first_record([inputs.dev])  # not after an hour of reading the others
    if path := inputs.parser:
        try:
            with regular_files.named(path) as file:
                udpipe_model.unpacked_size(file, path)
        except (OSError, ValueError) as error:
            raise cannot_read(path, error) from error


def _refuse_useless(corpus: Corpus, what: str, config: Config, *, training: bool) -> None:
    """Raises DataError for no pairs, or none with a tree where the variant reads trees."""
    refuse_empty(corpus, what)
    if needs(config, training):
        refuse_treeless(corpus, config.variant, what)


def _cached(
    run: Run,
    config: Config,
    reader: CorpusReader,
    chunks: Callable[[Sequence[str]], Iterator[Chunk]],
    paths: Sequence[str],
    ranks: Ranks,
) -> tuple[Corpus, list[str]]:
    """The cached corpus and the digests of its files; the first process makes it if it is lost."""
    wanted = cache.made_of(reader, paths)
    found = None
    if ranks.is_first:
        found = cache.stored(run.cache, wanted)
        if found is None:
            _refuse_to_replace_cache(run, config, reader, paths)
            found = cache.make(run.cache, reader, _heard(chunks(paths), ranks), paths)
    while ranks.any(False):  # the first process still reads
        pass
    found = found or cache.stored(run.cache, wanted)
    ranks.wait()  # a cache is not removed while another process opens it
    if found is None:
        raise ConfigError(
            f"{run.cache}: not what the first process made of the records; all "
            "processes have to see the same run directory and records"
        )
    return found


def _heard(chunks: Iterator[Chunk], ranks: Ranks) -> Iterator[Chunk]:
    """Yields the chunks, and tells the other processes, which wait for the end, that more come."""
    last = time.monotonic()
    for chunk in chunks:
        if time.monotonic() - last > STILL_READING:
            ranks.any(True)
            last = time.monotonic()
        yield chunk


def _refuse_to_replace_cache(
    run: Run, config: Config, reader: CorpusReader, paths: Sequence[str]
) -> None:
    """Raises ConfigError where a run could not resume with what this reader makes of these files.

    It would be refused later anyway (run_folder.establish), but would have lost its cache by then.
    """
    if (begun := run_folder.begun_with(run)) is not None:
        now: dict[str, Any] = {
            "variant": config.variant,
            **config.own_options(),
            "training": {"max_length": config.training.max_length},
            "vocabulary": {"fingerprint": reader.vocabularies.fingerprint},
            "data": {"train_sha256": [*map(sha256, paths)]},
        }
        refuse_another(_part(begun, now), now, run.folder)


def _tables_begun_with(run: Run | None) -> dict[str, Any]:
    """The tables that a run was begun with, none where there is nothing yet. Raises SynmtError."""
    return (run_folder.begun_with(run) if run else None) or {}


def _part(tables: Mapping[str, Any], like: Mapping[str, Any]) -> dict[str, Any]:
    """The part of tables whose keys `like` has, too."""
    return {
        key: _part(tables[key], value) if isinstance(value, Mapping) else tables[key]
        for key, value in like.items()
        if key in tables and isinstance(tables[key], Mapping) == isinstance(value, Mapping)
    }


def _first_record(paths: Sequence[str]) -> records.Record | None:
    """The first record, None if there is none. Raises ReadError, DataError."""
    with contextlib.closing(lines_of(paths)) as lines:
        first = next(lines, None)
    return first and records.from_bytes(first.lines[0], first.name)


def _vocabularies(inputs: Inputs, run: Run | None) -> Vocabularies:
    """The named vocabularies, else those of the records' pieces; a begun run has copies of them."""
    if not inputs.spm:
        if inputs.spm_target:
            raise UsageError("--tgt-spm needs --spm")
        first = _first_record(inputs.train)
        if first is None:
            raise DataError(" ".join(inputs.train), None, "no records to train on")
        fingerprint = first.vocab
        if inputs.pretrained:
            return inputs.pretrained.vocabularies(fingerprint)
        folders = [*(Path(path).parent for path in inputs.train), Path()]
        if run is not None:
            folders.append(run.folder)
        return vocabulary_finding.find(fingerprint, folders)
    source = Vocabulary.load(inputs.spm)
    target = Vocabulary.load(inputs.spm_target) if inputs.spm_target else source
    if target.fingerprint == source.fingerprint:
        target = source
    vocabularies = Vocabularies(source, target)
    if inputs.pretrained:
        inputs.pretrained.vocabularies(vocabularies.fingerprint)
    return vocabularies
