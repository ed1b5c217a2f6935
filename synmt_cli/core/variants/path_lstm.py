"""An LSTM over many paths at once, in few launches, for GPUs.

    i, f, g, o = gates of x_t W + h_(t-1) U + b
    c_t = f c_(t-1) + i g,    h_t = o tanh(c_t)

A step is one product and one kernel for the rest, forward and backward; the products with x,
and the gradient of U, are computed once for all steps. A padded step comes after the last label
of its path, so its state belongs to no path, and its gradient is 0.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from synmt_cli.core.model.modifier import Paths

aten = torch.ops.aten
WITHOUT_KERNEL = ("cpu", "mps")  # devices on which the cell is composed of its parts


def side_by_side(cell: nn.LSTMCell, x: Tensor, paths: Paths) -> Tensor:
    """The state after each path, (P, D); 0 for the empty one. x: (P, D), last labels' embeddings.

    In the precision of the weights, whatever autocast says: there are few paths.
    """
    with torch.autocast(x.device.type, enabled=False):
        bias = cell.bias_ih + cell.bias_hh  # (4 D,)
        gates = F.embedding(paths.whole, F.linear(x.to(bias.dtype), cell.weight_ih, bias))
        hidden: Tensor = _Steps.apply(gates, cell.weight_hh)  # (N + 1, L, D)
        return F.embedding(paths.places, hidden.flatten(0, 1))  # (P, D)


class _Steps(torch.autograd.Function):
    """gates: (N, L, 4 D), x W + b; weight: U, (4 D, D) -> h_0 = 0, h_1, ..., (N + 1, L, D)."""

    @staticmethod
    def forward(ctx: Any, gates: Tensor, weight: Tensor) -> Tensor:
        start = gates.new_zeros(gates.size(1), weight.size(1))  # (L, D)
        hidden, cells, kept = [start], [start], []
        for own in gates:
            h, c, used = pointwise(own, hidden[-1] @ weight.T, cells[-1])
            hidden.append(h)
            cells.append(c)
            kept.append(used)
        ctx.save_for_backward(weight, *hidden[:-1], *cells, *kept)
        return torch.stack(hidden)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor]:
        weight, *saved = ctx.saved_tensors
        d_hidden = gradients[0]  # (N + 1, L, D)
        n = len(d_hidden) - 1
        hidden, cells, kept = saved[:n], saved[n : 2 * n + 1], saved[2 * n + 1 :]
        d_h, d_c, steps = d_hidden[n], None, []
        for t in range(n - 1, -1, -1):
            d_gates, d_c = pointwise_backward(d_h, d_c, cells[t], cells[t + 1], kept[t])
            steps.append(d_gates)
            d_h = torch.addmm(d_hidden[t], d_gates, weight)
        d_all = torch.stack(steps[::-1])  # (N, L, 4 D)
        return d_all, d_all.flatten(0, 1).T @ torch.cat(hidden)


def pointwise(x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The gates' two terms, (L, 4 D), and the cell, (L, D) -> h, c, and what backward needs."""
    if x.device.type not in WITHOUT_KERNEL:
        return aten._thnn_fused_lstm_cell(x, h, c)
    i, f, g, o = (x + h).chunk(4, 1)
    i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
    c = f * c + i * g
    return o * c.tanh(), c, torch.cat((i, f, g, o), 1)


def pointwise_backward(
    d_h: Tensor, d_c: Tensor | None, before: Tensor, after: Tensor, kept: Tensor
) -> tuple[Tensor, Tensor]:
    """The gradients of the gates, (L, 4 D), and of the previous cell, (L, D)."""
    if d_h.device.type not in WITHOUT_KERNEL:
        found = aten._thnn_fused_lstm_cell_backward_impl(d_h, d_c, before, after, kept, False)
        return found[0], found[1]
    i, f, g, o = kept.chunk(4, 1)
    t = after.tanh()
    d_o, d_cell = d_h * t, d_h * o * (1 - t * t)
    d_cell = d_cell if d_c is None else d_cell + d_c
    parts = d_cell * g * i * (1 - i), d_cell * before * f * (1 - f), d_cell * i * (1 - g * g)
    return torch.cat((*parts, d_o * o * (1 - o)), 1), d_cell * f
