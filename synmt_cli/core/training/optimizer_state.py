"""Checks the optimizer state and the generator states of a checkpoint against the model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from synmt_cli.core.run.tensors import is_real
from synmt_cli.errors import ConfigError, printable

KINDS = ("exp_avg", "exp_avg_sq", "step")  # as KIND.PARAMETER
RANDOM = "random."


def check(
    model: torch.nn.Module, path: Path, tensors: Mapping[str, Tensor], about: Mapping[str, str]
) -> None:
    """Raises ConfigError unless training can go on with these tensors, bit for bit.

    tensors: with values or, on the meta device, without.
    """
    if f"{RANDOM}cpu" not in tensors:
        raise ConfigError(f"{printable(str(path))}: the state of the generator is missing")
    if about.get("step") != "0" and all(key.startswith(RANDOM) for key in tensors):
        raise ConfigError(f"{printable(str(path))}: the moments of the parameters are missing")
    parameters = dict(model.named_parameters())
    for key in sorted(tensors):
        kind, _, name = key.partition(".")
        if key.startswith(RANDOM):
            problem = _of_generator(name, tensors[key])
        elif kind in KINDS and name in parameters:
            problem = _of_moment(kind, tensors[key], parameters[name])
            # A parameter that no forward pass uses has no moments.
            problem = problem or _of_missing([k for k in KINDS if f"{k}.{name}" not in tensors])
        else:
            problem = "is not part of the optimizer"
        if problem:
            raise ConfigError(f"{printable(str(path))}: {printable(key)} {problem}")


def _of_generator(name: str, state: Tensor) -> str:
    """What is wrong with a generator state, or "". A GPU's is checked when it is used."""
    like = torch.get_rng_state()
    fits = state.shape == like.shape or not name.startswith("cpu")
    return "" if fits and state.dtype == like.dtype else "is not a generator state"


def _of_moment(kind: str, moment: Tensor, parameter: Tensor) -> str:
    wanted = () if kind == "step" else tuple(parameter.shape)
    if tuple(moment.shape) != wanted:
        return f"has shape {tuple(moment.shape)}, not {wanted}"
    if moment.dtype != torch.float32 or not is_real(moment):
        return "has values that are not numbers"
    return ""


def _of_missing(kinds: list[str]) -> str:
    return f"is there, but not {', '.join(kinds)} of this parameter" if kinds else ""
