"""The tree that a target prefix has built so far. Choshen and Abend (2021), section 3.

An arc head -> dependent of a transition x is an edge from each token of the head to each of the
dependent, from x to each of the dependent, and from each of the head to x; they exist as soon as
x is in the prefix. So the parents of a token are the tokens of one word, and one transition:
three numbers for each token, and no list of edges.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from synmt_cli.core.model.modifier import Side
from synmt_cli.core.transitions.grammar import FEATURES, NO_LABEL


class PartialTree(NamedTuple):
    """parents: (B, T, T) bool, [b, i, j] where j is a parent of i. labels: (B, T), of their edges.

    A token has one label for all its parents, NO_LABEL where it has none.
    """

    parents: Tensor
    labels: Tensor


def partial_tree(side: Side) -> PartialTree:
    """The tree of a prefix. Arcs of the features that come only after the prefix are left out."""
    arc, begin, end, label = (side.features[name][..., None] for name in FEATURES)  # (B, T, 1)
    n = side.ids.size(1)
    position = torch.arange(n, device=arc.device)  # (T,)
    in_head = (position >= begin) & (position < end)  # (B, T, T)
    is_transition = (position == arc) & (position != position[:, None])  # (B, T, T)
    exists = arc < n  # (B, T, 1)
    parents = (in_head | is_transition) & exists  # (B, T, T)
    return PartialTree(parents, torch.where(exists, label, NO_LABEL)[..., 0])
