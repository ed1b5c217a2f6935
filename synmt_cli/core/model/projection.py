"""Linear layers whose products, in bf16 on a CPU, have few different shapes.

oneDNN writes a kernel for each shape that it multiplies, which can take as long as seven products
of a small model, and the number of tokens differs from batch to batch. So rows of zeros are added,
up to a number that many batches share. They add nothing to the gradients of the weights.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def rounded(n: int) -> int:
    """n rounded up, by at most n / 16 + 16, to a multiple of 16 and of 2^floor(log2 n) / 16.

    >>> [rounded(n) for n in (0, 1, 16, 17, 255, 257, 1000, 1030)]
    [0, 16, 16, 32, 256, 272, 1024, 1088]
    """
    step = max(16, 1 << max(n.bit_length() - 5, 0))
    return -(-n // step) * step


def with_zeros(x: Tensor, n_rows: int, dtype: torch.dtype) -> Tensor:
    """x with rows of zeros after its own, (N, D) -> (n_rows, D)."""
    if x.dtype == dtype and x.size(0) == n_rows and x.is_contiguous():
        return x
    made = x.new_empty(n_rows, x.size(1), dtype=dtype)
    made[: x.size(0)] = x
    if n_rows > x.size(0):
        made[x.size(0) :] = 0
    return made


class _Product(torch.autograd.Function):
    """x W^T + b for x: (N, in), W: (out, in), b: (out,) or None, in the precision of autocast."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        dtype = torch.get_autocast_dtype("cpu")
        rows, own = with_zeros(x, rounded(x.size(0)), dtype), weight.to(dtype)
        ctx.save_for_backward(rows, own)
        ctx.dtypes = x.dtype, weight.dtype, None if bias is None else bias.dtype
        return F.linear(rows, own, None if bias is None else bias.to(dtype))[: x.size(0)]

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        rows, weight = ctx.saved_tensors
        of_x, of_weight, of_bias = ctx.dtypes
        gradient = with_zeros(gradients[0], rows.size(0), rows.dtype)
        wanted_x, wanted_weight, _ = ctx.needs_input_grad
        return (
            (gradient @ weight)[: gradients[0].size(0)].to(of_x) if wanted_x else None,
            (gradient.T @ rows).to(of_weight) if wanted_weight else None,
            None if of_bias is None else gradient.sum(0, dtype=of_bias),
        )


def product(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Like F.linear: (..., in) -> (..., out)."""
    is_cpu = x.device.type == "cpu" and torch.is_autocast_enabled("cpu")
    if not is_cpu or torch.compiler.is_compiling():
        return F.linear(x, weight, bias)
    y: Tensor = _Product.apply(x.flatten(0, -2), weight, bias)
    return y.unflatten(0, x.shape[:-1])


class Projection(nn.Linear):
    """An nn.Linear whose products have few shapes where that is faster."""

    def forward(self, x: Tensor) -> Tensor:
        """(..., in) -> (..., out)."""
        return product(x, self.weight, self.bias)


def projection(d_in: int, *d_out: int) -> Projection:
    """One matrix product for several projections, each initialised as if it stood alone."""
    linear = Projection(d_in, sum(d_out))
    for part in linear.weight.data.split(d_out):
        nn.init.xavier_uniform_(part)
    nn.init.zeros_(linear.bias)
    return linear
