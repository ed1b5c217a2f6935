"""Tokens and their absolute positions, with the three hooks above the embeddings."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from synmt_cli.core.model.modifier import Active
from synmt_cli.core.model.size import Size


def sinusoid(position: Tensor, d_model: int) -> Tensor:
    """Vaswani et al. (2017), section 3.5. position: (..., T), real -> (..., T, D).

    Sine on even and cosine on odd dimensions, as the paper prints it; fairseq, THUMT and
    tensor2tensor use [sine half | cosine half] with other frequencies.
    """
    i = torch.arange(0, d_model, 2, device=position.device, dtype=torch.float32)
    angle = position[..., None].float() * torch.exp(i * (-math.log(10000.0) / d_model))
    return torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(-2)


def table(n_tokens: int, d_model: int) -> nn.Embedding:
    """One vector for each token, of about unit length: N(0, 1 / d_model)."""
    embedding = nn.Embedding(n_tokens, d_model)
    nn.init.normal_(embedding.weight, 0.0, d_model**-0.5)
    return embedding


class Embedding(nn.Module):
    """x = inputs(dropout(tokens(E[w] * sqrt(d)) + positions(PE))). `table` may be shared.

    positions: `sinusoid`, or `none`, where PE = 0.
    """

    def __init__(self, table: nn.Embedding, size: Size, positions: str) -> None:
        super().__init__()
        self.table, self.dropout, self.positions = table, size.dropout, positions
        self._known: Tensor = torch.empty(0)  # sinusoids of positions 0.. met so far

    def forward(self, ids: Tensor, active: Sequence[Active], start: int = 0) -> Tensor:
        """ids: (B, T), the first of them at position `start` -> (B, T, D)."""
        d_model = self.table.embedding_dim
        x = self.table(ids) * math.sqrt(d_model)
        p = self._sinusoids(start, ids.size(1), x)[None]  # (1, T, D)
        for modifier, state in active:
            x, p = modifier.tokens(state, x), modifier.positions(state, p)
        x = F.dropout(x + p.to(x.dtype), self.dropout, self.training)
        for modifier, state in active:
            x = modifier.inputs(state, x)
        return x

    def _sinusoids(self, start: int, n: int, like: Tensor) -> Tensor:
        end, d_model = start + n, like.size(-1)
        if self.positions == "none":
            return like.new_zeros(n, d_model)
        if self._known.size(0) < end or self._known.device != like.device:
            room = max(256, 1 << (end - 1).bit_length())
            with torch.inference_mode(False):  # training may use them after a search did
                self._known = sinusoid(torch.arange(room, device=like.device), d_model)
        return self._known[start:end]
