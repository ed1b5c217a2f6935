"""The events of training, as the loop yields them."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Report:
    """Means since the last report, in nats per target token.

    loss: of translation, smoothed; nll: not smoothed; losses: the modifiers', by variant.
    gradient_norm: mean over the updates, before clipping, 0 for one that fp16 loses. lr: of the
    last update.
    """

    step: int
    epoch: int
    loss: float
    nll: float
    losses: dict[str, float]
    gradient_norm: float
    lr: float
    tokens_per_second: float


@dataclass(frozen=True, slots=True)
class Pulse:
    """The present state of training. nll: mean since the last report, in nats per target token.

    On a GPU it is as of the last report, and NaN before there is one. doing: "" in updates.
    """

    step: int
    epoch: int
    nll: float
    tokens_per_second: float
    doing: str = ""


def perplexity_of(nll: float) -> float:
    """The perplexity of a mean in nats per token, at most e^700, which a float can hold."""
    return math.exp(min(nll, 700))


@dataclass(frozen=True, slots=True)
class TokenFigures:
    """Figures of some target tokens of dev, given the tokens before them. nll: nats per token.

    nll_per_sentence: nats per sentence. accuracy: percent that are guessed right.
    """

    tokens: int
    nll: float
    perplexity: float
    nll_per_sentence: float
    accuracy: float

    @classmethod
    def of(cls, n_tokens: int, nll: float, n_right: int, n_sentences: int) -> TokenFigures:
        """nll: the sum. n_sentences: at least 1. Without tokens, nll and accuracy are 0."""
        n = max(n_tokens, 1)
        mean = nll / n
        right = 100 * n_right / n
        return cls(n_tokens, mean, perplexity_of(mean), nll / n_sentences, right)


@dataclass(frozen=True, slots=True)
class Validated:
    """A validation. nll: nats per token. metric: as in Training. value: larger is better.

    all, words, arcs: of all tokens and, where targets are trees, of both kinds; `<+>` and the end
    count as words. closed: how many greedy translations ended before their tree was whole, where
    BLEU is the metric.
    """

    step: int
    epoch: int
    nll: float
    perplexity: float
    metric: str
    value: float
    best: bool
    all: TokenFigures | None = None
    words: TokenFigures | None = None
    arcs: TokenFigures | None = None
    closed: int | None = None


@dataclass(frozen=True, slots=True)
class Saved:
    """A checkpoint was written."""

    step: int


@dataclass(frozen=True, slots=True)
class Restored:
    """The best model was lost, and was written again. step: that of its checkpoint."""

    step: int


@dataclass(frozen=True, slots=True)
class Ended:
    """Training is over (`finished`) or was stopped and can be resumed."""

    step: int
    reason: str
    finished: bool


Event = Report | Validated | Saved | Restored | Ended
