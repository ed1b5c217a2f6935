"""The blockwise loss against torch's own cross-entropy: values and gradients."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from synmt_cli.core.training import loss
from synmt_cli.core.training.loss import ArcLoss, cross_entropy

N, V, D = 13, 17, 8


def problem(n=N, device="cpu", scale=1.0):
    torch.manual_seed(11)
    states = (scale * torch.randn(n, D, device=device)).requires_grad_()
    output = (scale * torch.randn(V, D, device=device)).requires_grad_()
    return states, output, torch.randint(V, (n,), device=device)


def expected(states, output, target, smoothing):
    logits = F.linear(states, output)
    return F.cross_entropy(logits, target, reduction="sum", label_smoothing=smoothing)


def gradients(value, *inputs):
    return torch.autograd.grad(value, inputs)


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.9])
@pytest.mark.parametrize("rows", [1, 4, 12, 13, 14, 1000])
@pytest.mark.parametrize("group", [4, 1000])
def test_equals_torch_in_any_blocks(monkeypatch, device, smoothing, rows, group):
    monkeypatch.setattr(loss, "BLOCK", rows * V + V // 2)  # N = 13: one short block, or none
    monkeypatch.setattr(loss, "GROUP", group * V)
    states, output, target = problem(device=device)
    got = cross_entropy(states, output, target, smoothing)
    want = expected(states, output, target, smoothing)
    torch.testing.assert_close(got.smoothed, want, rtol=1e-5, atol=1e-4)
    torch.testing.assert_close(got.nll, expected(states, output, target, 0.0), rtol=1e-5, atol=1e-4)
    for g, w in zip(
        gradients(got.smoothed, states, output), gradients(want, states, output), strict=True
    ):
        torch.testing.assert_close(g, w, rtol=1e-4, atol=1e-5)


def test_a_vocabulary_larger_than_a_block_is_taken_row_by_row(monkeypatch):
    monkeypatch.setattr(loss, "BLOCK", V // 2)
    got, want = cross_entropy(*problem(), 0.1).smoothed, expected(*problem(), 0.1)
    torch.testing.assert_close(got, want)


def test_smoothing_is_the_formula():
    """(1 - eps)(lse - z_y) + eps (lse - mean z), term by term."""
    states, output, target = (x.detach() for x in problem())
    total = 0.0
    for t in range(N):
        z = [float(states[t] @ output[v]) for v in range(V)]
        lse = torch.tensor(z).logsumexp(0).item()
        total += 0.9 * (lse - z[target[t]]) + 0.1 * (lse - sum(z) / V)
    assert cross_entropy(states, output, target, 0.1).smoothed.item() == pytest.approx(total)


def test_the_gradient_takes_the_scale_of_what_follows():
    states, output, target = problem()
    (got,) = gradients(cross_entropy(states, output, target, 0.1).smoothed / 7 * 3, states)
    (want,) = gradients(expected(states, output, target, 0.1) / 7 * 3, states)
    torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5)


def test_nll_carries_no_gradient():
    assert not cross_entropy(*problem(), 0.1).nll.requires_grad


@pytest.mark.parametrize("frozen", [0, 1])
def test_either_input_may_be_frozen(frozen):
    inputs = problem()
    inputs[frozen].requires_grad_(False)
    other = inputs[1 - frozen]
    (got,) = gradients(cross_entropy(*inputs, 0.1).smoothed, other)
    (want,) = gradients(expected(*inputs, 0.1), other)
    torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5)
    assert inputs[frozen].grad is None


def test_without_gradients_the_values_are_the_same():
    with torch.no_grad():
        got = cross_entropy(*problem(), 0.1)
    assert not got.smoothed.requires_grad
    torch.testing.assert_close(got.smoothed, expected(*problem(), 0.1).detach())


def test_rows_are_some_of_the_states_and_others_have_no_gradient():
    states, output, target = problem()
    rows = torch.randperm(N)[: N // 2]
    got = cross_entropy(states, output, target[rows], 0.1, rows)
    want = cross_entropy(states[rows], output, target[rows], 0.1)
    assert torch.equal(got.smoothed, want.smoothed)
    assert torch.equal(got.nll, want.nll)
    for one, other in zip(
        gradients(got.smoothed, states, output),
        gradients(want.smoothed, states, output),
        strict=True,
    ):
        assert torch.equal(one, other)


def test_no_tokens_give_zero():
    states, output, target = problem(n=0)
    got = cross_entropy(states, output, target, 0.1)
    assert got.smoothed.item() == got.nll.item() == 0
    assert (gradients(got.smoothed, output)[0] == 0).all()


@pytest.mark.parametrize("scale", [30.0, 1e4])
def test_large_logits_stay_finite(scale):
    states, output, target = problem(scale=scale)
    got = cross_entropy(states, output, target, 0.1)
    torch.testing.assert_close(got.smoothed, expected(states, output, target, 0.1))
    assert all(g.isfinite().all() for g in gradients(got.smoothed, states, output))


def test_inputs_are_left_as_they_were():
    states, output, target = problem()
    before = states.detach().clone(), output.detach().clone(), target.clone()
    cross_entropy(states, output, target, 0.1).smoothed.backward()
    assert all(map(torch.equal, (states, output, target), before))


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_bf16_autocast_is_close_and_keeps_gradients_in_the_inputs_type(smoothing, device):
    states, output, target = problem(n=200, device=device)
    want = expected(states, output, target, smoothing)
    with torch.autocast(device, dtype=torch.bfloat16):
        got = cross_entropy(states, output, target, smoothing).smoothed
    assert got.dtype == torch.float32
    torch.testing.assert_close(got, want, rtol=1e-2, atol=0)
    for g, w in zip(gradients(got, states, output), gradients(want, states, output), strict=True):
        assert g.dtype == torch.float32
        assert F.cosine_similarity(g.flatten(), w.flatten(), dim=0) > 0.999
        torch.testing.assert_close(g, w, rtol=0.05, atol=0.05 * w.abs().max().item())


def test_states_in_bf16_reach_single_precision_weights():
    """This happens under autocast, where the last layer's output is already in half precision."""
    states, output, target = problem()
    half = states.detach().bfloat16().requires_grad_()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        value = cross_entropy(half, output, target, 0.1).smoothed
    d_states, d_output = gradients(value, half, output)
    assert (d_states.dtype, d_output.dtype) == (torch.bfloat16, torch.float32)


def test_a_shared_matrix_collects_both_gradients():
    """Tied embeddings: the same weight makes the states and scores them."""
    table = nn.Embedding(V, D)
    ids, target = torch.arange(5), torch.arange(1, 6)
    (got,) = gradients(cross_entropy(table(ids), table.weight, target, 0.1).smoothed, table.weight)
    (want,) = gradients(expected(table(ids), table.weight, target, 0.1), table.weight)
    torch.testing.assert_close(got, want)


@pytest.mark.parametrize("rows", [4, 1000])
def test_arcs_have_a_weight_and_a_smoothing_of_their_own(monkeypatch, rows):
    """w ((1 - eps)(lse - z_y) + eps (lse - mean z)), term by term, and its gradient."""
    monkeypatch.setattr(loss, "BLOCK", rows * V)
    states, output, target = problem()
    is_arc = torch.arange(V) % 3 == 0
    arcs = ArcLoss(is_arc, 0.3, 0.2, -math.log(0.3) * is_arc)
    got = cross_entropy(states, output, target, 0.1, arcs=arcs)
    z = states @ output.T
    own = z.logsumexp(1) - z[range(N), target]
    spread = z.logsumexp(1) - z.mean(1)
    eps = torch.tensor([0.2 if is_arc[y] else 0.1 for y in target])
    weight = torch.tensor([0.3 if is_arc[y] else 1.0 for y in target])
    want = (weight * ((1 - eps) * own + eps * spread)).sum()
    torch.testing.assert_close(got.smoothed, want, rtol=1e-5, atol=1e-4)
    corrected = (z - math.log(0.3) * is_arc).log_softmax(1)[range(N), target]
    torch.testing.assert_close(got.nll, -corrected.sum(), rtol=1e-5, atol=1e-4)
    for g, w in zip(
        gradients(got.smoothed, states, output), gradients(want, states, output), strict=True
    ):
        torch.testing.assert_close(g, w, rtol=1e-4, atol=1e-5)


def test_arcs_that_count_as_words_change_nothing():
    is_arc = torch.arange(V) % 3 == 0
    same = cross_entropy(*problem(), 0.1, arcs=ArcLoss(is_arc, 1.0, 0.1))
    torch.testing.assert_close(same.smoothed, cross_entropy(*problem(), 0.1).smoothed)
