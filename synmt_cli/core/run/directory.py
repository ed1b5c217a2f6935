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

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomli_w

from synmt_cli.core.model import initialisation
from synmt_cli.core.model.transformer import Transformer
from synmt_cli.core.run import tensors
from synmt_cli.core.run.building import build, modifiers
from synmt_cli.core.run.config import Config, from_file, resolve
from synmt_cli.core.text.vocabulary import Vocabularies, Vocabulary
from synmt_cli.errors import ConfigError, DataError, ReadError, UsageError, printable
from synmt_cli.io import writing
from synmt_cli.io.json_files import read_json

FORMAT = 1


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
            with initialisation.without_values():
                modifiers(config, 1)  # the variant's own checks of its options
        except UsageError as error:  # not the command line's fault
            raise ConfigError(f"{printable(str(self.config))}: {error}") from None
        return config

    def write_config(self, tables: Mapping[str, Any]) -> None:
        """Writes config.toml, whole or not at all."""
        with writing.atomic(self.config) as writer:
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
            with writing.atomic(self.folder / name) as writer:
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

    def load(self, checkpoint: str = "best") -> Transformer:
        """The model with its weights: `best`, `last` or `step-N`. Raises SynmtError."""
        config = self.read_config()
        weights = self.weights(checkpoint)
        vocabularies, n_labels = self.vocabularies(), len(self.labels())
        with initialisation.without_values():  # sizes that do not fit take no memory
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
