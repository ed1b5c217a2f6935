"""Dropout: its rate, its scale, its gradient, and who draws."""

import pytest
import torch

from synmt_cli.core.model.dropout import LEVELS, dropout


@pytest.mark.parametrize("rate", [0.1, 0.3, 0.5, 0.9])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_elements_are_dropped_at_the_rate_and_the_mean_stays(rate, dtype):
    n = 200_000
    y = dropout(torch.ones(n // 10, 10, dtype=dtype), rate, True).float()
    spread = 5 * (rate * (1 - rate) / n) ** 0.5  # five standard errors
    assert abs((y == 0).float().mean().item() - rate) < spread
    nearest = torch.tensor(LEVELS / (LEVELS - round(rate * LEVELS)), dtype=dtype)
    assert y.unique().tolist() == [0, nearest.item()]


def test_half_precision_does_not_round_the_scale():
    """1 / 0.9 is 1.109375 in bf16, 0.16 % too small: activations would shrink in training."""
    x = torch.rand(400_000).to(torch.bfloat16)
    y = dropout(x, 0.1, True)
    kept = y != 0
    assert y[kept].double().sum() / x[kept].double().sum() == pytest.approx(1 / 0.9, rel=2e-4)


def test_neighbours_are_drawn_apart():
    """Four elements come from one number, but none may say anything about the next."""
    kept = (dropout(torch.ones(400_000), 0.5, True) > 0).double()
    for distance in range(1, 9):
        together = (kept[distance:] * kept[:-distance]).mean().item()
        assert abs(together - 0.25) < 0.005, distance


@pytest.mark.parametrize("shape", [(0,), (1,), (3,), (5, 1), (2, 3, 7), ()])
def test_any_shape(shape):
    y = dropout(torch.ones(shape), 0.25, True)
    assert y.shape == shape
    assert set(y.flatten().tolist()) <= {0.0, torch.tensor(4 / 3).item()}


def test_the_gradient_passes_where_the_value_does():
    x = torch.randn(1000, requires_grad=True)
    y = dropout(x, 0.4, True)
    (gradient,) = torch.autograd.grad(y.sum(), x)
    torch.testing.assert_close(gradient * x, y)


def test_the_seed_decides():
    draws = []
    for _ in range(2):
        torch.manual_seed(7)
        draws.append([dropout(torch.ones(50), 0.5, True) for _ in range(2)])
    assert torch.equal(torch.stack(draws[0]), torch.stack(draws[1]))
    assert not torch.equal(*draws[0])


def test_ends_of_the_range():
    x = torch.randn(100)
    assert dropout(x, 0.0, True) is x
    assert dropout(x, 0.5, False) is x
    assert not dropout(x, 1.0, True).any()
    assert not dropout(x, 1 - 0.1 / LEVELS, True).any()  # nearest to 1: no division by 0


def test_a_compiled_model_draws_the_same():
    compiled = torch.compile(lambda x: dropout(x, 0.5, True), backend="eager", fullgraph=True)
    drawn = []
    for function in (compiled, lambda x: dropout(x, 0.5, True)):
        torch.manual_seed(3)
        drawn.append(function(torch.ones(100)))
    assert torch.equal(*drawn)
