"""A run directory: what a trained model is on disk.

config.toml          everything resolved: variant, sizes, training, vocabulary, parser, data
spm.model            the subword vocabulary (spm.tgt.model too, where the target has its own)
labels.json          the dependency labels, in the order of their ids
model.safetensors    the weights that were best on dev
checkpoints/step-N/  weights.safetensors, optimizer.safetensors, state.json
metrics.jsonl        one line for each report and validation
env.json             versions, machine, hashes of the data
cache/               the training records as numbers; it may be deleted
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomli_w

from synmt_cli import streams
from synmt_cli.core import tensors, variants
from synmt_cli.core.grammar import Grammar
from synmt_cli.core.model.modifier import Modifier
from synmt_cli.core.model.translation import Translation
from synmt_cli.core.training.config import Config, from_file, resolve
from synmt_cli.core.variants.setting import Setting
from synmt_cli.core.vocabulary import Vocabulary
from synmt_cli.errors import ConfigError, DataError, ReadError, UsageError, printable

FORMAT = 1


@dataclass(frozen=True, slots=True)
class Vocabularies:
    """The subword vocabularies of both sides; the same object where they are one."""

    source: Vocabulary
    target: Vocabulary

    @property
    def fingerprint(self) -> str:
        """What records carry in `vocab`: one fingerprint, or SOURCE+TARGET."""
        if self.source.fingerprint == self.target.fingerprint:
            return self.source.fingerprint
        return f"{self.source.fingerprint}+{self.target.fingerprint}"


@dataclass(frozen=True, slots=True)
class Run:
    """The folder, and where each thing in it lies."""

    folder: Path

    @property
    def config(self) -> Path:
        """config.toml; a folder that has it is a run directory."""
        return self.folder / "config.toml"

    @property
    def model(self) -> Path:
        """The weights that were best on dev."""
        return self.folder / "model.safetensors"

    @property
    def metrics(self) -> Path:
        """One JSON object for each report."""
        return self.folder / "metrics.jsonl"

    @property
    def cache(self) -> Path:
        """The training records as numbers; may be deleted."""
        return self.folder / "cache"

    def checkpoint(self, step: int) -> Path:
        """The folder of one checkpoint."""
        return self.folder / "checkpoints" / f"step-{step}"

    def steps(self) -> list[int]:
        """The steps of the checkpoints there are, rising."""
        names = (path.name for path in (self.folder / "checkpoints").glob("step-*"))
        return sorted(int(n) for name in names if (n := name.removeprefix("step-")).isdecimal())

    def tables(self) -> dict[str, Any]:
        """config.toml as plain tables. Raises ReadError, ConfigError."""
        if not self.config.is_file():
            raise ReadError(
                f"{printable(str(self.folder))} is not a run directory (no config.toml)"
            )
        tables = dict(from_file(str(self.config)).tables)
        if tables.get("format") != FORMAT:
            found = tables.get("format")
            raise ConfigError(f"{printable(str(self.config))}: format {found!r}, expected {FORMAT}")
        return tables

    def read_config(self) -> Config:
        """The resolved configuration. Raises ReadError, ConfigError with file and line."""
        tables = self.tables()
        try:
            config = resolve(tables.get("variant"), "base", [from_file(str(self.config))])
            with tensors.without_values():
                modifiers(config, 1)  # the variant's own checks of its options
        except UsageError as error:  # not the command line's fault
            raise ConfigError(f"{printable(str(self.config))}: {error}") from None
        return config

    def write_config(self, tables: Mapping[str, Any]) -> None:
        """Writes config.toml, whole or not at all."""
        with streams.atomic(self.config) as writer:
            writer.write(tomli_w.dumps({**tables, "format": FORMAT}).encode())

    def vocabularies(self) -> Vocabularies:
        """The vocabularies. Raises ConfigError where they are not the ones trained with."""
        source = Vocabulary.load(str(self.folder / "spm.model"))
        own = self.folder / "spm.tgt.model"
        target = Vocabulary.load(str(own)) if own.exists() else source
        found = Vocabularies(source, target)
        about = self.tables().get("vocabulary")
        stated = about.get("fingerprint") if isinstance(about, dict) else None
        if stated != found.fingerprint:
            raise ConfigError(
                f"{printable(str(self.folder))}: vocabulary {found.fingerprint}, "
                f"but the run was trained with {stated}"
            )
        return found

    def write_vocabularies(self, vocabularies: Vocabularies) -> None:
        """Copies the sentencepiece models into the run."""
        files = {"spm.model": vocabularies.source}
        if vocabularies.target is not vocabularies.source:
            files["spm.tgt.model"] = vocabularies.target
        for name, vocabulary in files.items():
            with streams.atomic(self.folder / name) as writer:
                writer.write(vocabulary.to_bytes())

    def labels(self) -> list[str]:
        """The dependency labels, the first of them id 1. Raises DataError, ReadError."""
        labels = read_json(self.folder / "labels.json")
        if not isinstance(labels, list) or not all(isinstance(label, str) for label in labels):
            raise DataError(str(self.folder / "labels.json"), 1, "expected a list of labels")
        return labels

    def parser(self) -> tuple[str, str] | None:
        """File and SHA-256 of the parser that `train --parser` named. Raises ConfigError."""
        match self.tables().get("parser"):
            case None:
                return None
            case {"file": str(file), "sha256": str(sha256)}:
                return file, sha256
        name = printable(str(self.config))
        raise ConfigError(f"{name}: [parser] needs file and sha256, both texts")

    def load(self, checkpoint: str = "best") -> Translation:
        """The model with its weights: `best`, `last` or `step-N`. Raises SynmtError."""
        config = self.read_config()
        weights = self.weights(checkpoint)
        vocabularies, n_labels = self.vocabularies(), len(self.labels())
        with tensors.without_values():  # sizes that do not fit take no memory
            outline = build(config, vocabularies, n_labels)
        found, _ = tensors.read(
            weights, tensors.fitting(outline, vocabularies.fingerprint, weights)
        )
        model = build(config, vocabularies, n_labels)
        tensors.load_into(model, found, weights)
        return model.eval()

    def weights(self, checkpoint: str) -> Path:
        """The file of a checkpoint: `best`, `last` or `step-N`. Raises ReadError."""
        if checkpoint == "best":
            return self.model
        steps = self.steps()
        if checkpoint == "last" and steps:
            return self.checkpoint(steps[-1]) / "weights.safetensors"
        if checkpoint in (f"step-{step}" for step in steps):
            return self.folder / "checkpoints" / checkpoint / "weights.safetensors"
        known = ", ".join(["best", "last", *(f"step-{step}" for step in steps)])
        raise ReadError(f"{printable(str(self.folder))} has no checkpoint {checkpoint}; {known}")


def sha256(path: str) -> str:
    """The digest of a file's bytes. Raises ReadError."""
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise ReadError(f"cannot read {printable(path)}: {error.strerror}") from error


def read_json(path: Path) -> Any:
    """A JSON file. Raises ReadError, DataError."""
    try:
        return json.loads(path.read_bytes())
    except OSError as error:
        raise ReadError(f"cannot read {printable(str(path))}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise DataError(str(path), 1, f"not JSON: {printable(str(error))}") from None


def write_json(path: Path, value: Any) -> None:
    """Writes a JSON file, whole or not at all."""
    with streams.atomic(path) as writer:
        writer.write(json.dumps(value, indent=1, ensure_ascii=False).encode() + b"\n")


def modifiers(
    config: Config, n_labels: int, n_arcs: int = 1
) -> tuple[list[Modifier], list[Modifier]]:
    """The encoder's and the decoder's modifiers. Raises UsageError for a bad option.

    n_labels: of the sources' trees. n_arcs: labels of the targets' transitions.
    """
    plan, size = variants.plan(config.variant), config.model
    return (
        plan.encoder(Setting(size, size.encoder_layers, n_labels), config.options),
        plan.decoder(Setting(size, size.decoder_layers, n_arcs), config.options),
    )


def grammar(config: Config, vocabularies: Vocabularies) -> Grammar | None:
    """Of the transitions that the variant writes, None where it writes none.

    Raises ConfigError where the target's vocabulary has no transitions.
    """
    plan = variants.plan(config.variant)
    return Grammar.of(vocabularies.target) if plan.transitions else None


def build(config: Config, vocabularies: Vocabularies, n_labels: int) -> Translation:
    """A model with fresh weights. Raises UsageError, ConfigError."""
    n_source, n_target = vocabularies.source.size, vocabularies.target.size
    if config.model.tied == "all" and vocabularies.source is not vocabularies.target:
        raise ConfigError("two vocabularies cannot share embeddings; --set model.tied=decoder")
    moves = grammar(config, vocabularies)
    encoder, decoder = modifiers(config, n_labels, len(moves.names) if moves else 0)
    rereads = variants.plan(config.variant).rereads
    return Translation(config.model, n_source, n_target, encoder, decoder, rereads, moves)


def needs(config: Config, training: bool) -> tuple[str, ...]:
    """The source features that the variant reads, sorted.

    Where none is needed to translate, no parser is either.
    """
    with tensors.without_values():
        encoder, _ = modifiers(config, 1)
    return tuple(
        sorted({name for m in encoder for name in m.needs if training or name not in m.learns})
    )


def target_needs(config: Config) -> tuple[str, ...]:
    """The features of the target's tree so far that the variant reads, sorted."""
    with tensors.without_values():
        _, decoder = modifiers(config, 1)
    return tuple(sorted({name for m in decoder for name in m.needs}))
