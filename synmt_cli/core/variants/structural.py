"""Absolute structural positions. Wang et al. (2019), eqs. 3, 5 and 7.

    asb(x_i) = f_abs(PE(i), PE(depth_i))                                eq. 7

PE is the fixed sinusoid of eq. 3, depth_i the number of arcs to the root (eq. 5); the end of
sentence is one deeper than all words. asb is added to the word embedding. The paper does not
give the nonlinear f_abs; we take

    f_abs(p, s) = tanh(p U + s W + b)

and footnote 1 has p + s. Without sequential positions (`positions=none`, model #2 of Table 1)
it is PE(depth_i) itself. The origin is the root, verb or not.
"""

from typing import Annotated, Literal

import torch
from torch import Tensor, nn

from synmt_cli.core.model.embedding import sinusoid
from synmt_cli.core.model.modifier import Modifier, Side
from synmt_cli.core.model.projection import Projection
from synmt_cli.core.variants.stack import StackSpec


class StructuralPosition(Modifier):
    """Positions from the depth, alone or fused with the sequential ones.

    fuse: `nonlinear`, `add`, or `alone`.
    """

    needs = ("struct_abs",)

    def __init__(self, d_model: int, fuse: str) -> None:
        super().__init__()
        self.fuse = fuse
        if fuse == "nonlinear":
            self.sequential = Projection(d_model, d_model, bias=False)  # U
            self.structural = Projection(d_model, d_model)  # W, b
            for linear in (self.sequential, self.structural):
                nn.init.xavier_uniform_(linear.weight)
            nn.init.zeros_(self.structural.bias)

    def prepare(self, side: Side) -> Tensor:
        """Depths, (B, T)."""
        return side.features["struct_abs"]

    def positions(self, state: Tensor, p: Tensor) -> Tensor:
        """(1, T, D) -> (B, T, D)."""
        depth = sinusoid(state, p.size(-1))  # (B, T, D)
        if self.fuse == "alone":
            return depth
        if self.fuse == "add":
            return p + depth
        weight = self.sequential.weight  # sinusoids are in single precision, models may not be
        return torch.tanh(self.sequential(p.to(weight)) + self.structural(depth.to(weight)))


def struct_abs(
    spec: StackSpec,
    *,
    fuse: Annotated[
        Literal["nonlinear", "add"],
        "f_abs, `nonlinear` (eq. 7) or `add` (footnote 1); nothing to fuse without sequential "
        "positions",
    ] = "nonlinear",
) -> tuple[Modifier, ...]:
    """Builds absolute structural positions."""
    alone = spec.size.positions == "none"
    return (StructuralPosition(spec.size.d_model, "alone" if alone else fuse),)
