"""Label-smoothed cross-entropy of large vocabularies without a (tokens x vocabulary) tensor.

    L = sum_t w_t ((1 - eps_t) (lse_t - z_t,y) + eps_t (lse_t - mean_v z_tv))
                                                                        Szegedy et al. (2016)

w is 1 and eps one number, but arcs of trees among the targets may have a weight and a smoothing of
their own. The smoothing mass is spread over the whole vocabulary, as in torch's cross_entropy.
Logits are computed a block of tokens at a time, and their gradient at once from them, so that each
logit is visited while it is still in the cache. The gradients of some blocks are kept until their
products are computed: with few tokens at a time, adding up the matrix of the projection would take
longer than multiplying.
"""

import functools
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

from synmt_cli.core.model.projection import rounded, with_zeros
from synmt_cli.core.model.transformer import GPU_LOGITS, Transformer
from synmt_cli.core.run.config import Training

BLOCK = 2**19  # logits computed at a time; 2 MB in single precision stay in a core's cache
GROUP = 2**22  # logits whose gradients are kept


class Losses(NamedTuple):
    """Sums over tokens. smoothed: the loss to train on. nll: the nats, without a gradient."""

    smoothed: Tensor
    nll: Tensor


class ArcLoss(NamedTuple):
    """How the loss of a target differs where it is an arc.

    is_arc: (V,) bool, which ids are arcs. bias: (V,), added to the logits whose nats are counted,
    as `Transformer.correct_for` makes it.
    """

    is_arc: Tensor
    weight: float
    smoothing: float
    bias: Tensor | None = None

    def of(self, target: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
        """target: (N, 1) ids -> the weight and the smoothing of each, (N, 1)."""
        is_arc = self.is_arc[target]
        weight = torch.where(is_arc, self.weight, 1.0)
        return weight, torch.where(is_arc, self.smoothing, smoothing)

    def correction(self, p: Tensor, target: Tensor) -> Tensor | float:
        """p: (N, V), without the bias; target: (N, 1) ids -> nats that the bias adds, (N, 1)."""
        if self.bias is None:
            return 0.0
        with torch.autocast(p.device.type, enabled=False):
            total = p @ self.bias.exp()  # (N,)
        return total.log()[:, None] - self.bias[target]


def arc_loss(model: Transformer, settings: Training) -> ArcLoss | None:
    """How arcs count in the loss of a model that `building.build` made; None if it writes no trees.

    Its tensors are on the device of the model.
    """
    if model.grammar is None:
        return None
    is_arc = torch.from_numpy(model.grammar.is_arc).to(model.output.weight.device)
    weight, smoothing = settings.transition_weight, settings.transition_smoothing
    return ArcLoss(is_arc, weight, smoothing, model.output_bias)


def cross_entropy(
    states: Tensor,
    output: Tensor,
    target: Tensor,
    smoothing: float,
    rows: Tensor | None = None,
    arcs: ArcLoss | None = None,
) -> Losses:
    """states: (N, D); output: (V, D), the projection; target: (N,) ids -> sums over N.

    rows: (N,), which of the states count, if there are more, each at most once. arcs: None where
    targets have no arcs, or arcs count like other tokens.
    """
    return Losses(*_CrossEntropy.apply(states, output, target, smoothing, rows, arcs))


def _factors(states: Tensor, output: Tensor, rows: Tensor | None) -> tuple[Tensor, Tensor]:
    """States and output in autocast's precision, whose product gives logits: (N, D) and (V, D)."""
    device, dtype = states.device.type, states.dtype
    if torch.is_autocast_enabled(device):
        dtype = torch.get_autocast_dtype(device)
    x = states if rows is None else states.index_select(0, rows)
    return x.to(dtype), output.to(dtype)


def _at_once(output: Tensor, n_logits: int) -> int:
    """How many states make so many logits, or GPU_LOGITS on a GPU; at least one. output: (V, D)."""
    most = n_logits if output.device.type == "cpu" else GPU_LOGITS
    return max(1, most // output.size(0))


def _blocks(n: int, size: int) -> Iterator[slice]:
    """Yields slices of n rows, of `size` each but the last."""
    for begin in range(0, n, size):
        yield slice(begin, min(begin + size, n))


@functools.cache
def _made(number: float, device: torch.device) -> Tensor:
    """The number as a tensor, made once, on the device: the host would wait for a copy to it."""
    with torch.inference_mode(False):
        return torch.full((), number, dtype=torch.float32, device=device)


def _block_losses(
    z: Tensor, y: Tensor, smoothing: float, arcs: ArcLoss | None, d_z: Tensor | None
) -> Losses:
    """The sums over some tokens. z: (N, V), logits; y: (N, 1), targets.

    d_z: (N', V), takes the gradient and zeros after it.
    """
    p = z.softmax(-1)
    # log sum exp z = z_i - log p_i for any i. The largest p is at least 1 / V.
    lse = z.amax(-1, keepdim=True) - p.amax(-1, keepdim=True).log()
    own = lse - z.gather(1, y)  # (N, 1)
    nll = (own + arcs.correction(p, y) if arcs else own).sum()
    weight, eps = arcs.of(y, smoothing) if arcs else (1.0, _made(smoothing, own.device))
    spread = lse - z.mean(-1, keepdim=True)
    smoothed = (weight * own.lerp(spread, eps)).sum()
    if d_z is not None:
        gradient = p
        if smoothing or arcs:
            gradient -= eps / z.size(1)
        gradient.scatter_add_(1, y, (eps - 1).expand_as(own))
        if arcs:
            gradient *= weight
        d_z[: y.size(0)] = gradient
        if d_z.size(0) > y.size(0):
            d_z[y.size(0) :] = 0
    return Losses(smoothed, nll)


class _CrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        states: Tensor,
        output: Tensor,
        target: Tensor,
        smoothing: float,
        rows: Tensor | None,
        arcs: ArcLoss | None,
    ) -> tuple[Tensor, Tensor]:
        ctx.n_states, ctx.rows = states.size(0), rows
        x, w = _factors(states, output, rows)  # (N, D), (V, D)
        n = x.size(0)
        if x.device.type == "cpu" and x.dtype != torch.float32:
            x = with_zeros(x, rounded(n), x.dtype)  # (N', D), see model/projection.py
        kept = d_states = d_output = None
        if any(ctx.needs_input_grad):
            n_kept = min(x.size(0), _at_once(w, GROUP))
            kept = x.new_empty(n_kept, w.size(0))  # gradients of logits
            d_states = torch.empty_like(x)
            d_output = torch.zeros_like(output, dtype=torch.float32)
        smoothed = x.new_zeros((), dtype=torch.float32)
        nll = x.new_zeros((), dtype=torch.float32)
        for group in _blocks(x.size(0), _at_once(w, GROUP)):
            own_x, own_y = x[group], target[group]
            for block in _blocks(own_x.size(0), _at_once(w, BLOCK)):
                y = own_y[block, None]  # fewer than in own_x[block] at the end
                z = (own_x[block] @ w.T)[: y.size(0)].float()  # (block, V)
                d_z = None if kept is None else kept[block]
                own = _block_losses(z, y, smoothing, arcs, d_z)
                smoothed += own.smoothed
                nll += own.nll
            if kept is None or d_states is None or d_output is None:
                continue
            d_z = kept[: own_x.size(0)]
            torch.mm(d_z, w, out=d_states[group])
            if x.dtype == torch.float32:
                d_output.addmm_(d_z.T, own_x)
            else:
                d_output += d_z.T @ own_x
        d_states = None if d_states is None else d_states[:n]
        ctx.save_for_backward(d_states, d_output)
        ctx.dtypes = states.dtype, output.dtype
        ctx.mark_non_differentiable(nll)
        return smoothed, nll

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        d_states, d_output = ctx.saved_tensors
        states, output = ctx.dtypes
        scale = gradients[0]
        d_states, d_output = (d_states * scale).to(states), (d_output * scale).to(output)
        if ctx.rows is not None:
            picked = d_states  # (N, D)
            d_states = picked.new_zeros(ctx.n_states, picked.size(1))
            d_states.index_copy_(0, ctx.rows, picked)
        return d_states, d_output, None, None, None, None
