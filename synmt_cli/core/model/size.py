"""The shape of a Transformer."""

from dataclasses import dataclass
from typing import Annotated, Literal

from synmt_cli.core.options import Bounds

RATE = Bounds(0, 1)
Positions = Literal["sinusoid", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """Sizes and switches of both stacks. The defaults are Transformer base."""

    d_model: Annotated[int, "width of the residual stream", Bounds(2, 2**16)] = 512
    d_ff: Annotated[int, "width of the feed-forward layers", Bounds(1, 2**17)] = 2048
    n_heads: Annotated[int, "attention heads of a layer", Bounds(1, 1024)] = 8
    encoder_layers: Annotated[int, "layers of the encoder", Bounds(1, 512)] = 6
    decoder_layers: Annotated[int, "layers of the decoder", Bounds(1, 512)] = 6
    dropout: Annotated[float, "dropout on embeddings and residual branches", RATE] = 0.1
    attention_dropout: Annotated[float, "dropout on attention weights", RATE] = 0.0
    activation_dropout: Annotated[float, "dropout inside the feed-forward layers", RATE] = 0.0
    norm: Annotated[
        Literal["post", "pre"],
        "layer normalisation after each residual sum (post, as in the paper) or before each "
        "sub-layer (pre)",
    ] = "post"
    tied: Annotated[
        Literal["all", "decoder", "none"],
        "which of source embedding, target embedding and output projection are one matrix; "
        "decoder: the last two",
    ] = "all"
    positions: Annotated[Positions, "absolute positions of the encoder"] = "sinusoid"
    decoder_positions: Annotated[Positions, "absolute positions of the decoder"] = "sinusoid"

    def __post_init__(self) -> None:
        """Raises ValueError unless n_heads divides d_model and d_model is even."""
        if self.d_model % self.n_heads:
            raise ValueError(f"n_heads = {self.n_heads} does not divide d_model = {self.d_model}")
        if self.d_model % 2:
            raise ValueError(f"d_model = {self.d_model} must be even for the sinusoids")

    @property
    def d_head(self) -> int:
        """The width of one attention head."""
        return self.d_model // self.n_heads
