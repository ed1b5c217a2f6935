"""Every problem of the files that training writes: digests, formats, parts that do not fit.

Memory is the weights of one checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import orjson

from synmt_cli.core.model import initialisation
from synmt_cli.core.model.transformer import Transformer
from synmt_cli.core.run import tensors
from synmt_cli.core.run.building import build
from synmt_cli.core.run.directory import Run
from synmt_cli.errors import DataError, ReadError, SynmtError, printable
from synmt_cli.io import json_files, reading
from synmt_cli.io.json_files import read_json


def of_weights(path: Path) -> Iterator[SynmtError]:
    """Problems of a safetensors file of synmt."""
    yield from _problem(lambda: tensors.read(path))


def of_checkpoint(folder: Path, run: Run | None = None) -> Iterator[SynmtError]:
    """Problems of checkpoints/step-N. run: the run that it must fit, if known."""
    yield from _of_model(folder / "weights.safetensors", run)
    yield from of_weights(folder / "optimizer.safetensors")
    state = folder / "state.json"
    yield from _problem(lambda: json_files.read(state, "the state of a training run"))


def of_run(run: Run) -> Iterator[SynmtError]:
    """Problems of a run directory and of all its checkpoints, each problem once."""
    seen = set()
    for error in _of_parts(run):
        if str(error) not in seen:  # parts that read the same file say the same
            seen.add(str(error))
            yield error


def _of_parts(run: Run) -> Iterator[SynmtError]:
    environment = run.folder / "env.json"
    for part in (run.read_config, run.vocabularies, run.labels, run.parser):
        yield from _problem(part)
    yield from _problem(lambda: read_json(environment))
    if run.metrics.exists():
        yield from _of_metrics(run.metrics)
    steps = run.steps()
    if run.model.exists():
        yield from _of_model(run.model, run)
    elif not steps:
        yield ReadError(f"{printable(str(run.folder))}: no model.safetensors and no checkpoint")
    for step in steps:
        yield from of_checkpoint(run.checkpoint(step), run)


def _of_model(path: Path, run: Run | None) -> Iterator[SynmtError]:
    yield from _problem(lambda: _fit(path, run))


def _fit(path: Path, run: Run | None) -> None:
    """Raises SynmtError for weights that are damaged, or not those of the run."""
    if run is None:
        tensors.read(path)
        return
    vocabularies = run.vocabularies()
    with initialisation.without_values():
        model: Transformer = build(run.read_config(), vocabularies, len(run.labels()))
    tensors.read(path, tensors.fitting(model, vocabularies.fingerprint, path))


def _of_metrics(path: Path) -> Iterator[SynmtError]:
    with reading.open_source(str(path)) as source:
        for number, line in enumerate(reading.lines(source), 1):
            yield from _problem(partial(_metric, line, path, number))


def _metric(line: bytes, path: Path, number: int) -> None:
    try:
        fields = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise DataError(str(path), number, f"not JSON: {printable(error.msg)}") from None
    if not isinstance(fields, dict) or type(fields.get("step")) is not int:
        raise DataError(str(path), number, "field step is missing or not an integer")


def _problem(part: Callable[[], Any]) -> Iterator[SynmtError]:
    """The error of reading a part, if there is one."""
    try:
        part()
    except SynmtError as error:
        yield error
