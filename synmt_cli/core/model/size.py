"""The shape of a Transformer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from synmt_cli.core.options import bounded


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
    positions, decoder_positions: absolute positions of each stack, `sinusoid` or `none`.
    """

    d_model: int = bounded(512, 2, 2**16)
    d_ff: int = bounded(2048, 1, 2**17)
    n_heads: int = bounded(8, 1, 1024)
    encoder_layers: int = bounded(6, 1, 512)
    decoder_layers: int = bounded(6, 1, 512)
    dropout: float = bounded(0.1, 0, 1)
    attention_dropout: float = bounded(0.0, 0, 1)
    activation_dropout: float = bounded(0.0, 0, 1)
    norm: Literal["post", "pre"] = "post"
    tied: Literal["all", "decoder", "none"] = "all"
    positions: Literal["sinusoid", "none"] = "sinusoid"
    decoder_positions: Literal["sinusoid", "none"] = "sinusoid"

    def __post_init__(self) -> None:
        """Raises ValueError where two sizes do not go together."""
        if self.d_model % self.n_heads:
            raise ValueError(f"n_heads = {self.n_heads} does not divide d_model = {self.d_model}")
        if self.d_model % 2:
            raise ValueError(f"d_model = {self.d_model} must be even for the sinusoids")

    @property
    def d_head(self) -> int:
        """The width of one attention head."""
        return self.d_model // self.n_heads
