"""Graph convolution over the target's tree so far. Choshen and Abend (2021), section 4.

It acts on the embeddings of the decoder's prefix, along the edges of the paper's table:

    f_uv   = W_dir(u,v) h_u + b_lab(u,v)
    g_uv   = sigmoid(h_u . w_dir(u,v) + b'_lab(u,v))
    gcn(v) = relu(sum over the neighbours u of v, itself among them, of g_uv f_uv)
    h     <- h + gcn(h)                                        for each of the layers

dir(u, v) is Self for u = v, Left from a dependent u to its parent v, Right from a parent u to
its dependent v. The paper indexes b and b' by the label alone; in its sources (Marcheggiani
and Titov 2017, Bastings et al. 2017) they depend on direction and label, which we take unless
`label_bias` is shared. Self has a label of its own. The rectifier, and the residual sum after
it, are those of the authors' code. Its kernels, however, never move the content of a neighbour;
here the formula is computed.

All edges of a token to its parents have one label (partial_tree.py), so a layer is four matrix
products, and the edges are (B, T, T) numbers: with P_ij = [j is a parent of i],

    Right: G = P * sigmoid(a_j + b'_i),  out = G (h W_R) + (G 1) b_i
    Left:  m = sigmoid(..) (h W_L + b),  out = P^T m
"""

from typing import Annotated, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from synmt_cli.core.model.modifier import Modifier, Side
from synmt_cli.core.model.projection import product, projection
from synmt_cli.core.options import Bounds
from synmt_cli.core.transitions.grammar import FEATURES
from synmt_cli.core.variants.partial_tree import PartialTree, partial_tree
from synmt_cli.core.variants.stack import StackSpec

SELF = 0  # its row in the tables of labels; row l is label l in the direction from a parent


class Convolution(nn.Module):
    """One layer: h -> relu(sum of gated messages).

    n_labels: how many, numbered from 1. left: the row of label l in the direction to the parent
    is l + left. gates: weigh each message by g, else g = 1.
    """

    def __init__(
        self, d_model: int, n_labels: int, label_bias: str, *, labels: bool, gates: bool
    ) -> None:
        super().__init__()
        self.message = projection(d_model, d_model, d_model, d_model)  # W: Self, Left, Right
        self.message.register_parameter("bias", None)
        self.left = n_labels if label_bias == "direction" else 0
        n_rows = 1 + n_labels + self.left
        self.bias = nn.Parameter(torch.zeros(n_rows, d_model)) if labels else None  # b
        self.gate = projection(d_model, 1, 1, 1) if gates else None  # w: Self, Left, Right
        self.gate_bias = nn.Parameter(torch.zeros(n_rows)) if gates and labels else None  # b'
        if self.gate is not None:
            self.gate.register_parameter("bias", None)

    def forward(self, h: Tensor, tree: PartialTree) -> Tensor:
        """h: (B, T, D) -> (B, T, D). Sums are in the precision of autocast."""
        weights, sizes = [self.message.weight], 3 * [h.size(-1)]
        if self.gate is not None:
            weights, sizes = [*weights, self.gate.weight], [*sizes, 1, 1, 1]
        parts = product(h, torch.cat(weights)).split(sizes, -1)  # (B, T, D or 1) each
        itself, left, right, *gates = parts
        to_parent = torch.where(tree.labels > SELF, tree.labels + self.left, SELF)  # (B, T)
        bias = None if self.bias is None else self.bias.to(left.dtype)
        if bias is not None:
            itself, left = itself + bias[SELF], left + F.embedding(to_parent, bias)
        parents = tree.parents.to(left.dtype)  # (B, T, T): [i, j] where j is a parent of i
        edges = parents
        if gates:
            self_score, left_score, right_score = gates  # (B, T, 1) each
            itself = itself * self._gate(self_score, torch.full_like(tree.labels, SELF))
            left = left * self._gate(left_score, to_parent)
            edges = edges * self._gate(right_score.transpose(1, 2), tree.labels)  # (B, T, T)
        messages = torch.baddbmm(itself, parents.transpose(1, 2), left)  # (B, T, D)
        messages = torch.baddbmm(messages, edges, right)
        if bias is not None:
            messages = messages + edges.sum(-1, keepdim=True) * F.embedding(tree.labels, bias)
        return F.relu(messages)

    def _gate(self, scores: Tensor, rows: Tensor) -> Tensor:
        """The gates for scores, (B, T, 1) or, of the other ends, (B, 1, T). rows: (B, T), of b'."""
        bias = 0.0 if self.gate_bias is None else self.gate_bias[rows][..., None]
        return (scores + bias).sigmoid().to(scores.dtype)


class Gcn(Modifier):
    """Graph convolutions between the embeddings and the first layer of a decoder."""

    needs = FEATURES

    def __init__(self, convolutions: list[Convolution]) -> None:
        super().__init__()
        self.convolutions = nn.ModuleList(convolutions)

    def prepare(self, side: Side) -> PartialTree:
        """The tree so far."""
        return partial_tree(side)

    def inputs(self, state: PartialTree, x: Tensor) -> Tensor:
        """(B, T, D) -> (B, T, D)."""
        for convolution in self.convolutions:
            x = x + convolution(x, state)
        return x


def gcn(
    spec: StackSpec,
    *,
    layers: Annotated[int, "graph-convolution layers", Bounds(1, 100)] = 2,
    labels: Annotated[
        bool, "learned biases for labels (b and b'); false is the paper's -Labels"
    ] = True,
    gates: Annotated[
        bool, "gates weight the messages (g); false, with labels=false, is the paper's -Gates"
    ] = True,
    label_bias: Annotated[
        Literal["direction", "shared"], "b of each direction and label, or of each label alone"
    ] = "direction",
) -> tuple[Modifier, ...]:
    """Builds graph convolutions above the decoder's embeddings."""
    sizes = spec.size.d_model, spec.n_labels, label_bias
    return (Gcn([Convolution(*sizes, labels=labels, gates=gates) for _ in range(layers)]),)
