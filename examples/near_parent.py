"""A variant of your own, in one file (docs/own-variants.md).

    s_tj = q_t . k_j / sqrt(d_head) - w_h |j - p_t|

The first layer attends more to tokens near the parent of each token: w_h is learned, one for each
head, and p_t is the middle of the parent's pieces (feature `parent_middle`).

    export SYNMT_VARIANTS=examples/near_parent.py
    synmt variants near-parent
"""

from typing import Annotated

import torch
from torch import Tensor, nn

from synmt_cli.core.model.modifier import Modifier, Side, Site
from synmt_cli.core.options import Bounds
from synmt_cli.core.variants.stack import StackSpec
from synmt_cli.core.variants.table import Variant


class NearParent(Modifier):
    """start: w of all heads before training."""

    needs = ("parent_middle",)

    def __init__(self, layer: int, n_heads: int, start: float) -> None:
        super().__init__([layer])
        self.strength = nn.Parameter(torch.full((n_heads, 1, 1), start))

    def prepare(self, side: Side) -> Tensor:
        """How far each token is from the parent of each token, (B, 1, T, T)."""
        parent = side.features["parent_middle"]  # (B, T)
        j = torch.arange(parent.size(1), device=parent.device)  # (T,)
        return (j - parent[..., None]).abs()[:, None]

    def added(self, state: Tensor, site: Site) -> Tensor:
        """(B, H, T, T). Padding is masked later and never matters."""
        return -self.strength * state


def near_parent(
    spec: StackSpec,
    *,
    layer: Annotated[int, "0 is the bottom layer"] = 0,
    start: Annotated[float, "w before training", Bounds(0)] = 0.1,
) -> tuple[Modifier, ...]:
    """Builds the modifier of one layer."""
    return (NearParent(layer, spec.size.n_heads, start),)


VARIANTS = [
    Variant(
        "near-parent",
        "an example",
        "attention that is drawn to the parent",
        encoder="near_parent",
        source_trees=True,
    )
]
