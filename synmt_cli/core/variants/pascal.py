"""Parent-scaled self-attention (PASCAL). Bugliarello and Okazaki (2020), eqs. 4-6.

    s_tj = q_t . k_j / sqrt(d_head)                                    eq. 4
    n_tj = s_tj * dist(p_t, j)                                         eq. 5
    dist(p_t, j) = exp(-(j - p_t)^2 / (2 sigma^2)) / sqrt(2 pi sigma^2)    eq. 6

p_t, feature `parent_middle`, is the middle position of the subwords of t's parent; it may
lie between two tokens. The root is its own parent. The paper does not speak of EOS; its
parent is EOS itself. The published code scales rows of other sentences and shifts parents
against left-padded sources; this follows the paper.
"""

import math
from collections.abc import Mapping
from typing import Annotated

import torch
from torch import Tensor

from synmt_cli.core.model.modifier import Modifier, Side, Site
from synmt_cli.core.options import Bounds
from synmt_cli.core.variants.stack import StackSpec
from synmt_cli.errors import UsageError


class Pascal(Modifier):
    """Scales the scores of the first heads by nearness to each token's parent.

    heads: layer -> how many of its heads are scaled. variance: sigma^2. ignore: q, the
    chance in training that a row of D is set to 1, drawn for each sentence, head and token.
    parent_only: D is 1 within less than one position of the parent and 0 elsewhere.
    """

    needs = ("parent_middle",)

    def __init__(
        self, heads: Mapping[int, int], variance: float, ignore: float, parent_only: bool
    ) -> None:
        super().__init__(heads)
        self.heads = dict(heads)
        self.variance = variance
        self.ignore = ignore
        self.parent_only = parent_only

    def scaled(self, layer: int) -> frozenset[int]:
        """The first heads."""
        return frozenset(range(self.heads.get(layer, 0)))

    def prepare(self, side: Side) -> Tensor:
        """D, (B, T, T): row t is token t's. Pads are masked later and never matter."""
        parent = side.features["parent_middle"]  # (B, T)
        j = torch.arange(parent.size(1), device=parent.device)  # (T,)
        distance = j - parent[..., None]  # (B, T, T)
        if self.parent_only:
            return (distance.abs() < 1).to(parent.dtype)
        density = torch.exp(-distance.square() / (2 * self.variance))
        return density / math.sqrt(2 * math.pi * self.variance)

    def scores(self, state: Tensor, site: Site, scores: Tensor) -> Tensor:
        """Scales by eq. 5 as it stands: negative scores are drawn toward 0 like positive ones."""
        h = self.heads[site.layer]
        nearness = state[:, None]  # (B, 1, T, T)
        if self.training and self.ignore > 0:
            shape = scores.size(0), h, scores.size(2), 1
            chance = scores.new_empty(shape, dtype=torch.float32).uniform_()  # (B, h, T, 1)
            nearness = torch.where(chance < self.ignore, 1.0, nearness)  # (B, h, T, T)
        scaled = scores[:, :h] * nearness  # (B, h, T, T)
        return torch.cat((scaled.to(scores.dtype), scores[:, h:]), dim=1)


def pascal(
    spec: StackSpec,
    *,
    heads: Annotated[
        int | list[int],
        "how many heads of `layer` are scaled, or a list with a count for each layer",
    ] = 2,
    layer: Annotated[int, "0 is the bottom layer, the paper's layer 1"] = 0,
    variance: Annotated[float, "sigma^2, in tokens^2", Bounds(0.001)] = 1.0,
    ignore: Annotated[float, "q of parent ignoring, in training only", Bounds(0, 1)] = 0.0,
    parent_only: Annotated[bool, "weights on parents alone"] = False,
) -> tuple[Modifier, ...]:
    """Builds PASCAL heads."""
    n_layers, n_heads = spec.n_layers, spec.size.n_heads
    if not 0 <= layer < n_layers:
        raise UsageError(f"pascal.layer must be within 0..{n_layers - 1}, not {layer}")
    if isinstance(heads, list) and layer:
        raise UsageError("pascal.layer does not go with a list of heads, which names its layers")
    counts = heads if isinstance(heads, list) else [0] * layer + [heads]
    if len(counts) > n_layers:
        raise UsageError(f"pascal.heads counts {len(counts)} layers; there are {n_layers}")
    if not all(0 <= h <= n_heads for h in counts):
        raise UsageError(f"pascal.heads must be within 0..{n_heads}, not {heads}")
    chosen = {layer: h for layer, h in enumerate(counts) if h > 0}
    return (Pascal(chosen, variance, ignore, parent_only),)
