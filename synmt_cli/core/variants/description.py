"""Descriptions of variants, read from the table, the builders and the modifiers they build."""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from synmt_cli.core.model import initialisation
from synmt_cli.core.model.size import Size
from synmt_cli.core.variants import VARIANTS, Build, Variant, defaults, known, plan
from synmt_cli.core.variants.setting import Setting


@dataclass(frozen=True, slots=True)
class OptionDescription:
    """An option of a variant: its default, and its meaning in words."""

    default: Any
    meaning: str


@dataclass(frozen=True, slots=True)
class VariantDescription:
    """One variant. data: a scheme of multitask, or "".

    features: those of the source that translation needs; training_features: those that only
    training needs.
    """

    name: str
    paper: str
    what: str
    stacks: tuple[str, ...]
    options: dict[str, OptionDescription]
    features: tuple[str, ...]
    training_features: tuple[str, ...]
    data: str


def describe(names: Sequence[str] = ()) -> list[VariantDescription]:
    """The variants of these names, or all of them. Raises UsageError for an unknown name."""
    return [_description(variant) for name in names or VARIANTS for variant in plan(name).variants]


def _description(variant: Variant) -> VariantDescription:
    meanings: dict[str, str] = {}
    for build in variant.builders():
        meanings |= _meanings(build)
    setting = Setting(Size(), Size().encoder_layers, 1)
    with initialisation.without_values():
        encoder = plan(variant.name).encoder(setting, {})
    needs = {name for modifier in encoder for name in modifier.needs}
    learns = {name for modifier in encoder for name in modifier.learns}
    stacks = {"encoder": variant.encoder, "decoder": variant.decoder}
    return VariantDescription(
        variant.name,
        variant.paper,
        variant.what,
        tuple(stack for stack, path in stacks.items() if path),
        {
            name: OptionDescription(default, meanings[name])
            for name, default in defaults(variant).items()
        },
        tuple(sorted(needs - learns)),
        tuple(sorted(learns)),
        variant.data,
    )


def _meanings(build: Build) -> dict[str, str]:
    """The meaning of each option in a builder's docstring: `name: meaning`, up to the next."""
    text = " ".join((inspect.getdoc(build) or "").split())
    options = "|".join(map(re.escape, known(build)))
    parts = re.split(rf"(?:^|(?<=\s))({options}): ", text) if options else []
    return {
        name: meaning.strip().rstrip(".")
        for name, meaning in zip(parts[1::2], parts[2::2], strict=True)
    }
