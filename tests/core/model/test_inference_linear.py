"""Linear layers for translating: the same numbers, or as near as 8 bits allow."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from synmt_cli.core.model.inference_linear import (
    Int8Linear,
    PackedLinear,
    halve,
    replace_linear_layers,
)
from synmt_cli.core.model.modifier import Side
from synmt_cli.core.model.size import Size
from synmt_cli.core.model.transformer import Transformer

SIZE = Size(d_model=32, d_ff=64, n_heads=4, encoder_layers=2, decoder_layers=2)


def products(kind, rows, bias=True):
    torch.manual_seed(0)
    linear, x = nn.Linear(24, 40, bias=bias), torch.randn(rows, 3, 24)
    with torch.inference_mode():
        return kind(linear.weight, linear.bias)(x), linear(x), x, linear


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("rows", [0, 1, 5, 70])
def test_packed_weights_give_the_same(rows, bias):
    found, expected, *_ = products(PackedLinear, rows, bias)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("bias", [True, False])
def test_eight_bits_are_the_formula(bias):
    found, _, x, linear = products(Int8Linear, 5, bias)
    x, w = x.double(), linear.weight.double()
    s_x = x.abs().amax(-1, keepdim=True) / 127
    s_w = w.abs().amax(-1, keepdim=True) / 127
    exact = (x / s_x).round() @ (w / s_w).round().T * s_x * s_w.T
    exact += linear.bias if bias else 0.0
    torch.testing.assert_close(found.double(), exact, rtol=1e-4, atol=1e-4)


def test_the_error_of_eight_bits_is_that_of_rounding():
    found, expected, x, linear = products(Int8Linear, 70)
    # Each factor is off by at most half a step: |dx| <= max|x| / 254, and the same for W.
    largest_x = x.abs().amax(-1, keepdim=True)
    bound = largest_x / 254 * linear.weight.abs().sum(-1)
    bound = bound + x.abs().sum(-1, keepdim=True) * linear.weight.abs().amax(-1) / 254
    assert ((found - expected).abs() <= 1.01 * bound + 1e-4).all()


def test_a_row_of_zeros_stays_the_bias():
    linear = nn.Linear(8, 3)
    with torch.inference_mode():
        found = Int8Linear(linear.weight, linear.bias)(torch.zeros(2, 8))
    torch.testing.assert_close(found, linear.bias.expand(2, 3).detach())


def test_other_rows_change_nothing_in_eight_bits():
    found, _, x, linear = products(Int8Linear, 70)
    with torch.inference_mode():
        alone = Int8Linear(linear.weight, linear.bias)(x[3:4])
    assert torch.equal(alone[0], found[3])


@pytest.mark.parametrize(("precision", "tolerance"), [("fp32", 1e-4), ("int8", 0.1)])
def test_such_a_model_gives_nearly_the_same(precision, tolerance):
    torch.manual_seed(1)
    model = Transformer(SIZE, 50, 50).eval()
    source, target = torch.randint(4, 50, (3, 6)), torch.randint(4, 50, (3, 5))

    def logits():
        with torch.inference_mode():
            states, _ = model.decode(Side(target), model.encode(Side(source)))
            return model.logits(states)

    before = logits()
    replace_linear_layers(model, precision)
    assert not any(isinstance(m, nn.Linear) for m in model.decoder.layers.modules())
    assert (logits() - before).abs().max() < tolerance * before.std()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("tied", ["all", "none"])
def test_half_precision_rounds_states_and_not_scores(dtype, tied):
    torch.manual_seed(0)
    model = Transformer(replace(SIZE, tied=tied), 50, 50)
    model.output_bias = torch.randn(50)
    weight, bias = model.output.weight.detach().clone(), model.output_bias.clone()
    halve(model, dtype)
    memory = model.encode(Side(torch.tensor([[4, 7, 3]])))
    states, _ = model.decode(Side(torch.tensor([[2, 9, 5]])), memory)
    assert states.dtype == memory.states.dtype == dtype
    found = model.logits(states)
    assert found.dtype == torch.float32
    expected = states.double() @ weight.double().T + bias.double()
    torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_a_decoder_that_rereads_may_have_half_precision(dtype):
    """Its last layer computes the wanted rows alone, in another order of products."""
    torch.manual_seed(0)
    model = Transformer(SIZE, 50, 50, rereads=True).eval()
    source, target = Side(torch.randint(5, 50, (2, 6))), Side(torch.randint(5, 50, (2, 5)))
    with torch.inference_mode():
        expected, _ = model.decode(target, model.encode(source), (5, 4))
        halve(model, dtype)
        found, _ = model.decode(target, model.encode(source), (5, 4))
    assert found.dtype == dtype
    assert (found.float() - expected).abs().max() < 0.05
