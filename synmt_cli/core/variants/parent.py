"""PARENT: a decoder head for the parents of each token. Choshen and Abend (2021), section 4.

In one head of each layer a token sees its parents in the tree so far and itself, and nothing
else; so where it has none it sees itself alone:

    M_ij = 0 if j = i or j in parents(i), else -inf

The other heads see the whole prefix. No parameters, and labels are not used. Which head the
paper does not say; in the authors' code it is the first.
"""

from __future__ import annotations

import torch
from torch import Tensor

from synmt_cli.core.model.attention import block
from synmt_cli.core.model.modifier import Modifier, Side, Site
from synmt_cli.core.variants.partial_tree import NEEDS, partial_tree
from synmt_cli.core.variants.setting import Setting

HEAD = 0


class Parent(Modifier):
    """Restricts head 0 of every layer."""

    needs = NEEDS

    def prepare(self, side: Side) -> Tensor:
        """What each token may see, (B, T, T)."""
        itself = torch.eye(side.ids.size(1), dtype=torch.bool, device=side.ids.device)
        return partial_tree(side).parents | itself

    def scores(self, state: Tensor, site: Site, scores: Tensor) -> Tensor:
        """(B, H, Tq, T) -> the same, where the queries are the last Tq tokens."""
        seen = state[:, None, -scores.size(2) :]
        own = block(scores[:, HEAD : HEAD + 1], seen)
        return torch.cat((scores[:, :HEAD], own, scores[:, HEAD + 1 :]), dim=1)


def parent(setting: Setting) -> tuple[Modifier, ...]:
    """Builds a head of parents in every layer."""
    return (Parent(range(setting.n_layers)),)
