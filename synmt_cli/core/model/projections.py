"""Projections that are faster than nn.Linear where weights no longer change: for translating.

Single precision: oneDNN keeps the weights in the order in which it multiplies, where torch's own
product brings them into order each time; with the few rows of a decoding step that is half of it.

8-bit integers:

    y = s_x (round(x / s_x) . round(W / s_W)) s_W + b        |x / s_x|, |W / s_W| <= 127

Each output has a scale s_W of its own, made once, and each token a scale s_x, made when it is
met: so what a sentence becomes does not depend on the sentences beside it. Sums are exact, in
32-bit integers. Attention, sums and normalisation stay in single precision.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from synmt_cli.core.model.transformer import Transformer

LARGEST = 127.0
ROWS = 64  # for which oneDNN chooses the order; it may be any number later


class Packed(nn.Module):
    """weight: (out, in); bias: (out,) or None."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        super().__init__()
        with torch.no_grad():
            self._weight = torch.ops.mkldnn._reorder_linear_weight(weight.detach(), ROWS)
        self._bias = None if bias is None else bias.detach()

    def forward(self, x: Tensor) -> Tensor:
        """(..., in) -> (..., out)."""
        rows = x.flatten(0, -2).contiguous()
        y = torch.ops.mkldnn._linear_pointwise(rows, self._weight, self._bias, "none", [], "")
        return y.unflatten(0, x.shape[:-1])


class Int8(nn.Module):
    """weight: (out, in); bias: (out,) or None."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        super().__init__()
        scale, rounded = _rounded(weight.detach())
        self._weight, self._scale = rounded.T, scale[:, 0]
        self._bias = None if bias is None else bias.detach()

    def forward(self, x: Tensor) -> Tensor:
        """(..., in) -> (..., out)."""
        scale, rounded = _rounded(x.flatten(0, -2))
        y = torch._int_mm(rounded, self._weight) * self._scale
        y = y.mul_(scale) if self._bias is None else torch.addcmul(self._bias, y, scale, out=y)
        return y.unflatten(0, x.shape[:-1])


def _rounded(x: Tensor) -> tuple[Tensor, Tensor]:
    """(N, D) -> the scale of each row, (N, 1), and the row as integers."""
    scale = x.abs().amax(-1, keepdim=True).div_(LARGEST).clamp_min_(torch.finfo(x.dtype).tiny)
    return scale, (x / scale).round_().to(torch.int8)


def hasten(model: Transformer, precision: str) -> None:
    """Gives all layers and the output such projections, for inference on a CPU.

    precision: `fp32` or `int8`. Without oneDNN fp32 stays as it is. What modifiers multiply
    with stays as it is, too.
    """
    if precision == "fp32" and not torch.backends.mkldnn.is_available():
        return
    make: Callable[[Tensor, Tensor | None], nn.Module] = Int8 if precision == "int8" else Packed
    for stack in (model.encoder, model.decoder):
        for name, module in list(stack.layers.named_modules()):
            if isinstance(module, nn.Linear):
                path, _, last = name.rpartition(".")
                setattr(stack.layers.get_submodule(path), last, make(module.weight, module.bias))
    model.project = make(model.output.weight, None)
