"""The stack that a variant's builder changes."""

from dataclasses import dataclass
from typing import Literal

from synmt_cli.core.model.size import Size


@dataclass(frozen=True, slots=True)
class StackSpec:
    """The size and the labels of one stack.

    size: the model's. n_layers: of this stack. n_labels: how many dependency labels its input
    may have, numbered from 1: those of the training records, or in a decoder those of the
    transitions.
    """

    size: Size
    n_layers: int
    n_labels: int = 0
    stack: Literal["encoder", "decoder"] = "encoder"
