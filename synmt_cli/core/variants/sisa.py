"""Syntactically-informed self-attention (SISA). Strubell et al. (2018).

In one head the scores are biaffine, and supervised to be a distribution over parents:

    q' = lrelu(x W_q), k' = lrelu(x W_k)
    s_tj = [q'_t; 1]^T U k'_j
    L    = L_translation - lambda sum_t log softmax(s_t)[parent(t)]

As Bugliarello and Okazaki (2020) extend it to subwords: the parent of a token is the first
subword of its word's head, that of a root its own first subword. Sizes, the bias on the side of
the query and lambda = 1 are those of their code. That code applies a softmax over queries to a
softmax, with padding among the targets; we apply one, over the keys, without padding. The end of
sentence and pieces outside the tree teach nothing. In attention the scores are masked like the
other heads', and later variants of a combination add to them; the loss sees neither. Parents at
test time are the model's own, so translating needs no parser.
"""

from dataclasses import dataclass
from typing import Annotated

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from synmt_cli.core.model.attention import masked
from synmt_cli.core.model.modifier import Modifier, Side, Site
from synmt_cli.core.model.projection import projection
from synmt_cli.core.options import Bounds
from synmt_cli.core.variants.stack import StackSpec
from synmt_cli.errors import UsageError

HEAD = 0
SLOPE = 0.01  # of the leaky rectifier below zero


@dataclass(slots=True)
class ParentScores:
    """The batch of a forward pass, and the scores of parents (B, T, T) once they are computed."""

    side: Side
    scores: Tensor | None = None


class Sisa(Modifier):
    """Makes head 0 of one layer a parser. weight: lambda."""

    needs = learns = ("parent_first", "sentence")
    replaces = frozenset({HEAD})

    def __init__(self, layer: int, d_model: int, d_head: int, weight: float) -> None:
        super().__init__((layer,))
        self.weight = weight
        self.qk = projection(d_model, d_head, d_head)
        self.biaffine = nn.Parameter(nn.init.xavier_uniform_(torch.empty(d_head + 1, d_head)))  # U

    def prepare(self, side: Side) -> ParentScores:
        """Only keeps the batch: the scores come from the layer's input."""
        return ParentScores(side)

    def scores(self, state: ParentScores, site: Site, scores: Tensor) -> Tensor:
        """Replaces the scores of head 0 by the biaffine ones."""
        qk = F.leaky_relu(self.qk(site.x), SLOPE)  # (B, T, 2 d_head)
        dtype = torch.promote_types(qk.dtype, torch.float32)
        with torch.autocast(qk.device.type, enabled=False):  # as in attention
            (q, k), biaffine = qk.to(dtype).chunk(2, dim=-1), self.biaffine.to(dtype)
            q = q @ biaffine[:-1] + biaffine[-1]  # [q; 1]^T U
            state.scores = q @ k.transpose(-2, -1)  # (B, T, T)
        biaffine = state.scores[:, None].to(scores.dtype)  # (B, 1, T, T)
        return torch.cat((scores[:, :HEAD], biaffine, scores[:, HEAD + 1 :]), dim=1)

    def loss(self, state: ParentScores) -> Tensor | None:
        """lambda times the summed cross-entropy of parents; None if the batch has no parents."""
        if state.scores is None or "parent_first" not in state.side.features:
            return None
        pad, in_tree = state.side.pad, state.side.features["sentence"] >= 0  # (B, T)
        scores = masked(state.scores, None if pad is None else ~pad[:, None])
        taught = in_tree if pad is None else in_tree & ~pad
        parent = state.side.features["parent_first"].masked_fill(~taught, -1)
        loss = F.cross_entropy(
            scores.flatten(0, 1), parent.flatten(), ignore_index=-1, reduction="sum"
        )
        return self.weight * loss


def sisa(
    spec: StackSpec,
    *,
    layer: Annotated[int, "0 is the bottom layer"] = 0,
    weight: Annotated[float, "lambda, the weight of the parsing loss", Bounds(0)] = 1.0,
) -> tuple[Modifier, ...]:
    """Builds a parsing head."""
    if not 0 <= layer < spec.n_layers:
        raise UsageError(f"sisa.layer must be within 0..{spec.n_layers - 1}, not {layer}")
    return (Sisa(layer, spec.size.d_model, spec.size.d_head, weight),)
