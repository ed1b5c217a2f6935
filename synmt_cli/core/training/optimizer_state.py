"""What a checkpoint holds beside the weights: is it Adam's, of this model, with generators?"""

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
    model: torch.nn.Module, path: Path, found: Mapping[str, Tensor], about: Mapping[str, str]
) -> None:
    """Raises ConfigError where training could not go on with it, or not as it was.

    found: with values or, on the meta device, without.
    """
    if f"{RANDOM}cpu" not in found:
        raise ConfigError(f"{printable(str(path))}: the state of the generator is missing")
    if about.get("step") != "0" and all(key.startswith(RANDOM) for key in found):
        raise ConfigError(f"{printable(str(path))}: the moments of the parameters are missing")
    parameters = dict(model.named_parameters())
    for key in sorted(found):
        kind, _, name = key.partition(".")
        if key.startswith(RANDOM):
            problem = _of_generator(name, found[key])
        elif kind in KINDS and name in parameters:
            problem = _of_moment(kind, found[key], parameters[name])
            # None has any where a parameter is used nowhere.
            problem = problem or _of_missing([k for k in KINDS if f"{k}.{name}" not in found])
        else:
            problem = "is not part of the optimizer"
        if problem:
            raise ConfigError(f"{printable(str(path))}: {printable(key)} {problem}")


def _of_generator(name: str, state: Tensor) -> str:
    """What is wrong with a generator's state, or "". A GPU's is looked at when it is used."""
    like = torch.get_rng_state()
    fits = state.shape == like.shape or not name.startswith("cpu")
    return "" if fits and state.dtype == like.dtype else "is no state of a generator"


def _of_moment(kind: str, moment: Tensor, parameter: Tensor) -> str:
    wanted = () if kind == "step" else tuple(parameter.shape)
    if tuple(moment.shape) != wanted:
        return f"has shape {tuple(moment.shape)}, not {wanted}"
    if moment.dtype != torch.float32 or not is_real(moment):
        return "has values that are no numbers"
    return ""


def _of_missing(kinds: list[str]) -> str:
    return f"is there, but not {', '.join(kinds)} of this parameter" if kinds else ""
