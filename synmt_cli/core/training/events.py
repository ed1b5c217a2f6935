"""The events of training, as the loop yields them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Report:
    """Means since the last report, in nats per target token.

    loss: of translation, smoothed; nll: not smoothed; losses: the modifiers', by variant.
    """

    step: int
    epoch: int
    loss: float
    nll: float
    losses: dict[str, float]
    lr: float
    tokens_per_second: float


@dataclass(frozen=True, slots=True)
class Validated:
    """A validation. nll: nats per token. metric: as in Training. value: larger is better."""

    step: int
    epoch: int
    nll: float
    perplexity: float
    metric: str
    value: float
    best: bool


@dataclass(frozen=True, slots=True)
class Saved:
    """A checkpoint was written."""

    step: int


@dataclass(frozen=True, slots=True)
class Restored:
    """The best model was lost, and is written again. step: that of its checkpoint."""

    step: int


@dataclass(frozen=True, slots=True)
class Ended:
    """Training is over (`finished`) or was stopped and can be resumed."""

    step: int
    reason: str
    finished: bool


Event = Report | Validated | Saved | Restored | Ended
