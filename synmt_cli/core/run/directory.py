"""A run directory: the paths and small files of a trained model. Never loads torch.

config.toml          the resolved configuration, and digests of vocabulary, parser and data
spm.model            the subword vocabulary (spm.tgt.model too, where the target has its own)
labels.json          the dependency labels, in the order of their ids
model.safetensors    the weights that were best on dev
checkpoints/step-N/  weights.safetensors, optimizer.safetensors, state.json
metrics.jsonl        one line for each report and validation
env.json             versions, machine, hashes of the data
cache/               the training records as numbers; it may be deleted
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomli_w

from synmt_cli.core.run.config import from_file
from synmt_cli.core.text.vocabulary import Vocabularies, Vocabulary
from synmt_cli.errors import ConfigError, DataError, ReadError, printable
from synmt_cli.io import json_files, writing

FORMAT = 1
WEIGHTS, OPTIMIZER, STATE = "weights.safetensors", "optimizer.safetensors", "state.json"


def read_state(checkpoint: Path) -> dict[str, Any]:
    """The state.json of a checkpoint's folder. Raises ReadError, DataError, ConfigError."""
    return json_files.read_sealed(checkpoint / STATE, "the state of a training run")


@dataclass(frozen=True, slots=True)
class Run:
    """A run directory, and the place of each file in it."""

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

    @property
    def environment(self) -> Path:
        """Versions and machine; an average's names what it is made of."""
        return self.folder / "env.json"

    def checkpoint(self, step: int) -> Path:
        """The folder of one checkpoint."""
        return self.folder / "checkpoints" / f"step-{step}"

    def steps(self) -> list[int]:
        """The steps of the checkpoints there are, rising."""
        names = (path.name for path in (self.folder / "checkpoints").glob("step-*"))
        return sorted(int(n) for name in names if (n := name.removeprefix("step-")).isdecimal())

    def checkpoints(self) -> dict[str, Path]:
        """The weights that `best`, `last` and each `step-N` stand for."""
        steps = {f"step-{step}": self.checkpoint(step) / WEIGHTS for step in self.steps()}
        last = {"last": list(steps.values())[-1]} if steps else {}
        return {"best": self.model, **last, **steps}

    def weights(self, checkpoint: str) -> Path:
        """The file of a checkpoint: `best`, `last` or `step-N`. Raises ReadError."""
        known = self.checkpoints()
        if checkpoint not in known:
            raise ReadError(
                f"{printable(str(self.folder))} has no checkpoint {checkpoint}; {', '.join(known)}"
            )
        return known[checkpoint]

    def tables(self) -> dict[str, Any]:
        """config.toml as plain tables. Raises ReadError, ConfigError."""
        if not self.config.is_file():
            raise ReadError(
                f"{printable(str(self.folder))} is not a run directory (no config.toml)"
            )
        tables = dict(from_file(str(self.config)).tables)
        if tables.get("format") != FORMAT:
            stated = tables.get("format")
            raise ConfigError(
                f"{printable(str(self.config))}: format {stated!r}, expected {FORMAT}"
            )
        return tables

    def write_config(self, tables: Mapping[str, Any]) -> None:
        """Writes config.toml, whole or not at all."""
        with writing.atomic(self.config) as writer:
            writer.write(tomli_w.dumps({**tables, "format": FORMAT}).encode())

    def vocabularies(self) -> Vocabularies:
        """The vocabularies. Raises ConfigError where they are not the ones trained with."""
        source = Vocabulary.load(str(self.folder / "spm.model"))
        own = self.folder / "spm.tgt.model"
        target = Vocabulary.load(str(own)) if own.exists() else source
        vocabularies = Vocabularies(source, target)
        about = self.tables().get("vocabulary")
        stated = about.get("fingerprint") if isinstance(about, dict) else None
        if stated != vocabularies.fingerprint:
            raise ConfigError(
                f"{printable(str(self.folder))}: vocabulary {vocabularies.fingerprint}, "
                f"but the run was trained with {stated}"
            )
        return vocabularies

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
        path = self.folder / "labels.json"
        labels = json_files.read(path)
        if not isinstance(labels, list) or not all(isinstance(label, str) for label in labels):
            raise DataError(str(path), 1, "expected a list of labels")
        return labels

    def write_labels(self, labels: Sequence[str]) -> None:
        """Writes labels.json, whole or not at all."""
        json_files.write(self.folder / "labels.json", list(labels))

    def parser(self) -> tuple[str, str] | None:
        """File and SHA-256 of the parser that `train --parser` named. Raises ConfigError."""
        match self.tables().get("parser"):
            case None:
                return None
            case {"file": str(file), "sha256": str(sha256)}:
                return file, sha256
        name = printable(str(self.config))
        raise ConfigError(f"{name}: [parser] needs file and sha256, both texts")
