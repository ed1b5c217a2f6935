"""A run directory: the paths and small files of a trained model. Never loads torch.

config.toml          the resolved configuration, and digests of vocabulary, parser and data, and
                     of the weights that training began with, if it began with a model's
spm.model            the subword vocabulary (spm.tgt.model too, where the target has its own)
parser.udpipe        a copy of the parser that makes trees of text, where the run has one
variants.py          a copy of the file of one's own variants, if the run has one of them
labels.json          the dependency labels, in the order of their ids
model.safetensors    the weights that were best on dev
checkpoints/step-N/  weights.safetensors, optimizer.safetensors, state.json
metrics.jsonl        one line for each report and validation
env.json             versions and machine, of this start and of earlier ones
cache/               the training records as numbers; it may be deleted

A run directory may come from somewhere else. A link may lead to the folder, but nothing inside it
may be a link; each file is a regular file of a limited size, and is checked when it is read.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomli_w

from synmt_cli.core.run.config import LIMIT, SettingsLayer, from_bytes
from synmt_cli.core.run.own_code import code
from synmt_cli.core.text.vocabulary import Vocabularies, Vocabulary
from synmt_cli.core.variants import own_file
from synmt_cli.core.variants.table import Variant
from synmt_cli.errors import (
    QUOTE_LIMIT,
    ConfigError,
    DataError,
    ReadError,
    cannot_read,
    quoted,
)
from synmt_cli.io import json_files, reading, regular_files, writing
from synmt_cli.io.digests import size_and_sha256

FORMAT = 1
CONFIG, MODEL, METRICS = "config.toml", "model.safetensors", "metrics.jsonl"
SOURCE_VOCABULARY, TARGET_VOCABULARY = "spm.model", "spm.tgt.model"
LABELS, PARSER, ENVIRONMENT, LOCK = "labels.json", "parser.udpipe", "env.json", ".lock"
OWN_VARIANTS = "variants.py"
MEANINGS = (SOURCE_VOCABULARY, TARGET_VOCABULARY, LABELS)  # what the model's ids stand for
WEIGHTS, OPTIMIZER, STATE = "weights.safetensors", "optimizer.safetensors", "state.json"
EXPORT = "export.json"  # in a folder of `synmt export`, which has no weights to train
ENCODER, CT2_MODEL, CT2_CONFIG = "encoder.safetensors", "model.bin", "config.json"  # there, too
EXPORTED = (EXPORT, ENCODER, CT2_MODEL, CT2_CONFIG)
FILES = (CONFIG, *MEANINGS, MODEL, METRICS, ENVIRONMENT, LOCK, PARSER, OWN_VARIANTS, *EXPORTED)
CHECKPOINTS, CACHE = FOLDERS = ("checkpoints", "cache")
VOCABULARY_LIMIT = 256 * 2**20  # bytes
METRIC_LIMIT = 2**16  # bytes of a line
STEP = re.compile(r"step-(0|[1-9][0-9]{0,17})")

STATE_CONTENT = "the state of a training run"
_COUNT = (json_files.is_count, "an integer from 0 on")
_NUMBER = (json_files.is_number, "a number")
_STATE_FIELDS: json_files.Fields = {
    **dict.fromkeys(("step", "epoch", "batch", "best_step", "stale", "validated"), _COUNT),
    **dict.fromkeys(
        ("best_value", "best_nll", "least_nll"),
        (lambda v: v is None or json_files.is_number(v), "a number or null"),
    ),
    **dict.fromkeys(("loss", "nll"), _NUMBER),
    "losses": (
        lambda v: isinstance(v, dict) and all(map(json_files.is_number, v.values())),
        "an object of numbers",
    ),
    "gradient_norm": _NUMBER,
    "tokens": _COUNT,
    **dict.fromkeys(("scale", "scale_age"), _NUMBER),
    "finished": (lambda v: isinstance(v, str), "a string"),
    "for_stop": (lambda v: isinstance(v, bool), "true or false"),
}
# Checkpoints of early versions lack these.
_STATE_LATER = (
    "losses",
    "validated",
    "gradient_norm",
    "scale",
    "scale_age",
    "best_nll",
    "least_nll",
    "for_stop",
)


def read_state(checkpoint: Path, step: int | None = None) -> dict[str, Any]:
    """The state.json of a checkpoint's folder. Raises ReadError, DataError, ConfigError.

    step: the step that the state must have, if it is known.
    """
    path = checkpoint / STATE
    state = json_files.read_sealed(path, STATE_CONTENT)
    check_state(state, path)
    if step not in (None, state["step"]):
        raise DataError(str(path), 1, f"the state of step {state['step']}, not {step}")
    return state


def check_state(state: Mapping[str, Any], path: Path) -> None:
    """Raises DataError unless these are the fields of a state, each of its type."""
    json_files.refuse_other_fields(state, _STATE_FIELDS, path, optional=_STATE_LATER)


def read_metric(line: bytes, path: Path, number: int) -> dict[str, Any]:
    """The object in a line of metrics.jsonl. Raises DataError."""
    fields = json_files.parsed(line, path, number)
    if not isinstance(fields, dict) or not json_files.is_count(fields.get("step")):
        raise DataError(str(path), number, "field step is missing or not an integer")
    return fields


@dataclass(frozen=True, slots=True)
class Run:
    """A run directory, and the place of each file in it."""

    folder: Path

    @property
    def config(self) -> Path:
        """config.toml; a folder that has it is a run directory."""
        return self.folder / CONFIG

    @property
    def model(self) -> Path:
        """The weights that were best on dev."""
        return self.folder / MODEL

    @property
    def metrics(self) -> Path:
        """One JSON object for each report."""
        return self.folder / METRICS

    @property
    def cache(self) -> Path:
        """The training records as numbers; may be deleted."""
        return self.folder / CACHE

    @property
    def environment(self) -> Path:
        """Versions and machine; for a mean also the checkpoints that it is made of."""
        return self.folder / ENVIRONMENT

    @property
    def is_exported(self) -> bool:
        """Whether `synmt export` wrote the folder."""
        return os.path.lexists(self.folder / EXPORT)

    def checkpoint(self, step: int) -> Path:
        """The folder of one checkpoint."""
        return self.folder / CHECKPOINTS / f"step-{step}"

    def steps(self) -> list[int]:
        """The steps of the checkpoints there are, rising. Raises ReadError."""
        return sorted(self._steps())

    def _steps(self) -> Iterator[int]:
        folder = self.folder / CHECKPOINTS
        try:
            if problem := regular_files.problem(folder, is_folder=True):
                raise problem
            names = os.listdir(folder)
        except (FileNotFoundError, NotADirectoryError):
            return
        except (OSError, ValueError) as error:
            raise cannot_read(folder, error) from error
        for name in names:
            if match := STEP.fullmatch(name):
                if problem := regular_files.problem(folder / name, is_folder=True):
                    raise problem
                yield int(match[1])

    def misplaced(self) -> Iterator[ReadError]:
        """Yields an error for each name that is a link, or not the file or folder it should be."""
        for names, is_folder in ((FILES, False), (FOLDERS, True)):
            for name in names:
                if problem := regular_files.problem(self.folder / name, is_folder):
                    yield problem

    def refuse_misplaced(self) -> None:
        """Raises ReadError for a name that is a link, or not the file or folder it should be."""
        for problem in self.misplaced():
            raise problem

    def checkpoints(self) -> dict[str, Path]:
        """The weights that `best`, `last` and each `step-N` stand for."""
        steps = {f"step-{step}": self.checkpoint(step) / WEIGHTS for step in self.steps()}
        last = {"last": list(steps.values())[-1]} if steps else {}
        return {"best": self.model, **last, **steps}

    def named(self, checkpoint: str) -> str:
        """The step that `last` is now, since a training may save another; other names unchanged."""
        steps = self.steps() if checkpoint == "last" else []
        return f"step-{steps[-1]}" if steps else checkpoint

    def weights(self, checkpoint: str) -> Path:
        """The file of a checkpoint: `best`, `last` or `step-N`. Raises ReadError."""
        if self.is_exported:
            raise ReadError(
                f"{self.folder} was exported for CTranslate2: it has no "
                "checkpoints, and only translate reads it"
            )
        known = self.checkpoints()
        if checkpoint not in known:
            raise ReadError(
                f"{self.folder} has no checkpoint {checkpoint}; it has {', '.join(known)}"
            )
        if checkpoint == "best" and self.steps() and not os.path.lexists(self.model):
            raise ReadError(
                f"cannot read {self.model}: No such file or directory; training "
                "writes it when it first validates, and --checkpoint last is there"
            )
        return known[checkpoint]

    def settings(self) -> SettingsLayer:
        """config.toml, which may be of another format. Raises ReadError, DataError, ConfigError."""
        self.refuse_misplaced()
        if not os.path.lexists(self.config):
            why = "no config.toml" if os.path.lexists(self.folder) else "it does not exist"
            raise ReadError(f"{self.folder} is not a run directory ({why})")
        return from_bytes(regular_files.read(self.config, LIMIT), str(self.config))

    def tables(self) -> dict[str, Any]:
        """config.toml as plain tables. Raises ReadError, DataError, ConfigError."""
        tables = dict(self.settings().tables)
        stated = tables.get("format")
        if stated is None and os.path.lexists(self.folder / "Makefile"):
            raise ConfigError(
                f"{self.folder} is an experiment, not a run directory; its models "
                "are models/VARIANT.SEED, and its training runs runs/VARIANT.SEED"
            )
        if stated is None:
            raise ConfigError(f"{self.config} is not a run's, or not whole: format is missing")
        if type(stated) is not int or stated != FORMAT:
            shown = repr(stated)[:QUOTE_LIMIT]
            raise ConfigError(f"{self.config}: format {shown}, expected {FORMAT}")
        return tables

    def write_config(self, tables: Mapping[str, Any]) -> None:
        """Writes config.toml, whole or not at all. Raises CreateError, WriteError."""
        with writing.atomic(self.config, follow=False) as writer:
            writer.write(tomli_w.dumps({**tables, "format": FORMAT}).encode())

    def vocabularies(self) -> Vocabularies:
        """The vocabularies. Raises ConfigError where they are not the ones trained with."""
        about = self.tables().get("vocabulary")
        source = self._vocabulary(SOURCE_VOCABULARY)
        own = os.path.lexists(self.folder / TARGET_VOCABULARY)
        target = self._vocabulary(TARGET_VOCABULARY) if own else source
        vocabularies = Vocabularies(source, target)
        stated = about.get("fingerprint") if isinstance(about, dict) else None
        if stated != vocabularies.fingerprint:
            raise ConfigError(
                f"{self.folder}: vocabulary {vocabularies.fingerprint}, "
                f"but the run was trained with {str(stated)[:QUOTE_LIMIT]}"
            )
        return vocabularies

    def _vocabulary(self, name: str) -> Vocabulary:
        path = self.folder / name
        return Vocabulary(regular_files.read(path, VOCABULARY_LIMIT), str(path))

    def write_vocabularies(self, vocabularies: Vocabularies) -> None:
        """Copies the sentencepiece models into the run, and removes a target's that is unused."""
        files = {SOURCE_VOCABULARY: vocabularies.source}
        if vocabularies.target is not vocabularies.source:
            files[TARGET_VOCABULARY] = vocabularies.target
        else:
            (self.folder / TARGET_VOCABULARY).unlink(missing_ok=True)
        for name, vocabulary in files.items():
            with writing.atomic(self.folder / name, follow=False) as writer:
                writer.write(vocabulary.to_bytes())

    def labels(self) -> list[str]:
        """The dependency labels, the first of them id 1. Raises DataError, ReadError."""
        path = self.folder / LABELS
        labels: list[str] = json_files.read(path)
        if not json_files.is_texts(labels):
            raise DataError(str(path), 1, "expected a list of labels")
        return labels

    def write_labels(self, labels: Sequence[str]) -> None:
        """Writes labels.json, whole or not at all."""
        json_files.write(self.folder / LABELS, list(labels))

    def read_environment(self) -> dict[str, Any]:
        """The object in env.json. Raises DataError, ReadError."""
        return json_files.read_object(self.environment, "the versions and machine of a run")

    @property
    def averaged(self) -> bool:
        """Whether this is a mean of checkpoints (`synmt average`). Raises DataError, ReadError."""
        return os.path.lexists(self.environment) and "averaged" in self.read_environment()

    def metric_lines(self) -> Iterator[tuple[int, bytes]]:
        """Yields (number, line with its LF) of metrics.jsonl. Raises DataError, ReadError.

        A last line without LF is left out: a training is writing it, or was killed while writing.
        """
        lines = regular_files.lines(self.metrics, METRIC_LIMIT)
        return ((number, line) for number, line in lines if line.endswith(b"\n"))

    def copy_parser(self, path: str, sha256: str) -> None:
        """Copies the parser into the run, unless it is there. Raises SynmtError.

        sha256: the digest of the file when it was first looked at.
        """
        own = self.folder / PARSER
        if os.path.lexists(own) and size_and_sha256(str(own), follow=False)[1] == sha256:
            return
        digest = hashlib.sha256()
        with regular_files.opened(path) as file, writing.atomic(own, follow=False) as writer:
            try:
                while block := file.read(reading.BUFFER):
                    digest.update(block)
                    writer.write(block)
            except OSError as error:
                raise cannot_read(path, error) from error
            if digest.hexdigest() != sha256:
                raise DataError(path, None, "it changes while it is copied into the run")

    def copy_meaning_of(self, run: Run) -> None:
        """Copies all that another run's weights need besides config.toml. Raises SynmtError.

        These are what the ids stand for, the parser that lies there, if one does, and the file of
        one's own variants, if the run has one of them.
        """
        for name in MEANINGS:
            if os.path.lexists(run.folder / name):
                self.copy_file_of(run, name)
        self._copy_parser_of(run)
        self.write_own_variants(run.own_variants())

    def copy_file_of(self, run: Run, name: str) -> None:
        """Copies a small file of another run, byte for byte. Raises SynmtError."""
        content = regular_files.read(run.folder / name, VOCABULARY_LIMIT)
        with writing.atomic(self.folder / name, follow=False) as writer:
            writer.write(content)

    def _copy_parser_of(self, run: Run) -> None:
        parser = run.parser()
        if parser and os.path.lexists(run.folder / PARSER):
            run.check_parser()
            self.copy_parser(str(run.folder / PARSER), parser[1])

    def check_parser(self) -> None:
        """Raises DataError if the copy of the parser is not the file that was trained with."""
        own, named = self.folder / PARSER, self.parser()
        if named is None or named[0] != PARSER:
            return
        if size_and_sha256(str(own), follow=False)[1] != named[1]:
            raise DataError(str(own), None, "not the parser of the digest in config.toml")

    def own_variants(self) -> bytes | None:
        """The copy of the file with the run's variant; None if the variant is synmt's own.

        Raises ReadError, ConfigError; DataError if it is not the file that was trained with.
        """
        match self.tables().get("variants"):
            case None:
                return None
            case {"sha256": str(sha256), "entries": dict()}:
                own = self.folder / OWN_VARIANTS
                text = regular_files.read(own, own_file.LIMIT)
                if hashlib.sha256(text).hexdigest() != sha256:
                    problem = f"not the file of the digest in {CONFIG}"
                    raise DataError(str(own), None, problem)
                return text
        raise ConfigError(f"{self.config}: [variants] needs sha256, a text, and entries, a table")

    def write_own_variants(self, text: bytes | None) -> None:
        """Writes the copy, whole or not at all; removes it if `text` is None."""
        if text is None:
            (self.folder / OWN_VARIANTS).unlink(missing_ok=True)
            return
        with writing.atomic(self.folder / OWN_VARIANTS, follow=False) as writer:
            writer.write(text)

    def refuse_other_code(self) -> None:
        """Raises ConfigError unless variants of one's own compute what they did in training.

        The run's copy is compared as text, and never run. Raises as `own_variants`.
        """
        if (copy := self.own_variants()) is None:
            return
        known, file = own_file.known(), own_file.path()
        take = f"{own_file.VARIABLE}={self.folder / OWN_VARIANTS} takes the copy there"
        for name, entry in self.tables()["variants"]["entries"].items():
            if name not in known:
                lacks = f"{file} has no variant" if file else "a file of its own has the variant"
                raise ConfigError(
                    f"{self.folder}: {lacks} {quoted(name)}; {take}, which is a program: read it "
                    "first if it is someone else's"
                )
            if not self._computes_as(copy, entry, known[name]):
                raise ConfigError(
                    f"{self.folder}: {file or 'synmt'} has another variant {name} than it was "
                    f"trained with; {take}"
                )

    def _computes_as(self, copy: bytes, entry: object, variant: Variant) -> bool:
        """Whether a variant is the one of this entry in the run's copy. Raises DataError."""
        now = own_file.entry(variant)
        if not variant.own or entry != now:
            return False
        builders = [str(now[stack]) for stack in ("encoder", "decoder") if now[stack]]
        try:
            return code(copy, builders) == code(own_file.text(), builders)
        except (SyntaxError, ValueError, RecursionError) as error:
            raise DataError(str(self.folder / OWN_VARIANTS), None, f"not Python: {error}") from None

    def parser(self) -> tuple[str, str] | None:
        """The file and SHA-256 of the parser of `train --parser`. Raises ConfigError.

        The file is in the run directory, or elsewhere if its path is absolute; early versions
        wrote paths from the folder in which training was started.
        """
        match self.tables().get("parser"):
            case None:
                return None
            case {"file": str(file), "sha256": str(sha256)}:
                return file, sha256
        raise ConfigError(f"{self.config}: [parser] needs file and sha256, both texts")

    def pretrained(self) -> dict[str, Any] | None:
        """The model of `train --pretrained`: its run as given, checkpoint, SHA-256, labels.

        labels: how many of this run's labels were that model's, the first ones. Raises DataError,
        ReadError, ConfigError.
        """
        match self.tables().get("pretrained"):
            case None:
                return None
            case {"run": str(), "checkpoint": str(), "sha256": str(), "labels": int(n)} as table:
                if 0 <= n <= len(self.labels()) and not isinstance(n, bool):
                    return dict(table)
        raise ConfigError(
            f"{self.config}: [pretrained] needs run, checkpoint and sha256, all texts, and labels, "
            f"a number up to that of {LABELS}"
        )
