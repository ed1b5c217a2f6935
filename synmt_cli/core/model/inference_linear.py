"""Linear layers for translating: they store weights in another form, and cannot be trained.

Packed, single precision: oneDNN keeps the weights in the order in which it multiplies, whereas
torch's own product reorders them at each call, which takes half of its time with the few rows
of a decoding step.

8-bit integers:

    y = s_x (round(x / s_x) . round(W / s_W)) s_W + b        |x / s_x|, |W / s_W| <= 127

Each output has its own scale s_W, made once, and each token its own scale s_x, made when it
arrives: so a translation does not depend on the other sentences of its batch. Sums are exact,
in 32-bit integers. Attention, sums and normalisation stay in single precision.

Half precision, on a GPU: scores of the next token stay in single precision, whose products are in
TF32 there. bf16 has 8 bits, so a score of 10 would be a multiple of 1/16.
"""

from collections.abc import Callable, Iterable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from synmt_cli.core.model.layers import FeedForward
from synmt_cli.core.model.transformer import Transformer

LARGEST = 127.0
ROWS = 64  # oneDNN orders the weights for so many; inputs may have any number


class PackedLinear(nn.Module):
    """Packed linear layer. weight: (out, in); bias: (out,) or None. rectified: followed by ReLU."""

    def __init__(self, weight: Tensor, bias: Tensor | None, rectified: bool = False) -> None:
        super().__init__()
        with torch.no_grad():
            self._weight = torch.ops.mkldnn._reorder_linear_weight(weight.detach(), ROWS)
        self._bias = None if bias is None else bias.detach()
        self._last = "relu" if rectified else "none"

    def forward(self, x: Tensor) -> Tensor:
        """(..., in) -> (..., out)."""
        flat = x.flatten(0, -2).contiguous()  # (N, in)
        y = torch.ops.mkldnn._linear_pointwise(flat, self._weight, self._bias, self._last, [], "")
        return y.unflatten(0, x.shape[:-1])


class Int8Linear(nn.Module):
    """8-bit linear layer. weight: (out, in); bias: (out,) or None. rectified: followed by ReLU."""

    def __init__(self, weight: Tensor, bias: Tensor | None, rectified: bool = False) -> None:
        super().__init__()
        self._rectified = rectified
        scale, quantized = _quantized(weight.detach())
        self._weight = quantized.T  # (in, out)
        self._scale = scale[:, 0]  # (out,)
        self._bias = None if bias is None else bias.detach()

    def forward(self, x: Tensor) -> Tensor:
        """(..., in) -> (..., out)."""
        scale, quantized = _quantized(x.flatten(0, -2))  # (N, 1), (N, in)
        y = torch._int_mm(quantized, self._weight) * self._scale  # (N, out)
        y = y.mul_(scale) if self._bias is None else torch.addcmul(self._bias, y, scale, out=y)
        y = y.relu_() if self._rectified else y
        return y.unflatten(0, x.shape[:-1])


class SingleLinear(nn.Module):
    """Linear in single precision, for inputs of any. weight: (out, in); bias: (out,) or None."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        super().__init__()
        self._weight = weight.detach().float()
        self._bias = None if bias is None else bias.detach().float()

    def forward(self, x: Tensor) -> Tensor:
        """(..., in) -> (..., out)."""
        return F.linear(x.float(), self._weight, self._bias)


def halve(model: Transformer, dtype: torch.dtype) -> None:
    """Converts a model to half precision, `dtype`, except for the scores of the next token."""
    output = SingleLinear(model.output.weight, model.output_bias)
    model.to(dtype)
    model.output_linear = output


def _quantized(x: Tensor) -> tuple[Tensor, Tensor]:
    """(N, D) -> the scale of each row, (N, 1), and the rows as integers."""
    scale = x.abs().amax(-1, keepdim=True).div_(LARGEST).clamp_min_(torch.finfo(x.dtype).tiny)
    return scale, (x / scale).round_().to(torch.int8)


def replace_linear_layers(model: Transformer, precision: str) -> None:
    """Replaces the linear layers of both stacks and the output, for inference on a CPU.

    precision: `fp32` or `int8`. Without oneDNN fp32 keeps nn.Linear. Modifiers keep theirs in
    any case.
    """
    replace_in_layers((*model.encoder.layers, *model.decoder.layers), precision)
    if make := _maker(precision):
        model.output_linear = make(model.output.weight, model.output_bias, False)


def replace_in_layers(layers: Iterable[nn.Module], precision: str) -> None:
    """Replaces the linear layers inside of some layers, as `replace_linear_layers` does."""
    make = _maker(precision)
    if make is None:
        return
    for layer in layers:
        for module in list(layer.modules()):
            if isinstance(module, FeedForward):
                wide: nn.Module = make(module.wide.weight, module.wide.bias, True)
                module.add_module("wide", wide)
                module.rectifier = nn.Identity()
        for name, module in list(layer.named_modules()):
            if isinstance(module, nn.Linear):
                parent, _, attribute = name.rpartition(".")
                own = make(module.weight, module.bias, False)
                setattr(layer.get_submodule(parent), attribute, own)


def _maker(precision: str) -> Callable[[Tensor, Tensor | None, bool], nn.Module] | None:
    """The class that replaces nn.Linear, or None if nn.Linear stays."""
    if precision == "int8":
        return Int8Linear
    return PackedLinear if torch.backends.mkldnn.is_available() else None
