"""Named settings: sizes for one's own data, and `paper-*`, rows of the papers' tables.

`tiny` was chosen on Multi30k's validation set for what one core learns in an hour: small
batches, and normalisation before the sub-layers, which learns several times faster early on.
"""

from __future__ import annotations

from typing import Any

from synmt_cli.core.run.paper_presets import PAPERS

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
    **PAPERS,
}
