"""Global positional encoding of the path from the root (GPS). Xie et al. (2021), eqs. 5-6.

    s_i  = LSTM(label_0, ..., label_n)          the labels from the root to token i
    e_ij = (x_i W^Q)(x_j W^K)^T / sqrt(d_z) + (s_i W_s^Q)(s_j W_s^K)^T / sqrt(d_z)      eq. 5

The second term is 0 for words of different sentences. Values come from x alone. Where the paper
is silent, we take: one LSTM for all layers, one layer deep and as wide as the model, which reads
from the root down and gives its last state; W_s for each layer and head; subwords share their
word's path; a token without a path, such as the end of sentence, counts as one of another
sentence; the labels' embeddings are dropped out like the tokens'; the embedding of a label that
training did not meet is the mean of those that it did.

A path is its head's path and one label more, so the LSTM takes one step for each distinct
path of the batch, from the state it had at the prefix. On a GPU it instead reads, side by side,
the paths that no other continues: the same states in fewer launches (path_lstm.py).

Both terms are one product, [q; p] [k; p']^T / sqrt(d_z) with p = s W_s^Q, p' = s W_s^K, and p is
0 where there is no path; so attention keeps its fused kernel. Where a line of the batch has words
of two sentences, the second term is computed apart, set to 0 between them, and added.
"""

from collections.abc import Sequence
from typing import Annotated, Literal, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from synmt_cli.core.model.attention import scaled_product, split_heads
from synmt_cli.core.model.dropout import dropout
from synmt_cli.core.model.modifier import Dot, Modifier, Paths, Side, Site
from synmt_cli.core.model.projection import Projection
from synmt_cli.core.variants.path_lstm import side_by_side
from synmt_cli.core.variants.stack import StackSpec
from synmt_cli.errors import UsageError


class PathState(NamedTuple):
    """vectors: (P, D), s of each distinct path. rows: (B, T), each token's path.

    within: (B, 1, T, T) bool, whether both tokens are words of one sentence; None where that
    follows from the paths, because each line is one sentence.
    """

    vectors: Tensor
    rows: Tensor
    within: Tensor | None


class PathAttention(Modifier):
    """Adds a dot product of path vectors to the scores.

    layers: those that have the term. dropout: on the labels' embeddings.
    """

    needs = ("path", "sentence")

    def __init__(
        self, layers: Sequence[int], n_labels: int, d_model: int, n_heads: int, dropout: float
    ) -> None:
        super().__init__(layers)
        self.n_heads = n_heads
        self.dropout = dropout
        self.label = nn.Embedding(n_labels + 1, d_model)  # 0: a label that training did not meet
        nn.init.normal_(self.label.weight, 0.0, d_model**-0.5)
        self.lstm = nn.LSTMCell(d_model, d_model)
        # W_s^Q and W_s^K of each layer that has the term.
        self.qk = nn.ModuleDict(
            {str(layer): Projection(d_model, 2 * d_model, bias=False) for layer in layers}
        )
        for weight in self.qk.parameters():
            for part in weight.data.split(d_model):
                nn.init.xavier_uniform_(part)

    def prepare(self, side: Side) -> PathState:
        """Path vectors, and which pairs they may relate."""
        assert side.paths is not None, "the feature path comes with its table"
        vectors, rows = self.vectors(side.paths), side.features["path"]
        if side.is_single:
            return PathState(vectors, rows, None)
        return PathState(vectors, rows, side.same_sentence[:, None])

    def vectors(self, paths: Paths) -> Tensor:
        """s of each path, (P, D): the LSTM's state after its last label; 0 for the empty path."""
        table = self.label.weight
        if not self.training and len(table) > 1:  # training meets no unknown label
            table = torch.cat((table[1:].mean(0, keepdim=True), table[1:]))
        x = F.embedding(paths.labels, table)  # (P, D)
        x = dropout(x, self.dropout, self.training)
        if x.device.type != "cpu" and len(paths.whole):
            return side_by_side(self.lstm, x, paths)
        return self._by_prefix(x, paths)

    def _by_prefix(self, x: Tensor, paths: Paths) -> Tensor:
        """Computes each state from its prefix's. x: (P, D), the last labels' embeddings."""
        hidden = [x.new_zeros(1, x.size(1))]  # of the paths of each length
        cell, begin, end = hidden[0], 0, 1  # of the paths one label shorter
        for size in paths.sizes[1:]:
            prefix = paths.shorter[end : end + size] - begin
            h, cell = self.lstm(x[end : end + size], (hidden[-1][prefix], cell[prefix]))
            hidden.append(h)  # (size, D)
            begin, end = end, end + size
        return torch.cat(hidden)

    def added(self, state: PathState, site: Site) -> Tensor | Dot:
        """Projects each distinct path once, then gives every token its own."""
        qk = F.embedding(state.rows, self.qk[str(site.layer)](state.vectors))  # (B, T, 2 D)
        q, k = (split_heads(t, self.n_heads) for t in qk.chunk(2, dim=-1))  # (B, H, T, D / H)
        if state.within is None:
            return Dot(q, k)
        return scaled_product(q, k).masked_fill(~state.within, 0.0)  # (B, H, T, T)


def gps(
    spec: StackSpec,
    *,
    layer: Annotated[
        int | Literal["all"], "0 (the paper's best, the bottom one) and up, or `all`"
    ] = 0,
    dropout: Annotated[
        bool, "whether the labels' embeddings are dropped out at the model's rate"
    ] = True,
) -> tuple[Modifier, ...]:
    """Builds the path term."""
    n_layers, size = spec.n_layers, spec.size
    if layer != "all" and not 0 <= layer < n_layers:
        raise UsageError(f"gps.layer must be within 0..{n_layers - 1} or all, not {layer}")
    layers = range(n_layers) if layer == "all" else (layer,)
    rate = size.dropout if dropout else 0.0
    return (PathAttention(layers, spec.n_labels, size.d_model, size.n_heads, rate),)
