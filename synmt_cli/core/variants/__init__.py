"""Variants: named bundles of modifiers for the encoder and for the decoder.

Those of synmt are in a table (table.py); the user's own file may add more (own_file.py). Their
options are the keyword-only parameters of their builders, each with its default, its meaning and
perhaps its bounds (core/options.py). Names joined by `+` are combined, left to right.

Two variants change the data and not the model: `synmt multitask` makes their records.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from synmt_cli.core.options import options
from synmt_cli.core.variants import own_file
from synmt_cli.core.variants.own_file import check_built, known
from synmt_cli.core.variants.table import Build, Variant, find
from synmt_cli.errors import UsageError

if TYPE_CHECKING:  # the table is read for --help, which never loads torch
    from synmt_cli.core.model.modifier import Modifier
    from synmt_cli.core.variants.stack import StackSpec

Values = Mapping[str, Mapping[str, Any]]  # of options: {"pascal": {"heads": 2}}


@dataclass(frozen=True, slots=True)
class Plan:
    """A combination of variants, ready to build."""

    variants: tuple[Variant, ...]

    @property
    def data(self) -> str:
        """The scheme of `synmt multitask` that made the training records, or ""."""
        return "".join(v.data for v in self.variants)

    @property
    def rereads(self) -> bool:
        """Whether nothing of a prefix may be remembered from step to step."""
        return any(v.rereads for v in self.variants)

    @property
    def transitions(self) -> bool:
        """Whether the decoder writes transitions."""
        return any(v.transitions for v in self.variants)

    @property
    def source_trees(self) -> bool:
        """Whether the trees of the sources are needed, for training at least."""
        return any(v.source_trees for v in self.variants)

    def encoder(self, spec: StackSpec, values: Values) -> list[Modifier]:
        """The encoder's modifiers, in the order they act. Raises UsageError."""
        return _build(spec, [(v, v.encoder) for v in self.variants], values)

    def decoder(self, spec: StackSpec, values: Values) -> list[Modifier]:
        """The decoder's modifiers, in the order they act. Raises UsageError."""
        spec = replace(spec, stack="decoder")
        return _build(spec, [(v, v.decoder) for v in self.variants], values)


def _build(spec: StackSpec, parts: list[tuple[Variant, str]], values: Values) -> list[Modifier]:
    modifiers: list[Modifier] = []
    for variant, path in parts:
        if path:
            build, name = find(path), variant.name
            built = build(spec, **_own(build, name, values.get(name, {})))
            if variant.own:
                check_built(built, variant, spec)
            for modifier in built:
                modifier.name = name
                _refuse_replacing(modifier, modifiers)
                modifiers.append(modifier)
    return modifiers


def _own(build: Build, name: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a builder's own options. Raises UsageError for one out of bounds."""
    own = {}
    for key, option in options(build).items():
        value = values.get(key, option.default)
        if option.outside(value) is not None:
            raise UsageError(f"{name}.{key} must be {option.bounds}, not {value}")
        own[key] = float(value) if option.hint is float else value  # an int may be given
    return own


def _refuse_replacing(modifier: Modifier, before: list[Modifier]) -> None:
    """Raises UsageError if a modifier would undo the scores of another, or scale a parser head."""
    for other in before:
        shared = modifier.layers & other.layers
        if modifier.replaces and shared and other.changes_scores:
            fits = not any(other.scaled(layer) & modifier.replaces for layer in shared)
            raise UsageError(
                f"{modifier.name} computes scores of layer {min(shared)} anew, and so undoes what "
                f"{other.name} did to them: "
                + (f"name {modifier.name} first, or " if fits else "")
                + "choose another layer"
            )
        for layer in shared:
            if heads := modifier.scaled(layer) & other.replaces:
                raise UsageError(
                    f"{modifier.name} would scale head {min(heads)} of layer {layer}, which "
                    f"{other.name} makes a parser: choose another layer for one of them"
                )


def plan(expression: str) -> Plan:
    """Reads `name` or `name+name`. Raises UsageError naming the choices, and what `known` raises.

    >>> [v.name for v in plan("vanilla").variants]
    ['vanilla']
    """
    names, table = expression.split("+"), known()
    for name in names:
        if name not in table:
            near = difflib.get_close_matches(name, table, 1)
            unnamed = "" if own_file.path() else f" ({own_file.VARIABLE} names no file with others)"
            choice = f"choose from {', '.join(table)}{unnamed}"
            hint = f"did you mean {near[0]!r}{unnamed}?" if near else choice
            raise UsageError(f"no variant {name!r}; {hint}")
        if names.count(name) > 1:
            raise UsageError(f"variant {name!r} is named twice in {expression!r}")
    by_data = [name for name in names if table[name].data]
    if len(by_data) > 1:
        raise UsageError(f"{' and '.join(by_data)} do not combine: each makes its own records")
    found = Plan(tuple(table[name] for name in names))
    if found.data == "multitask" and found.transitions:
        raise UsageError(
            f"{expression}: multitask also learns to parse, whose records have no transitions to "
            "write"
        )
    return found


def defaults(variant: Variant) -> dict[str, Any]:
    """The options of a variant and their defaults.

    >>> defaults(known()["pascal"])["variance"]
    1.0
    """
    return {name: option.default for name, option in variant.options().items()}
