"""The shape of a Transformer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """Sizes and switches of both stacks. The defaults are Transformer base.

    d_model, d_ff: widths of the residual stream and of the feed-forward layers.
    dropout: on embeddings and residual branches; attention_dropout: on attention weights;
        activation_dropout: inside the feed-forward layers.
    norm: layer normalisation after each residual sum (`post`, as in the paper) or before
        each sub-layer (`pre`).
    tied: which of source embedding, target embedding and output projection are one matrix:
        `all`, `decoder` (the last two), `none`.
    positions: `sinusoid`, or `none` to leave absolute positions out.
    """

    d_model: int = 512
    d_ff: int = 2048
    n_heads: int = 8
    encoder_layers: int = 6
    decoder_layers: int = 6
    dropout: float = 0.1
    attention_dropout: float = 0.0
    activation_dropout: float = 0.0
    norm: Literal["post", "pre"] = "post"
    tied: Literal["all", "decoder", "none"] = "all"
    positions: Literal["sinusoid", "none"] = "sinusoid"

    @property
    def d_head(self) -> int:
        """The width of one attention head."""
        return self.d_model // self.n_heads
