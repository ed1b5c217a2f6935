"""Every problem of a run directory: digests, formats, and whether the parts fit.

Memory is the weights of one checkpoint.
"""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from synmt_cli.core.inspection.models import event
from synmt_cli.core.run import tensors
from synmt_cli.core.run.building import read_config, read_weights
from synmt_cli.core.run.directory import OPTIMIZER, WEIGHTS, Run, read_state
from synmt_cli.errors import DataError, ReadError, SynmtError, printable
from synmt_cli.io import json_files, reading


def of_weights(path: Path) -> Iterator[SynmtError]:
    """Problems of a safetensors file of synmt."""
    yield from _problem(partial(tensors.read, path))


def of_checkpoint(folder: Path, run: Run | None = None) -> Iterator[SynmtError]:
    """Problems of checkpoints/step-N. run: the run it must fit, if that is known."""
    yield from _of_model(folder / WEIGHTS, run)
    yield from of_weights(folder / OPTIMIZER)
    yield from _problem(partial(read_state, folder))


def of_run(run: Run) -> Iterator[SynmtError]:
    """Problems of a run directory and of all its checkpoints, each problem once."""
    seen = set()
    for error in _of_parts(run):
        if str(error) not in seen:  # parts that read the same file raise the same error
            seen.add(str(error))
            yield error


def _of_parts(run: Run) -> Iterator[SynmtError]:
    parts = (
        *(partial(read_config, run), run.vocabularies, run.labels, run.parser),
        partial(json_files.read, run.environment),
    )
    for part in parts:
        yield from _problem(part)
    if run.metrics.exists():
        with reading.open_source(str(run.metrics)) as source:
            for number, line in enumerate(reading.lines(source), 1):
                yield from _problem(partial(_check_event, line, run.metrics, number))
    steps = run.steps()
    if run.model.exists():
        yield from _of_model(run.model, run)
    elif not steps:
        yield ReadError(f"{printable(str(run.folder))}: no model.safetensors and no checkpoint")
    for step in steps:
        yield from of_checkpoint(run.checkpoint(step), run)


def _of_model(path: Path, run: Run | None) -> Iterator[SynmtError]:
    """Problems of weights that are damaged, or not those of the run."""
    if run is None:
        yield from of_weights(path)
        return
    yield from _problem(
        lambda: read_weights(path, read_config(run), run.vocabularies(), len(run.labels()))
    )


def _check_event(line: bytes, path: Path, number: int) -> None:
    fields = event(line, path, number)
    if not isinstance(fields, dict) or type(fields.get("step")) is not int:
        raise DataError(str(path), number, "field step is missing or not an integer")


def _problem(part: Callable[[], Any]) -> Iterator[SynmtError]:
    """The error of reading a part, if there is one."""
    try:
        part()
    except SynmtError as error:
        yield error
