"""Every variant of synmt, by name. VARIANTS is the one place to add one.

Reading the table never loads torch: it names the builders, whose modules do.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from synmt_cli.core.options import Option, options

if TYPE_CHECKING:
    from synmt_cli.core.model.modifier import Modifier

Build = Callable[..., "tuple[Modifier, ...]"]
OWN = "synmt_own_variants"  # the module made of the user's own file (own_file.py)


@dataclass(frozen=True, slots=True)
class Variant:
    """The meaning of one name in `--variant`.

    encoder, decoder: `module:function` of the builder in this package, or "" for none; in the
    user's own file, the name of the function. data: how `synmt multitask` makes its training
    records, or "". rereads: True where the decoder reads its whole prefix anew for each token, and
    every known token sees every other. transitions: True where targets are the transitions that
    build a tree, not pieces. source_trees: True where the trees of the sources are needed, for
    training at least. own: True for a variant of the user's own file, where own_file.py sets it.
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
    own: bool = False

    def builders(self) -> list[Build]:
        """The builder functions; imports their modules, and torch with them."""
        return [find(path) for path in self.paths()]

    def paths(self) -> list[str]:
        """`module:function` of each builder."""
        return [path for path in (self.encoder, self.decoder) if path]

    def options(self) -> dict[str, Option]:
        """The options of its builders."""
        return {name: one for build in self.builders() for name, one in options(build).items()}


def find(path: str) -> Build:
    """The function that `module:function` names."""
    module, function = path.split(":")
    own = module == OWN
    build: Build = getattr(
        importlib.import_module(module if own else f"{__package__}.{module}"), function
    )
    return build


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
        "vectors for arcs; without an arc, for order and summed depths",
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
