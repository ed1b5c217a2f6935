import pytest
import torch
import torch.nn.functional as F
from torch.utils._python_dispatch import TorchDispatchMode

from synmt_cli.core.model.projection import Projection, product, projection, rounded

IN, OUT = 12, 20


class Shapes(TorchDispatchMode):
    """Collects the shapes of matrix products."""

    def __init__(self):
        super().__init__()
        self.found = set()

    def __torch_dispatch__(self, op, types, args=(), kwargs=None):
        if op.overloadpacket in (torch.ops.aten.mm, torch.ops.aten.addmm):
            self.found.add(tuple(tuple(x.shape) for x in args[-2:]))
        return op(*args, **(kwargs or {}))


def linear(bias=True):
    torch.manual_seed(1)
    made = projection(IN, OUT)
    if not bias:
        made.register_parameter("bias", None)
    return made


def gradients(y, *inputs):
    torch.manual_seed(2)
    return torch.autograd.grad((y.float() * torch.randn(y.shape)).sum(), inputs)


@pytest.mark.parametrize("n", [1, 2, 16, 17, 50])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("bias", [True, False])
def test_in_bf16_it_is_the_product_of_rounded_numbers(n, dtype, bias):
    layer, x = linear(bias), torch.randn(2, n, IN).to(dtype).requires_grad_()
    with torch.autocast("cpu", torch.bfloat16):
        y = layer(x)
    short = [t.bfloat16().double() for t in (x, *layer.parameters())]
    exact = F.linear(*short)
    assert y.dtype == torch.bfloat16
    assert y.shape == exact.shape
    torch.testing.assert_close(y.double(), exact, rtol=1e-2, atol=1e-2)
    got, want = gradients(y, x, *layer.parameters()), gradients(exact, *short)
    assert [g.dtype for g in got] == [dtype, *(p.dtype for p in layer.parameters())]
    for g, w in zip(got, want, strict=True):
        torch.testing.assert_close(g.double(), w.double(), rtol=2e-2, atol=5e-2)


def test_rows_do_not_know_of_each_other():
    layer, x = linear(), torch.randn(37, IN)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(layer(x)[:5], layer(x[:5]))


def test_without_autocast_it_is_the_linear_layer_of_torch():
    layer, x = linear(), torch.randn(3, 5, IN)
    assert torch.equal(layer(x), F.linear(x, layer.weight, layer.bias))
    assert isinstance(layer, Projection)


def test_batches_of_any_size_share_few_shapes():
    layer = linear()
    with Shapes() as shapes, torch.autocast("cpu", torch.bfloat16):
        for n in range(1, 257):
            product(torch.randn(n, IN, requires_grad=True), layer.weight).float().sum().backward()
    assert len(shapes.found) == 3 * 256 / 16  # forward, and the gradients of both factors


def test_rounding_costs_a_sixteenth_at_most():
    for n in range(1, 20_000):
        assert n <= rounded(n) <= n + max(n / 16, 15) + 1
        assert rounded(rounded(n)) == rounded(n)
    assert len({rounded(n) for n in range(2**10, 2**14)}) < 4 * 16 + 2


def test_a_frozen_weight_has_no_gradient():
    layer, x = linear(), torch.randn(5, IN, requires_grad=True)
    layer.weight.requires_grad_(False)
    with torch.autocast("cpu", torch.bfloat16):
        layer(x).float().sum().backward()
    assert layer.weight.grad is None
    assert x.grad is not None
