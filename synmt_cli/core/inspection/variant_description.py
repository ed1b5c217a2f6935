"""Descriptions of variants, read from the table, the options and the modifiers they build."""

from collections.abc import Sequence

from synmt_cli.core.model import initialisation
from synmt_cli.core.model.modifier import features_read
from synmt_cli.core.model.size import Size
from synmt_cli.core.variants import plan
from synmt_cli.core.variants.own_file import known
from synmt_cli.core.variants.stack import StackSpec
from synmt_cli.core.variants.table import Variant
from synmt_cli.formats.reports.variants import OptionInfo, VariantInfo


def describe(names: Sequence[str] = ()) -> list[VariantInfo]:
    """The variants of these names, or all of them. Raises UsageError for an unknown name."""
    return [_description(variant) for name in names or known() for variant in plan(name).variants]


def _description(variant: Variant) -> VariantInfo:
    spec = StackSpec(Size(), Size().encoder_layers, 1)
    with initialisation.without_values():
        encoder = plan(variant.name).encoder(spec, {})
    learns = {name for modifier in encoder for name in modifier.learns}
    stacks = {"encoder": variant.encoder, "decoder": variant.decoder}
    return VariantInfo(
        variant.name,
        variant.paper,
        variant.what,
        tuple(stack for stack, path in stacks.items() if path),
        [OptionInfo(name, one.default, one.meaning) for name, one in variant.options().items()],
        tuple(features_read(encoder, training=False)),
        tuple(sorted(learns)),
        variant.data,
    )
