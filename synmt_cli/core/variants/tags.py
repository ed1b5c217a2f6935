"""Dependency labels in the embedding. Sennrich and Haddow (2016).

As Bugliarello and Okazaki (2020) set it up for the Transformer: a vector of 10 dimensions for
the label of the token's word replaces the last 10 of its embedding. In their code the token's
embedding is scaled by sqrt(d_model) before that, the label's is not, and positions are added to
all dimensions afterwards; the paper does not say. Every subword has its word's label, without a
mark of its place in the word. One more vector is for all tokens without a known label: the end
of sentence, pieces outside the tree, sources without a tree, and labels unseen in training.
"""

from typing import Annotated

import torch
from torch import Tensor, nn

from synmt_cli.core.model.modifier import Modifier, Side
from synmt_cli.core.variants.stack import StackSpec
from synmt_cli.errors import UsageError


class Tags(Modifier):
    """Replaces the last `width` dimensions of each token by its label's vector."""

    needs = ("tag",)

    def __init__(self, n_labels: int, width: int) -> None:
        super().__init__()
        self.label = nn.Embedding(n_labels + 1, width)  # 0: no known label
        nn.init.normal_(self.label.weight, 0.0, width**-0.5)

    def prepare(self, side: Side) -> Tensor:
        """The vectors of the labels, (B, T, width)."""
        label: Tensor = self.label(side.features["tag"])
        return label

    def tokens(self, state: Tensor, x: Tensor) -> Tensor:
        """(B, T, D) -> (B, T, D)."""
        return torch.cat((x[..., : -state.size(-1)], state.to(x.dtype)), dim=-1)


def tags(
    spec: StackSpec,
    *,
    width: Annotated[int, "dimensions for the label, the last ones of the embedding"] = 10,
) -> tuple[Modifier, ...]:
    """Builds label embeddings."""
    if not 1 <= width < spec.size.d_model:
        raise UsageError(f"tags.width must be within 1..{spec.size.d_model - 1}, not {width}")
    return (Tags(spec.n_labels, width),)
