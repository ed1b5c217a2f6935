"""The tree that a target prefix has built so far. Choshen and Abend (2021), section 3.

An arc head -> dependent of a transition x is an edge from each token of the head to each of the
dependent, from x to each of the dependent, and from each of the head to x; it is there as soon
as x is in the prefix. So the parents of a token are the tokens of one word, and
one transition: three numbers for each token, and no list of edges.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from synmt_cli.core.model.modifier import Side
from synmt_cli.core.transitions.grammar import FEATURES, NO_LABEL

NEEDS = FEATURES


class PartialTree(NamedTuple):
    """parents: (B, T, T) bool, [b, i, j] where j is a parent of i. labels: (B, T), of their edges.

    A token has one label for all its parents, NO_LABEL where it has none.
    """

    parents: Tensor
    labels: Tensor


def partial_tree(side: Side) -> PartialTree:
    """The tree of a prefix: its features may tell of arcs that come only later."""
    arc, begin, end, label = (side.features[name][..., None] for name in FEATURES)
    n = side.ids.size(1)
    position = torch.arange(n, device=arc.device)
    in_head = (position >= begin) & (position < end)
    through = (position == arc) & (position != position[:, None])
    known = arc < n
    parents = (in_head | through) & known
    return PartialTree(parents, torch.where(known, label, NO_LABEL)[..., 0])
