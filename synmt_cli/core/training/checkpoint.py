"""Checkpoints: all that is needed to go on as if nothing had happened.

A checkpoint is written under a temporary folder name and renamed when it is complete and
on disk; old ones are removed only after that.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shutil
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from synmt_cli.core.distributed.sharding import Share
from synmt_cli.core.run import tensors
from synmt_cli.core.run.directory import Run
from synmt_cli.core.training import optimizer_state as moments_of
from synmt_cli.core.training.gradient import Sums
from synmt_cli.errors import ConfigError, CreateError, printable
from synmt_cli.io import json_files, writing


@dataclass(slots=True)
class TrainingState:
    """Where a training run stands.

    step: updates made. epoch, batch: the next batch to read. best: of the chosen metric, as
    (step, value). stale: validations since. loss, nll, losses, tokens: sums since the last report.
    validated: the last validation's step. finished: why training is over, or "".
    """

    step: int = 0
    epoch: int = 0
    batch: int = 0
    best_step: int = 0
    best_value: float | None = None
    stale: int = 0
    validated: int = 0
    loss: float = 0.0
    nll: float = 0.0
    losses: dict[str, float] = field(default_factory=dict)  # the modifiers', by variant
    tokens: int = 0
    finished: str = ""
    random: dict[str, Tensor] = field(default_factory=dict)  # generator states

    def add(self, sums: Sums, n_tokens: int) -> None:
        """Counts one update's losses in."""
        self.loss += sums.smoothed
        self.nll += sums.nll
        for name, value in sums.losses.items():
            self.losses[name] = self.losses.get(name, 0.0) + value
        self.tokens += n_tokens


def random_states(device: torch.device) -> dict[str, Tensor]:
    """The states of torch's generators that training draws from."""
    states = {"random.cpu": torch.get_rng_state()}
    if device.type == "cuda":
        states["random.cuda"] = torch.cuda.get_rng_state(device)
    return states


def restore_random(states: Mapping[str, Tensor], device: torch.device) -> None:
    """Puts the generators back to where `random_states` found them."""
    torch.set_rng_state(states["random.cpu"])
    if device.type == "cuda" and "random.cuda" in states:
        torch.cuda.set_rng_state(states["random.cuda"], device)


def save(
    run: Run,
    share: Share,
    optimizer: torch.optim.Optimizer,
    state: TrainingState,
    vocabulary: str,
    keep: int,
) -> None:
    """Writes checkpoints/step-N, then removes all but the newest `keep`. Raises WriteError.

    Every process calls it, and the first one writes.
    """
    moments = _moments(share, optimizer) | state.random
    if not share.ranks.is_first:
        share.hand_over(dict(share.model.named_parameters()))
        share.hand_over(moments)
        return
    final = run.checkpoint(state.step)
    beside = final.with_name(f".{final.name}.{os.getpid()}.tmp")
    aside = beside.with_suffix(".old")
    try:
        final.parent.mkdir(exist_ok=True)
        shutil.rmtree(beside, ignore_errors=True)
        beside.mkdir()
    except OSError as error:
        raise CreateError(f"cannot create {printable(str(beside))}: {error.strerror}") from error
    about = {"vocabulary": vocabulary, "step": str(state.step)}
    try:
        save_weights(beside / "weights.safetensors", share, about)
        tensors.write(beside / "optimizer.safetensors", moments, about, share.full)
        json_files.write(beside / "state.json", _plain(state))
        if final.exists():  # the same step, saved once more with what ended the run
            os.replace(final, aside)
        os.replace(beside, final)
        writing.sync_folder(final.parent)
    finally:
        shutil.rmtree(beside, ignore_errors=True)
        shutil.rmtree(aside, ignore_errors=True)
    for step in run.steps()[:-keep]:
        with contextlib.suppress(OSError):  # under another name first: no final name is half there
            old = run.checkpoint(step)
            going = old.with_name(f".{old.name}.{os.getpid()}.tmp")
            os.replace(old, going)
            shutil.rmtree(going)


def _moments(share: Share, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """What the optimizer knows of each parameter, as KIND.PARAMETER."""
    return {
        f"{kind}.{name}": value
        for name, parameter in share.model.named_parameters()
        for kind, value in optimizer.state[parameter].items()
    }


def save_weights(path: Path, share: Share, about: Mapping[str, str]) -> None:
    """The parameters alone. Raises ConfigError if one is not finite: nothing is written.

    Every process calls it, and the first one writes.
    """
    parameters = dict(share.model.named_parameters())
    if not share.ranks.is_first:
        share.hand_over(parameters)
        return
    names = {id(parameter): name for name, parameter in parameters.items()}

    def finite(parameter: Tensor) -> Tensor:
        values = share.full(parameter)
        if not torch.isfinite(values).all():
            name = names[id(parameter)]
            raise ConfigError(f"not saved: parameter {name} is not finite; lower training.lr")
        return values

    tensors.write(path, parameters, about, finite)


def load(
    run: Run,
    step: int,
    share: Share,
    optimizer: torch.optim.Optimizer,
    vocabulary: str,
) -> TrainingState:
    """Fills model and optimizer from checkpoints/step-N and returns the state."""
    folder = run.checkpoint(step)
    path = folder / "weights.safetensors"
    weights, _ = tensors.read(path, tensors.fitting(share.model, vocabulary, path))
    with torch.no_grad():
        for name, parameter in share.model.named_parameters():
            parameter.copy_(share.own(parameter, weights[name]))
    path = folder / "optimizer.safetensors"
    moments, _ = tensors.read(path, partial(moments_of.check, share.model, path))
    state = TrainingState(**json_files.read(folder / "state.json", "the state of a training run"))
    state.random = {key: moments.pop(key) for key in list(moments) if key.startswith("random.")}
    of_parameter: dict[str, dict[str, Tensor]] = defaultdict(dict)
    for key, value in moments.items():
        kind, name = key.split(".", 1)
        of_parameter[name][kind] = value
    for name, parameter in share.model.named_parameters():
        optimizer.state[parameter] = {
            kind: share.own(parameter, value) for kind, value in of_parameter[name].items()
        }
    return state


def _plain(state: TrainingState) -> dict[str, Any]:
    """All but the generators' states, which are tensors."""
    names = (field.name for field in dataclasses.fields(state))
    return {name: getattr(state, name) for name in names if name != "random"}
