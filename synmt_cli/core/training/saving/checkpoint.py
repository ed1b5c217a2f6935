"""Checkpoints: everything that a run needs to go on as if it had not been stopped.

A checkpoint is written under a temporary folder name and renamed when it is complete and
on disk; old ones are removed only after that. One that was saved only for a stop is removed with
the next, so that an interrupted run keeps the checkpoints that it would have kept without a stop.
"""

import contextlib
import dataclasses
import math
import os
import shutil
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from synmt_cli.core.distributed.sharding import Share
from synmt_cli.core.run import tensors
from synmt_cli.core.run.directory import OPTIMIZER, STATE, WEIGHTS, Run, read_state
from synmt_cli.core.training.device import generators
from synmt_cli.errors import ConfigError, SynmtError, cannot_create
from synmt_cli.io import json_files, regular_files, writing

KINDS = ("exp_avg", "exp_avg_sq", "step")  # of the optimizer's tensors, KIND.PARAMETER


@dataclass(slots=True)
class TrainingState:
    """The state of a training run.

    step: updates made. epoch, batch: the next batch to read. best_step, best_value: the best
    validation, by the chosen metric; best_nll: its nats per token; least_nll: the fewest of any;
    None if an early version saved the state. stale: validations since one was the best by the
    metric or by nats. validated: the step of the last validation. loss, nll, losses, tokens: sums
    since the last report; losses are those of the modifiers, by variant. gradient_norm: its sum
    over those updates. finished: why training is over, or "". for_stop: whether it is saved only
    for a stop, at a step that otherwise has no checkpoint. random: generator states. scale,
    scale_age: of the loss in fp16 (loss_scale.py), else 0.
    """

    step: int = 0
    epoch: int = 0
    batch: int = 0
    best_step: int = 0
    best_value: float | None = None
    best_nll: float | None = None
    least_nll: float | None = None
    stale: int = 0
    validated: int = 0
    loss: float = 0.0
    nll: float = 0.0
    losses: dict[str, float] = field(default_factory=dict)
    gradient_norm: float = 0.0
    tokens: int = 0
    finished: str = ""
    for_stop: bool = False
    scale: float = 0.0
    scale_age: float = 0.0
    random: dict[str, Tensor] = field(default_factory=dict)

    def add(self, sums: Sequence[float], names: Sequence[str], n_tokens: int) -> None:
        """Adds the losses of one update. sums: what `Sums.stacked` returns for these names."""
        smoothed, nll, *losses = sums
        self.loss += smoothed
        self.nll += nll
        for name, value in zip(names, losses, strict=True):
            self.losses[name] = self.losses.get(name, 0.0) + value
        self.tokens += n_tokens

    def clear_sums(self) -> None:
        """Begins the sums of the next report."""
        self.loss = 0.0
        self.nll = 0.0
        self.losses = {}
        self.gradient_norm = 0.0
        self.tokens = 0

    def is_best(self, value: float, nll: float) -> bool:
        """Whether a validation is better than all before; with equal values, by perplexity."""
        if self.best_value is None or value != self.best_value:
            return self.best_value is None or value > self.best_value
        return self.best_nll is not None and nll < self.best_nll

    def note_validation(self, value: float, nll: float, regular: bool) -> None:
        """Notes the figures of a validation at this step.

        regular: whether it counts toward early stopping, unless it is the best by the metric or by
        perplexity: BLEU near 0 is chance for thousands of updates, while perplexity falls. The
        extra one at the end of a training does not count.
        """
        best, is_least = self.is_best(value, nll), nll < self._least_nll()
        if best:
            self.best_step, self.best_value, self.best_nll = self.step, value, nll
        if is_least:
            self.least_nll = nll
        if best or is_least:
            self.stale = 0
        elif regular:
            self.stale += 1

    def _least_nll(self) -> float:
        """The least nll of all validations; after an early version, the best one's, if known."""
        known = (self.least_nll, self.best_nll)
        return next((nll for nll in known if nll is not None), math.inf)


def save(
    run: Run,
    share: Share,
    optimizer: torch.optim.Optimizer,
    state: TrainingState,
    vocabulary: str,
    keep: int,
) -> None:
    """Writes checkpoints/step-N, then removes all but the newest `keep`. Raises WriteError.

    Earlier ones that were saved for a stop alone are removed, too.

    Every process calls it to send its tensors, and the first one writes them.
    """
    about = {"vocabulary": vocabulary, "step": str(state.step)}
    with _new_folder(run.checkpoint(state.step), share) as folder:
        save_weights(folder / WEIGHTS, share, about)
        moments = share.full(_moments(share, optimizer))
        if share.ranks.is_first:
            tensors.write(folder / OPTIMIZER, moments | state.random, about)
            json_files.write_sealed(folder / STATE, _plain(state))
    remove_old(run, share, state.step, keep)


def remove_old(run: Run, share: Share, newest: int, keep: int) -> None:
    """Removes all but the newest `keep` checkpoints, and older ones saved for a stop alone.

    newest: the step of the newest. Every process may call it.
    """
    if share.ranks.is_first:
        steps = run.steps()
        kept = [step for step in steps if step == newest or not _is_for_stop(run, step)][-keep:]
        _remove(run, [step for step in steps if step not in kept])


def _new_folder(folder: Path, share: Share) -> contextlib.AbstractContextManager[Path]:
    """The folder that the first process writes; it replaces an older one of the same step."""
    if not share.ranks.is_first:
        return contextlib.nullcontext(folder)
    try:
        if problem := regular_files.problem(folder.parent, is_folder=True):
            raise problem
        folder.parent.mkdir(exist_ok=True)
    except OSError as error:
        raise cannot_create(folder, error) from error
    return writing.atomic_folder(folder, replace=True)


def _is_for_stop(run: Run, step: int) -> bool:
    try:
        return bool(read_state(run.checkpoint(step), step).get("for_stop"))
    except SynmtError:  # it may be what is left of a run: not removed before its turn
        return False


def _remove(run: Run, steps: Iterable[int]) -> None:
    """Removes checkpoints, as far as the system allows it."""
    for step in steps:
        with contextlib.suppress(OSError):  # renamed first: no half-removed folder is a checkpoint
            old = run.checkpoint(step)
            doomed = old.with_name(f".{old.name}.{os.getpid()}.tmp")
            os.replace(old, doomed)
            shutil.rmtree(doomed)


def _moments(share: Share, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """The optimizer's state of each parameter, as KIND.PARAMETER."""
    return {
        f"{kind}.{name}": value
        for name, parameter in share.model.named_parameters()
        for kind, value in optimizer.state[parameter].items()
    }


def save_weights(path: Path, share: Share, about: Mapping[str, str]) -> None:
    """Writes the parameters alone. Raises ConfigError, before it writes, if one is not finite.

    Every process calls it to send its tensors, and the first one writes them.
    """
    weights = share.full(dict(share.model.named_parameters()))
    for name in sorted(weights):
        if not torch.isfinite(weights[name]).all():
            raise ConfigError(f"not saved: parameter {name} is not finite; lower training.lr")
    if share.ranks.is_first:
        tensors.write(path, weights, about)


def read_weights(path: Path, model: torch.nn.Module, vocabulary: str) -> dict[str, Tensor]:
    """Reads weights that have to fit the model. Raises SynmtError."""
    return tensors.read(path, tensors.fitting(model, vocabulary, path))[0]


def load(
    run: Run,
    step: int,
    share: Share,
    optimizer: torch.optim.Optimizer,
    vocabulary: str,
) -> TrainingState:
    """Fills model and optimizer from checkpoints/step-N, returns the state. Raises SynmtError."""
    folder = run.checkpoint(step)
    for name in (WEIGHTS, OPTIMIZER):
        tensors.refuse_other_step(folder / name, step)
    weights = read_weights(folder / WEIGHTS, share.model, vocabulary)
    with torch.no_grad():
        for name, parameter in share.model.named_parameters():
            parameter.copy_(share.own(parameter, weights[name]))
    path = folder / OPTIMIZER
    saved, _ = tensors.read(path, partial(_check_moments, share.model, path))
    state = TrainingState(**read_state(folder, step))
    state.random = {key: saved.pop(key) for key in list(saved) if key.startswith(generators.PREFIX)}
    moments: dict[str, dict[str, Tensor]] = defaultdict(dict)  # of each parameter, by kind
    for key, value in saved.items():
        kind, name = key.split(".", 1)
        moments[name][kind] = value
    # Only a fused optimizer has its step counts on the device: any other would wait to read them.
    on_cpu = () if optimizer.defaults.get("fused") else ("step",)
    for name, parameter in share.model.named_parameters():
        optimizer.state[parameter] = {
            kind: value if kind in on_cpu else share.own(parameter, value)
            for kind, value in moments[name].items()
        }
    return state


def _plain(state: TrainingState) -> dict[str, Any]:
    """The fields that are not tensors: all but the generator states."""
    names = (field.name for field in dataclasses.fields(state))
    return {name: getattr(state, name) for name in names if name != "random"}


def _check_moments(
    model: torch.nn.Module, path: Path, saved: Mapping[str, Tensor], about: Mapping[str, str]
) -> None:
    """Raises ConfigError unless training can go on from these tensors, bit for bit.

    saved: moments and generator states, with values or, on the meta device, without.
    """
    if generators.CPU not in saved:
        raise ConfigError(f"{path}: the state of the generator is missing")
    if about.get("step") != "0" and all(key.startswith(generators.PREFIX) for key in saved):
        raise ConfigError(f"{path}: the moments of the parameters are missing")
    parameters = dict(model.named_parameters())
    for key in sorted(saved):
        kind, _, name = key.partition(".")
        if key.startswith(generators.PREFIX):
            problem = generators.problem(key, saved[key])
        elif kind in KINDS and name in parameters:
            problem = _of_moment(kind, saved[key], parameters[name])
            # A parameter that no forward pass uses has no moments; any other has all of them.
            others = [other for other in KINDS if f"{other}.{name}" not in saved]
            if others and not problem:
                problem = f"is there, but not {', '.join(others)} of this parameter"
        else:
            problem = "is not part of the optimizer"
        if problem:
            raise ConfigError(f"{path}: {key} {problem}")


def _of_moment(kind: str, moment: Tensor, parameter: Tensor) -> str:
    wanted = () if kind == "step" else tuple(parameter.shape)
    if tuple(moment.shape) != wanted:
        return f"has shape {tuple(moment.shape)}, not {wanted}"
    if moment.dtype != torch.float32 or not tensors.is_real(moment):
        return "has values that are not numbers"
    return ""
