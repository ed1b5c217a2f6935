"""Looks into attention without changing it, and without the model knowing.

A Witness acts like a variant, before and behind those that the model has, in every layer.
So it sees scores before and after they are modified, and the weights.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn

from synmt_cli.core.model.attention import CrossAttention, SelfAttention, masked, split_heads
from synmt_cli.core.model.layers import Stack
from synmt_cli.core.model.modifier import Active, Modifier, Site

See = Callable[[int, Tensor], None]  # layer, (B, H, Tq, T)


def unseen(layer: int, values: Tensor) -> None:
    """Looks away."""


class Witness(Modifier):
    """Shows the scores and the weights that reach it. see_scores, see_weights: See."""

    name = "witness"

    def __init__(self, n_layers: int, see_scores: See = unseen, see_weights: See = unseen) -> None:
        super().__init__(range(n_layers))
        self.see_scores, self.see_weights = see_scores, see_weights

    def scores(self, state: Any, site: Site, scores: Tensor) -> Tensor:
        """The same scores."""
        self.see_scores(site.layer, scores)
        return scores

    def context(self, state: Any, site: Site, weights: Tensor, context: Tensor) -> Tensor:
        """The same context."""
        self.see_weights(site.layer, weights)
        return context


@contextmanager
def watched(stack: Stack, first: Witness, last: Witness) -> Iterator[None]:
    """Two witnesses around the modifiers of a stack, as long as it lasts."""

    def around(attention: nn.Module, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        x, allowed, causal, active = arguments
        return x, allowed, causal, [Active(first, None), *active, Active(last, None)]

    attentions = [m for m in stack.modules() if isinstance(m, SelfAttention)]
    handles = [attention.register_forward_pre_hook(around) for attention in attentions]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


@contextmanager
def watched_across(stack: Stack, see_weights: See) -> Iterator[None]:
    """Shows the weights of attention to the source, as long as it lasts."""

    def show(layer: int) -> Callable[[nn.Module, tuple[Any, ...]], None]:
        def before(attention: nn.Module, arguments: tuple[Any, ...]) -> None:
            assert isinstance(attention, CrossAttention)
            x, k, _, allowed = arguments
            q = split_heads(attention.q(x), attention.n_heads)
            scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))  # (B, H, T, S)
            see_weights(layer, masked(scores, allowed).softmax(-1))

        return before

    attentions = [m for m in stack.modules() if isinstance(m, CrossAttention)]
    handles = [a.register_forward_pre_hook(show(layer)) for layer, a in enumerate(attentions)]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
