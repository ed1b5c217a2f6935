"""Every variant, by name. VARIANTS is the one place to add one.

A variant is a named bundle of modifiers for the encoder and for the decoder. Its options
are the keyword-only parameters of its builders, each with its default, its meaning and perhaps
its bounds (core/options.py). Names joined by `+` are combined, left to right.

Two variants change the data and not the model: `synmt multitask` makes their records.
"""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from synmt_cli.core.options import Option, options
from synmt_cli.errors import UsageError

if TYPE_CHECKING:  # the table is read for --help, which never loads torch
    from synmt_cli.core.model.modifier import Modifier
    from synmt_cli.core.variants.stack import StackSpec

Build = Callable[..., "tuple[Modifier, ...]"]
Values = Mapping[str, Mapping[str, Any]]  # of options: {"pascal": {"heads": 2}}


@dataclass(frozen=True, slots=True)
class Variant:
    """What one name in `--variant` means.

    encoder, decoder: `module:function` of the builder in this package, or "" for none.
    data: how `synmt multitask` makes its training records, or "". rereads: True where the
    decoder reads its whole prefix anew for each token, every known token seen by every other.
    transitions: True where targets are the transitions that build a tree, not pieces.
    source_trees: True where the trees of the sources are needed, for training at least.
    """

    name: str
    paper: str
    what: str
    encoder: str = ""
    decoder: str = ""
    data: str = ""
    rereads: bool = False
    transitions: bool = False
    source_trees: bool = False

    def builders(self) -> list[Build]:
        """The builder functions; imports their modules, and torch with them."""
        return [find(path) for path in (self.encoder, self.decoder) if path]

    def options(self) -> dict[str, Option]:
        """The options of its builders."""
        return {name: one for build in self.builders() for name, one in options(build).items()}


_CURREY, _CHOSHEN = "Currey and Heafield 2019", "Choshen and Abend 2021"
_TABLE = (
    Variant("vanilla", "Vaswani et al. 2017", "the plain Transformer"),
    Variant(
        "pascal",
        "Bugliarello and Okazaki 2020",
        "heads scaled by nearness to the parent",
        encoder="pascal:pascal",
        source_trees=True,
    ),
    Variant(
        "gps",
        "Xie et al. 2021",
        "a dot product of the paths from the root",
        encoder="gps:gps",
        source_trees=True,
    ),
    Variant(
        "struct-abs",
        "Wang et al. 2019",
        "positions from the depth in the tree",
        encoder="structural:struct_abs",
        source_trees=True,
    ),
    Variant(
        "struct-rel",
        "Wang et al. 2019",
        "vectors for signed distances in the tree",
        encoder="relation:struct_rel",
        source_trees=True,
    ),
    Variant(
        "rel",
        "Shaw et al. 2018",
        "vectors for distances in the sentence",
        encoder="relation:rel",
        decoder="relation:rel",
    ),
    Variant(
        "dep",
        "Omote et al. 2019",
        "vectors for differences of depth",
        encoder="relation:dep",
        source_trees=True,
    ),
    Variant(
        "tags",
        "Sennrich and Haddow 2016",
        "the label in the embedding",
        encoder="tags:tags",
        source_trees=True,
    ),
    Variant(
        "sisa",
        "Strubell et al. 2018",
        "a head that learns to attend to the parent",
        encoder="sisa:sisa",
        source_trees=True,
    ),
    Variant(
        "multitask", _CURREY, "one model translates and parses", data="multitask", source_trees=True
    ),
    Variant(
        "mixed-encoder",
        _CURREY,
        "plain and linearised sources",
        data="mixed-encoder",
        source_trees=True,
    ),
    Variant("bitran", _CHOSHEN, "known target tokens see each other", rereads=True),
    Variant("linearized", _CHOSHEN, "targets are trees as transitions", transitions=True),
    Variant(
        "parent",
        _CHOSHEN,
        "a head that sees the target's parents so far",
        decoder="parent:parent",
        rereads=True,
        transitions=True,
    ),
    Variant(
        "gcn",
        _CHOSHEN,
        "graph convolution over the target's tree so far",
        decoder="gcn:gcn",
        rereads=True,
        transitions=True,
    ),
)
VARIANTS = {variant.name: variant for variant in _TABLE}


def find(path: str) -> Build:
    """The function that `module:function` names."""
    module, function = path.split(":")
    build: Build = getattr(importlib.import_module(f"{__name__}.{module}"), function)
    return build


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
        return _build(spec, [(v.name, v.encoder) for v in self.variants], values)

    def decoder(self, spec: StackSpec, values: Values) -> list[Modifier]:
        """The decoder's modifiers, in the order they act. Raises UsageError."""
        spec = replace(spec, stack="decoder")
        return _build(spec, [(v.name, v.decoder) for v in self.variants], values)


def _build(spec: StackSpec, parts: list[tuple[str, str]], values: Values) -> list[Modifier]:
    modifiers: list[Modifier] = []
    for name, path in parts:
        if path:
            build = find(path)
            for modifier in build(spec, **_own(build, name, values.get(name, {}))):
                modifier.name = name
                _refuse_replacing(modifier, modifiers)
                modifiers.append(modifier)
    return modifiers


def _own(build: Build, name: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a builder's own options. Raises UsageError for one out of bounds."""
    known = options(build)
    own = {key: value for key, value in values.items() if key in known}
    for key, value in own.items():
        if known[key].outside(value) is not None:
            raise UsageError(f"{name}.{key} must be {known[key].bounds}, not {value}")
    return own


def _refuse_replacing(modifier: Modifier, before: list[Modifier]) -> None:
    """Raises UsageError where scores that a modifier made would be thrown away or scaled."""
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
    """Reads `name` or `name+name`. Raises UsageError naming the choices.

    >>> [v.name for v in plan("vanilla").variants]
    ['vanilla']
    """
    names = expression.split("+")
    for name in names:
        if name not in VARIANTS:
            near = difflib.get_close_matches(name, VARIANTS, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"choose from {', '.join(VARIANTS)}"
            raise UsageError(f"no variant {name!r}; {hint}")
        if names.count(name) > 1:
            raise UsageError(f"variant {name!r} is named twice in {expression!r}")
    by_data = [name for name in names if VARIANTS[name].data]
    if len(by_data) > 1:
        raise UsageError(f"{' and '.join(by_data)} do not combine: each makes its own records")
    found = Plan(tuple(VARIANTS[name] for name in names))
    if found.data == "multitask" and found.transitions:
        raise UsageError(
            f"{expression}: multitask also learns to parse, whose records have no transitions to "
            "write"
        )
    return found


def defaults(variant: Variant) -> dict[str, Any]:
    """The options of a variant and their defaults.

    >>> defaults(VARIANTS["pascal"])["variance"]
    1.0
    """
    return {name: option.default for name, option in variant.options().items()}
