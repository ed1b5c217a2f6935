"""One model out of several checkpoints: the mean of their weights.

Vaswani et al. 2017 (section 6.1) translate with the mean of the last 5 checkpoints of a base
model and of the last 20 of a big one. Each checkpoint counts once; the sum is in float64 and
rounded once. The result is a run directory like any other, but without checkpoints to resume.
"""

import os
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from synmt_cli.core.run import tensors
from synmt_cli.core.run.building import read_config, read_weights
from synmt_cli.core.run.config import Config, flatten
from synmt_cli.core.run.directory import (
    CHECKPOINTS,
    CONFIG,
    STEP,
    WEIGHTS,
    Run,
)
from synmt_cli.core.text.vocabulary import Vocabularies
from synmt_cli.errors import ConfigError, ReadError, UsageError, counted
from synmt_cli.io import json_files
from synmt_cli.io.writing import atomic_folder


@dataclass(frozen=True, slots=True)
class Member:
    """One checkpoint. name: as the user gave it. run: the run it belongs to."""

    name: str
    run: Run
    weights: Path

    @property
    def step(self) -> int | None:
        """The step of the checkpoint; None for the best one, or for a run that is a mean."""
        match = STEP.fullmatch(self.weights.parent.name)
        return int(match[1]) if match else None


def members(run: Run, names: Sequence[str]) -> list[Member]:
    """The checkpoints of these names. Raises ReadError.

    best, last or step-N is one of `run`; any other name is the folder of a checkpoint or a run.
    """
    own = run.checkpoints()
    return [
        Member(name, run, own[name]) if name in own else _of_folder(name, run, own)
        for name in names
    ]


def _of_folder(name: str, run: Run, own: Iterable[str]) -> Member:
    """The checkpoint in a folder, or the best one of the run in it. Raises ReadError."""
    folder = Path(name)
    above = Path(os.path.realpath(folder)).parent
    if Run(folder).config.is_file():
        return Member(name, Run(folder), Run(folder).model)
    if above.name == CHECKPOINTS and Run(above.parent).config.is_file():
        return Member(name, Run(above.parent), folder / WEIGHTS)
    raise ReadError(
        f"{name} is not a folder of a checkpoint or a run, and "
        f"{run.folder} has only {', '.join(own)}"
    )


def last(run: Run, n: int | None) -> list[str]:
    """The names of the last n checkpoints of a run, None for all. Raises ReadError."""
    names = [f"step-{step}" for step in run.steps()]
    if not names and run.averaged:
        raise ReadError(f"{run.folder} is a mean, without checkpoints of its own")
    if not names and run.is_exported:
        raise ReadError(f"{run.folder} is an exported model, without checkpoints")
    if len(names) < (n or 1):
        raise ReadError(
            f"{run.folder} has {counted(len(names), 'checkpoint')}, "
            f"not {n or 'any'}; synmt train --set training.keep=N keeps more"
        )
    return names if n is None else names[-n:]


def average(run: Run, chosen: Sequence[Member], folder: Path) -> None:
    """Makes `folder`, a run whose weights are the mean; everything else is as in `run`.

    It appears whole or not at all. Memory: the model twice; each checkpoint is read whole once to
    check its digest, then a tensor at a time. Raises CreateError if there is such a folder,
    ConfigError for checkpoints that do not fit one another, DataError for damaged ones, UsageError
    for one that is given twice.
    """
    with atomic_folder(folder) as beside:
        new, names = Run(beside), [json_files.as_text(one.name) for one in chosen]
        vocabularies = run.vocabularies()
        seen: set[str] = set()
        for one in chosen:
            _check(one, run, vocabularies)
            with tensors.opened(one.weights) as weights:
                digest = weights.metadata()["sha256"]  # `best` is a copy of some step-N
            if digest in seen:
                raise UsageError(f"{one.name} would count twice")
            seen.add(digest)
        about = {"vocabulary": vocabularies.fingerprint, "averaged": " ".join(names)}
        tensors.write(new.model, mean([one.weights for one in chosen]), about)
        new.copy_meaning_of(run)
        machine = run.read_environment() if os.path.lexists(run.environment) else {}
        json_files.write(new.environment, {**machine, "averaged": names})
        new.copy_file_of(run, CONFIG)


def _check(one: Member, run: Run, vocabularies: Vocabularies) -> None:
    """Raises DataError for damaged weights, ConfigError for weights of another model."""
    config, where = read_config(run), one.weights
    if one.run is not run:
        if different := _difference(read_config(one.run), config):
            raise ConfigError(f"{where}: {different}")
        if one.run.labels() != run.labels():
            raise ConfigError(f"{where}: trained with other dependency labels")
    read_weights(one.weights, config, vocabularies, len(run.labels()))


def _difference(other: Config, own: Config) -> str:
    """The first difference that makes `other` another model, "" if it is the same."""
    if other.variant != own.variant:
        return f"variant is {other.variant!r}, not {own.variant!r}"
    was, expected = flatten(other.architecture()), flatten(own.architecture())
    for key in sorted(was):
        if was[key] != expected[key]:
            return f"{key} is {was[key]!r}, not {expected[key]!r}"
    return ""


def mean(files: Sequence[Path]) -> dict[str, Tensor]:
    """The mean of each tensor over files that have the same ones, in their own type."""
    means: dict[str, Tensor] = {}
    with ExitStack() as stack:
        opened = [stack.enter_context(tensors.opened(path)) for path in files]
        for name in opened[0].keys():  # noqa: SIM118  # not a dictionary
            first = opened[0].get_tensor(name)
            total = first.to(torch.float64, copy=True)
            for other in opened[1:]:
                total += other.get_tensor(name)
            means[name] = (total / len(files)).to(first.dtype)
    return means
