"""What a variant's builder knows of the stack that it changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from synmt_cli.core.model.size import Size


@dataclass(frozen=True, slots=True)
class Setting:
    """size: the model's. n_layers: of this stack. n_labels: dependency labels that it may meet,

    numbered from 1: those of the training records, or in a decoder those of the transitions.
    stack: which.
    """

    size: Size
    n_layers: int
    n_labels: int = 0
    stack: Literal["encoder", "decoder"] = "encoder"
