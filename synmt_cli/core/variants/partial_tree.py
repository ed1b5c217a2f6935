"""The tree that a target prefix has built so far. Choshen and Abend (2021), section 3.

The arc head -> dependent that a transition x draws consists of edges: from each token of the head
to each token of the dependent, from x to each token of the dependent, and from each token of the
head to x. They exist as soon as x is in the prefix. So the parents of a token are the tokens of
one word, and one transition: three numbers for each token, and no list of edges.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from synmt_cli.core.model.modifier import Side
from synmt_cli.core.transitions.grammar import FEATURES, NO_LABEL


class PartialTree(NamedTuple):
    """A tree as edges. parents: (B, T, T) bool, True at [b, i, j] where j is a parent of i.

    labels: (B, T): a token has one label for all its parents, NO_LABEL where it has none.
    """

    parents: Tensor
    labels: Tensor


def partial_tree(side: Side) -> PartialTree:
    """The tree of a prefix, without the arcs in its features that come only after the prefix."""
    arc, begin, end, label = (side.features[name][..., None] for name in FEATURES)  # (B, T, 1)
    n = side.ids.size(1)
    position = torch.arange(n, device=arc.device)  # (T,)
    in_head = (position >= begin) & (position < end)  # (B, T, T)
    is_transition = (position == arc) & (position != position[:, None])  # (B, T, T)
    exists = arc < n  # (B, T, 1)
    parents = (in_head | is_transition) & exists  # (B, T, T)
    return PartialTree(parents, torch.where(exists, label, NO_LABEL)[..., 0])
