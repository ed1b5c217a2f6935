"""Descriptions of variants, read from the table, the options and the modifiers they build."""

from collections.abc import Sequence
from dataclasses import dataclass

from synmt_cli.core.model import initialisation
from synmt_cli.core.model.size import Size
from synmt_cli.core.options import Option
from synmt_cli.core.variants import plan
from synmt_cli.core.variants.own_file import known
from synmt_cli.core.variants.stack import StackSpec
from synmt_cli.core.variants.table import Variant


@dataclass(frozen=True, slots=True)
class VariantDescription:
    """One variant. data: a scheme of `synmt multitask`, or "".

    features: those of the source that translation needs; training_features: those that only
    training needs.
    """

    name: str
    paper: str
    what: str
    stacks: tuple[str, ...]
    options: dict[str, Option]
    features: tuple[str, ...]
    training_features: tuple[str, ...]
    data: str


def describe(names: Sequence[str] = ()) -> list[VariantDescription]:
    """The variants of these names, or all of them. Raises UsageError for an unknown name."""
    return [_description(variant) for name in names or known() for variant in plan(name).variants]


def _description(variant: Variant) -> VariantDescription:
    spec = StackSpec(Size(), Size().encoder_layers, 1)
    with initialisation.without_values():
        encoder = plan(variant.name).encoder(spec, {})
    needs = {name for modifier in encoder for name in modifier.needs}
    learns = {name for modifier in encoder for name in modifier.learns}
    stacks = {"encoder": variant.encoder, "decoder": variant.decoder}
    return VariantDescription(
        variant.name,
        variant.paper,
        variant.what,
        tuple(stack for stack, path in stacks.items() if path),
        variant.options(),
        tuple(sorted(needs - learns)),
        tuple(sorted(learns)),
        variant.data,
    )
