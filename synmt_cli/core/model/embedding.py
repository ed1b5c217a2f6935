"""Tokens and their absolute positions, with the three hooks of a stack's input."""

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from synmt_cli.core.model.dropout import dropout
from synmt_cli.core.model.modifier import Active
from synmt_cli.core.model.size import Size


def sinusoid(position: Tensor, d_model: int) -> Tensor:
    """Vaswani et al. (2017), section 3.5. position: (..., T), real -> (..., T, D).

    Sine on even and cosine on odd dimensions, as the paper prints it; fairseq, THUMT and
    tensor2tensor use [sine half | cosine half] with other frequencies.
    """
    i = torch.arange(0, d_model, 2, device=position.device, dtype=torch.float32)  # (D / 2,)
    frequency = torch.exp(i * (-math.log(10000.0) / d_model))
    angle = position[..., None].float() * frequency  # (..., T, D / 2)
    return torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(-2)  # (..., T, D)


def token_table(n_tokens: int, d_model: int) -> nn.Embedding:
    """One vector for each token, of about unit length: N(0, 1 / d_model)."""
    table = nn.Embedding(n_tokens, d_model)
    nn.init.normal_(table.weight, 0.0, d_model**-0.5)
    return table


class Embedding(nn.Module):
    """x = inputs(dropout(tokens(E[w] * sqrt(d)) + positions(PE))). `table` may be shared.

    positions: `sinusoid`, or `none`, where PE = 0.
    """

    def __init__(self, table: nn.Embedding, size: Size, positions: str) -> None:
        super().__init__()
        self.table = table
        self.dropout = size.dropout
        self.positions = positions
        self._sinusoids: Tensor = torch.empty(0)  # of positions 0, 1, ... as far as needed so far

    def forward(
        self,
        ids: Tensor,
        active: Sequence[Active],
        positions: Tensor | None = None,
        n_positions: int = 0,
    ) -> Tensor:
        """ids: (B, T) -> (B, T, D).

        positions: of each token, (B, T), if not 0, 1, ...; below n_positions, or T if that is 0.
        """
        x = self.table(ids) * math.sqrt(self.table.embedding_dim)  # (B, T, D)
        p = self._encodings(n_positions or ids.size(1), x)  # (T or n_positions, D)
        p = p[None] if positions is None else F.embedding(positions, p)  # (1 or B, T, D)
        for modifier, state in active:
            x, p = modifier.tokens(state, x), modifier.positions(state, p)
        x = dropout(x + p.to(x.dtype), self.dropout, self.training)
        for modifier, state in active:
            x = modifier.inputs(state, x)
        return x

    def _encodings(self, n: int, like: Tensor) -> Tensor:
        """Positional encodings, (n, D)."""
        d_model = like.size(-1)
        if self.positions == "none":
            return like.new_zeros(n, d_model)
        if self._sinusoids.size(0) < n or self._sinusoids.device != like.device:
            n_positions = max(256, 1 << (n - 1).bit_length())
            with torch.inference_mode(False):  # training may use them after a search did
                self._sinusoids = sinusoid(torch.arange(n_positions, device=like.device), d_model)
        return self._sinusoids[:n]
