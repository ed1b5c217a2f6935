"""Tokens that are drawn from the model's distribution, instead of searched for.

A token w that may come next is drawn with probability

    P(w)^(1 / T) / sum of P(w')^(1 / T)

where the sum is over all such tokens, or over the K most probable ones (Fan et al. 2018). With all
of them and T = 1 a translation has the probability that the model gives it, except that tokens
which may not come next are left out.

The draws for a translation depend only on the seed and on the name of its source, so other
sources in the batch, and the number of processes, change nothing but the rounding of products.
"""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

import torch
from torch import Tensor

from synmt_cli.core.decoding.top_k import top


@dataclass(frozen=True, slots=True)
class Sampling:
    """How tokens are drawn. n_best: K, from how many of the most probable ones; 0 means all.

    temperature: T, above 0. Below 1 it makes probable tokens more probable.
    """

    n_best: int = 0
    temperature: float = 1.0
    seed: int = 1

    def __post_init__(self) -> None:
        """Raises ValueError."""
        if self.n_best < 0 or not self.temperature > 0:
            raise ValueError(f"no sampling has these: {self}")

    def points(self, name: str, draw: int) -> Callable[[], float]:
        """A function that returns numbers from [0, 1), for the tokens of one translation.

        name: of the source. draw: the number of the translation, if there are several.
        """
        return Random(f"synmt translate {self.seed} {draw} {name}").random

    def drawn(self, log_probs: Tensor, points: Tensor) -> Tensor:
        """The tokens at some points of their distributions, (...). NaN gives any token.

        log_probs: (..., V), -inf for tokens that may not come. points: (...), from [0, 1).
        """
        kept, tokens = log_probs, None
        if 0 < self.n_best < log_probs.size(-1):
            kept, tokens = top(log_probs, self.n_best)
        shares = (kept / self.temperature).softmax(-1).cumsum(-1, dtype=points.dtype)  # rising
        whole = shares[..., -1:]
        # Below the sum, whatever is rounded, so that no token without probability is drawn.
        at = torch.minimum(points[..., None] * whole, whole.nextafter(torch.zeros_like(whole)))
        found = torch.searchsorted(shares, at, right=True).clamp(max=kept.size(-1) - 1)
        return (found if tokens is None else tokens.gather(-1, found))[..., 0]
