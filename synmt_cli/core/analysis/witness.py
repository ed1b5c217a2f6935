"""Shows what happens inside attention, without changing it or the model's code.

A Witness is a modifier in every layer; one stands before the model's own modifiers, or before one
of them, and one after. So they see the scores before and after they are modified, and the weights.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from synmt_cli.core.model.attention import CrossAttention, SelfAttention, masked, split_heads
from synmt_cli.core.model.layers import Stack
from synmt_cli.core.model.modifier import Active, Modifier, Site

See = Callable[[int, Tensor], None]  # layer, (B, H, Tq, T)


def ignore(layer: int, values: Tensor) -> None:
    """Does nothing."""


class Witness(Modifier):
    """Shows the scores and the weights that reach it. see_scores, see_weights: See."""

    name = "witness"

    def __init__(self, n_layers: int, see_scores: See = ignore, see_weights: See = ignore) -> None:
        super().__init__(range(n_layers))
        self.see_scores = see_scores
        self.see_weights = see_weights

    def scores(self, state: Any, site: Site, scores: Tensor) -> Tensor:
        """The same scores."""
        self.see_scores(site.layer, scores)
        return scores

    def context(self, state: Any, site: Site, weights: Tensor, context: Tensor) -> Tensor:
        """The same context."""
        self.see_weights(site.layer, weights)
        return context


@contextmanager
def witnessed(
    stack: Stack, before: See = ignore, after: See = ignore, see_weights: See = ignore
) -> Iterator[None]:
    """Inside, shows the scores before and after a stack's modifiers, and the weights."""
    n_layers = len(stack.layers)
    first, last = Witness(n_layers, before), Witness(n_layers, after, see_weights)
    with _joined_by(stack, lambda active: [Active(first, None), *active, Active(last, None)]):
        yield


@contextmanager
def witnessed_at(
    stack: Stack, is_meant: Callable[[Modifier], bool], before: See, after: See
) -> Iterator[None]:
    """Inside, shows the scores before and after each modifier that is meant, one after another."""
    n_layers = len(stack.layers)
    first, last = Active(Witness(n_layers, before), None), Active(Witness(n_layers, after), None)

    def join(active: Sequence[Active]) -> list[Active]:
        runs = ([first, one, last] if is_meant(one.modifier) else [one] for one in active)
        return [one for run in runs for one in run]

    with _joined_by(stack, join):
        yield


@contextmanager
def _joined_by(
    stack: Stack, join: Callable[[Sequence[Active]], Sequence[Active]]
) -> Iterator[None]:
    """Inside, self-attention has the modifiers that `join` makes of those of its layer."""

    def before(attention: nn.Module, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        x, allowed, causal, active = arguments
        if causal:
            allowed = torch.ones(2 * x.shape[1:2], dtype=torch.bool, device=x.device).tril()
        return x, allowed, False, join(active)

    with ExitStack() as handles:
        for attention in (m for m in stack.modules() if isinstance(m, SelfAttention)):
            handles.callback(attention.register_forward_pre_hook(before).remove)
        yield


@contextmanager
def witnessed_across(stack: Stack, see_weights: See) -> Iterator[None]:
    """Inside, shows the weights of attention to the source."""

    def show(layer: int) -> Callable[[nn.Module, tuple[Any, ...]], None]:
        def before(attention: nn.Module, arguments: tuple[Any, ...]) -> None:
            assert isinstance(attention, CrossAttention)
            x, k, _, allowed = arguments
            q = split_heads(attention.q(x), attention.n_heads)  # (B, H, T, d_head)
            scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))  # (B, H, T, S)
            see_weights(layer, masked(scores, allowed).softmax(-1))

        return before

    attentions = [m for m in stack.modules() if isinstance(m, CrossAttention)]
    with ExitStack() as handles:
        for layer, attention in enumerate(attentions):
            handles.callback(attention.register_forward_pre_hook(show(layer)).remove)
        yield
