"""A trained model in the format of CTranslate2, in a folder that `synmt translate` reads too.

model.bin, config.json, *_vocabulary.json           CTranslate2's own files
encoder.safetensors                                 torch's part of a model with modifiers
config.toml, spm.model, labels.json and others      as in a run directory
export.json                                         how weights are stored, and digests

Without modifiers CTranslate2 has the whole model, and its library alone runs it.
"""

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from synmt_cli.core.model import initialisation
from synmt_cli.core.run import building, tensors
from synmt_cli.core.run.directory import (
    CT2_CONFIG,
    CT2_MODEL,
    ENCODER,
    EXPORT,
    EXPORTED,
    Run,
)
from synmt_cli.core.run.exported import ctranslate2_model
from synmt_cli.core.run.exported.ctranslate2_model import CTranslate2Model
from synmt_cli.errors import ConfigError, DataError, ReadError, UsageError, cannot_write
from synmt_cli.io import json_files, regular_files
from synmt_cli.io.writing import atomic_folder

LIMITS = {CT2_MODEL: 2**37, CT2_CONFIG: 2**20}  # bytes
_CONTENT = "what `synmt export` wrote"
_FIELDS: json_files.Fields = {
    "checkpoint": (lambda v: isinstance(v, str), "a string"),
    "quantization": (lambda v: v is None or isinstance(v, str), "a string or null"),
    "digests": (lambda v: isinstance(v, dict) and v.keys() == LIMITS.keys(), "an object"),
}
# The types in which weights are stored, and the --precision for each.
PRECISIONS = {stored: name for name, stored in ctranslate2_model.STORED.items()}


def export(run: Run, folder: Path, checkpoint: str, quantization: str | None) -> None:
    """Writes the folder, whole or not at all. Raises SynmtError.

    quantization: the type of CTranslate2 in which weights are stored, such as int8; None leaves
    them as they are. Raises ConfigError for a model that CTranslate2 cannot hold, Unavailable
    without the package.
    """
    ctranslate2_model.library()
    refuse_unfit(run)
    checkpoint = run.named(checkpoint)
    model, vocabularies = building.load(run, checkpoint), run.vocabularies()
    has_modifiers = bool(len(model.encoder.modifiers))
    if has_modifiers and quantization not in PRECISIONS:
        raise UsageError(f"--quantization {quantization} is for models without modifiers")
    spec = ctranslate2_model.spec(model, vocabularies, quantization)
    with atomic_folder(folder) as beside:
        new = Run(beside)
        new.copy_meaning_of(run)
        new.write_config(run.tables())
        _save(spec, beside, folder)
        if has_modifiers:
            encoder = ctranslate2_model.cut_to_lower(model.encoder)
            parameters = dict(encoder.named_parameters())
            tensors.write(beside / ENCODER, parameters, {"vocabulary": vocabularies.fingerprint})
        digests = {name: _digest(_read(new, name)) for name in LIMITS}
        about = {"checkpoint": checkpoint, "quantization": quantization, "digests": digests}
        json_files.write_sealed(beside / EXPORT, about)


def _save(spec: Any, beside: Path, folder: Path) -> None:
    """Writes CTranslate2's own files onto the disk. folder: the final one, for messages."""
    before = {*os.listdir(beside)}
    try:
        spec.save(str(beside))
        for name in {*os.listdir(beside)} - before:
            with open(beside / name, "rb") as file:
                os.fsync(file.fileno())
    except OSError as error:
        raise cannot_write(folder / CT2_MODEL, error) from error


def refuse_unfit(run: Run) -> None:
    """Raises ConfigError for a model that CTranslate2 cannot hold."""
    if reason := ctranslate2_model.unfit(building.read_config(run)):
        raise ConfigError(f"{run.folder}: {reason}")


def _read(run: Run, name: str) -> bytes:
    return regular_files.read(run.folder / name, LIMITS[name])


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def stored_precision(run: Run) -> str:
    """The --precision in which the weights of an exported model are stored. Raises SynmtError."""
    return PRECISIONS.get(_about(run)["quantization"], "fp32")


def refuse_another_checkpoint(run: Run, checkpoint: str) -> None:
    """Raises ReadError unless `checkpoint` is the default or the one that was exported."""
    if checkpoint not in ("best", held := _about(run)["checkpoint"]):
        raise ReadError(
            f"{run.folder} was exported for CTranslate2: it has no checkpoint "
            f"{checkpoint}, only {held}"
        )


def _about(run: Run) -> Mapping[str, Any]:
    path = run.folder / EXPORT
    about = json_files.read_sealed(path, _CONTENT)
    json_files.refuse_other_fields(about, _FIELDS, path)
    return about


def files(run: Run) -> list[str]:
    """The files of an exported model that `read` reads and that other runs do not have."""
    return [str(run.folder / name) for name in EXPORTED if os.path.lexists(run.folder / name)]


def read(run: Run, precision: str, device: torch.device) -> CTranslate2Model:
    """An exported model. precision: in which to compute. device: for torch's part.

    Raises ReadError, DataError, ConfigError.
    """
    run.refuse_misplaced()
    digests = _about(run)["digests"]
    data = {name: _read(run, name) for name in LIMITS}
    for name, content in data.items():
        if _digest(content) != digests[name]:
            problem = f"damaged: it does not have the digest in {EXPORT}"
            raise DataError(str(run.folder / name), None, problem)
    vocabularies, config = run.vocabularies(), building.read_config(run)
    path, encoder = run.folder / ENCODER, None
    if building.outlines(config)[0]:
        n_labels = len(run.labels())
        with initialisation.without_values():
            whole = building.encoder(config, vocabularies, n_labels)
            outline = ctranslate2_model.cut_to_lower(whole)
        fits = tensors.fitting(outline, vocabularies.fingerprint, path)
        values, _ = tensors.read(path, fits)
        whole = building.encoder(config, vocabularies, n_labels)
        encoder = ctranslate2_model.cut_to_lower(whole)
        tensors.load_into(encoder, values)
    return ctranslate2_model.assembled(
        data[CT2_MODEL],
        data[CT2_CONFIG],
        vocabularies,
        precision,
        encoder and encoder.to(device),
        str(run.folder / CT2_MODEL),
    )
