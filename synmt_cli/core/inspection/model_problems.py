"""Every problem of a run directory, or of an exported one: digests, formats, how parts fit.

Memory is the weights of one checkpoint.
"""

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import torch

from synmt_cli.core.inspection.problems import problem_of
from synmt_cli.core.run import tensors
from synmt_cli.core.run.building import read_config, read_weights
from synmt_cli.core.run.directory import OPTIMIZER, WEIGHTS, Run, read_metric, read_state
from synmt_cli.core.run.exported import export
from synmt_cli.errors import ReadError, SynmtError


def of_weights(path: Path, follow: bool = True) -> Iterator[SynmtError]:
    """Problems of a safetensors file of synmt. follow: whether the name may be a link."""
    yield from problem_of(lambda: tensors.read(path, follow=follow))


def of_checkpoint(
    folder: Path, run: Run | None = None, step: int | None = None
) -> Iterator[SynmtError]:
    """Problems of checkpoints/step-N. run, step: those it must fit, if they are known."""
    yield from _of_model(folder / WEIGHTS, run)
    yield from of_weights(folder / OPTIMIZER, follow=False)
    yield from problem_of(lambda: read_state(folder, step))
    if step is not None:
        for name in (WEIGHTS, OPTIMIZER):
            yield from problem_of(partial(tensors.refuse_other_step, folder / name, step))


def of_run(run: Run) -> Iterator[SynmtError]:
    """Problems of a run directory and of all its checkpoints, each problem once."""
    seen = set()
    for error in _of_exported(run) if run.is_exported else _of_parts(run):
        if str(error) not in seen:  # parts that read the same file raise the same error
            seen.add(str(error))
            yield error


def _of_parts(run: Run) -> Iterator[SynmtError]:
    yield from run.misplaced()
    parts = (partial(read_config, run), run.vocabularies, run.labels, run.parser)
    for part in (*parts, run.pretrained, run.read_environment, run.check_parser):
        yield from problem_of(part)
    if os.path.lexists(run.metrics):
        yield from _of_metrics(run)
    steps = []
    try:
        steps = run.steps()
    except ReadError as error:
        yield error
    if os.path.lexists(run.model):
        yield from _of_model(run.model, run)
    elif not steps:
        yield ReadError(f"{run.folder}: no model.safetensors and no checkpoint")
    else:
        yield from problem_of(partial(_refuse_lost_model, run, steps[-1]))
    for step in steps:
        yield from of_checkpoint(run.checkpoint(step), run, step)


def _refuse_lost_model(run: Run, step: int) -> None:
    """Raises ReadError if a run without a model must have had one at this step, its last."""
    is_validated = read_state(run.checkpoint(step), step)["best_value"] is not None
    data = run.tables().get("data")
    if is_validated or not (isinstance(data, dict) and data.get("dev")):  # then the last is best
        raise ReadError(
            f"{run.folder}: no model.safetensors; synmt train writes it again on resuming"
        )


def _of_exported(run: Run) -> Iterator[SynmtError]:
    yield from run.misplaced()
    for part in (run.labels, run.parser, lambda: export.read(run, "fp32", torch.device("cpu"))):
        yield from problem_of(part)


def _of_model(path: Path, run: Run | None) -> Iterator[SynmtError]:
    yield from problem_of(lambda: _fit(path, run))


def _fit(path: Path, run: Run | None) -> None:
    """Raises SynmtError for weights that are damaged, or not those of the run."""
    if run is None:
        tensors.read(path)
        return
    vocabularies = run.vocabularies()
    read_weights(path, read_config(run), vocabularies, len(run.labels()))


def _of_metrics(run: Run) -> Iterator[SynmtError]:
    try:
        for number, line in run.metric_lines():
            yield from problem_of(partial(read_metric, line, run.metrics, number))
    except SynmtError as error:  # the end of a line cannot be found
        yield error
