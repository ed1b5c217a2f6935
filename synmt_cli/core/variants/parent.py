"""PARENT: a decoder head for the parents of each token. Choshen and Abend (2021), section 4.

In one head of each layer a token sees only its parents in the tree so far and itself; a token
without parents sees itself alone:

    M_ij = 0 if j = i or j in parents(i), else -inf

The other heads see the whole prefix. There are no parameters, and labels are not used. The
paper does not say which head; in the authors' code it is the first.
"""

import torch
from torch import Tensor

from synmt_cli.core.model.modifier import Modifier, Side
from synmt_cli.core.transitions.grammar import FEATURES
from synmt_cli.core.variants.partial_tree import partial_tree
from synmt_cli.core.variants.stack import StackSpec

HEAD = 0


class Parent(Modifier):
    """Restricts head 0 of every layer."""

    needs = FEATURES

    def __init__(self, n_layers: int, n_heads: int) -> None:
        super().__init__(range(n_layers))
        self.n_heads = n_heads

    def prepare(self, side: Side) -> Tensor:
        """The tokens that each token sees in each head, (B, H, T, T)."""
        itself = torch.eye(side.ids.size(1), dtype=torch.bool, device=side.ids.device)  # (T, T)
        other_heads = torch.arange(self.n_heads, device=side.ids.device) != HEAD  # (H,)
        return (partial_tree(side).parents | itself)[:, None] | other_heads[:, None, None]

    def visible(self, state: Tensor, n_queries: int) -> Tensor:
        """(B, H, Tq, T)."""
        return state[:, :, -n_queries:]


def parent(spec: StackSpec) -> tuple[Modifier, ...]:
    """Builds a head of parents in every layer."""
    return (Parent(spec.n_layers, spec.size.n_heads),)
