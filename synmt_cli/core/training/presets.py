"""Named settings. `paper-pascal-*`: Bugliarello and Okazaki (2020), Table 2 and the text.

What the PASCAL paper does not print is as its published training scripts have it: Adam's
epsilon and the first learning rate. Its 32K-token batch is 16 devices times 2,048 tokens.
`tiny` was chosen on Multi30k's validation set for what one core learns in an hour: small
batches, and normalisation before the sub-layers, which learns several times faster early on.
"""

from __future__ import annotations

from typing import Any

Tables = dict[str, dict[str, Any]]

_SMALL_DATA: Tables = {"model": {"dropout": 0.3}, "training": {"max_steps": 20_000}}
_LARGE_DATA: Tables = {"model": {"dropout": 0.1}, "training": {"max_steps": 100_000}}


def _paper_pascal(scale: Tables, beta2: float, heads: int, ignore: float) -> dict[str, Any]:
    """A row of Table 2: Adam's beta_2, h_Pascal, q; the rest is the same in all rows."""
    return {
        "variant": "pascal",
        "model": scale["model"],
        "training": {
            "lr": 0.0007,
            "betas": (0.9, beta2),
            "eps": 1e-9,
            "warmup": 8000,
            "initial_lr": 1e-7,
            "batch_tokens": 2048,
            "accumulate": 16,
            "clip_norm": 0.0,
            "label_smoothing": 0.1,
            **scale["training"],
        },
        "pascal": {"heads": heads, "ignore": ignore},
    }


PRESETS: dict[str, dict[str, Any]] = {
    "tiny": {
        "model": {
            "d_model": 128,
            "d_ff": 256,
            "n_heads": 4,
            "encoder_layers": 4,
            "decoder_layers": 4,
            "dropout": 0.1,
            "norm": "pre",
        },
        "training": {
            "lr": 0.003,
            "warmup": 300,
            "batch_tokens": 1024,
            "max_steps": 12_000,
        },
    },
    "small": {
        "model": {
            "d_model": 256,
            "d_ff": 1024,
            "n_heads": 4,
            "encoder_layers": 3,
            "decoder_layers": 3,
            "dropout": 0.3,
        },
        "training": {"lr": 0.002, "warmup": 2000, "max_steps": 20_000},
    },
    "base": {"model": {}, "training": {}},
    "paper-pascal-nc11-en-de": _paper_pascal(_SMALL_DATA, 0.997, 2, 0.4),
    "paper-pascal-nc11-de-en": _paper_pascal(_SMALL_DATA, 0.997, 8, 0.0),
    "paper-pascal-wmt18-en-tr": _paper_pascal(_SMALL_DATA, 0.98, 7, 0.3),
    "paper-pascal-wmt16-en-de": _paper_pascal(_LARGE_DATA, 0.98, 5, 0.0),
    "paper-pascal-wmt17-en-de": _paper_pascal(_LARGE_DATA, 0.997, 7, 0.3),
    "paper-pascal-wat-en-ja": _paper_pascal(_LARGE_DATA, 0.997, 7, 0.0),
}
