"""Attention with vectors for relations: few launches give what steps give; sums; precision."""

from __future__ import annotations

import math

import pytest
import torch

from synmt_cli.core.model import relations
from synmt_cli.core.model.attention import join_heads, split_heads
from synmt_cli.core.model.relations import Related, Rows, Table, in_context, in_scores

B, H, T, D, N = 2, 3, 6, 4, 5
FORMS = [Rows, Rows.in_order]


def rows(index, form):
    return Rows(index, N, H) if form is Rows else Rows.in_order(index, N, B, H)


def drawn(batch=B, n=N):
    torch.manual_seed(2)
    return torch.randint(n, (batch, T, T))


def table():
    return torch.randn(N, D, dtype=torch.double, requires_grad=True)


def relating(rows, key, value):
    """Tables of key and value vectors for the only layer; None for no table."""
    both = (x if x is None else Table(rows, x[None]) for x in (key, value))
    return Related(*both, 0)


def vectors(related):
    """The vectors of keys and those of values, for each of `related`."""
    return [t.vectors for one in related for t in one[:2] if t is not None]


def attention(q, k, v, *given):
    """The result of `relations.attention`, split into heads; q, k, v: (B, H, T, D)."""
    return split_heads(relations.attention([join_heads(x) for x in (q, k, v)], H, *given), H)


def problem(n_queries=T, form=Rows):
    """Queries, keys, values, numbers to add to scores, and the vectors of two relations."""
    torch.manual_seed(3)
    q, k, v = (torch.randn(B, H, n, D, dtype=torch.double) for n in (n_queries, T, T))
    added = torch.randn(B, 1, n_queries, T, dtype=torch.double)
    index = drawn(), drawn(1, 2)
    related = [relating(rows(one, form), table(), table()) for one in index]
    return [x.requires_grad_() for x in (q, k, v, added)], related


def in_steps(q, k, v, added, related, allowed, weights=None):
    scores = q @ k.mT / math.sqrt(D) + added
    for one in related:
        number = in_scores(one, q)
        scores = scores if number is None else scores + number
    weights = scores.masked_fill(~allowed, -torch.inf).softmax(-1)
    context = weights @ v
    for one in related:
        mixed = in_context(one, weights)
        context = context if mixed is None else context + mixed
    return context


def gradients(out, inputs):
    torch.manual_seed(4)
    return torch.autograd.grad((out * torch.randn(out.shape, dtype=out.dtype)).sum(), inputs)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("n_queries", [T, 2])
@pytest.mark.parametrize("tables", ["both", "keys", "values", "one of each"])
def test_few_launches_give_what_steps_give(tables, n_queries, form):
    inputs, related = problem(n_queries, form)
    keys = {"both": (1, 1), "keys": (1, 1), "values": (0, 0), "one of each": (1, 0)}[tables]
    values = {"both": (1, 1), "keys": (0, 0), "values": (1, 1), "one of each": (0, 1)}[tables]
    related = [
        Related(one.key if key else None, one.value if value else None, 0)
        for one, key, value in zip(related, keys, values, strict=True)
    ]
    allowed = torch.ones(T, T, dtype=torch.bool).tril()[-n_queries:]
    found = attention(*inputs[:3], allowed, 0.0, related, inputs[3])
    expected = in_steps(*inputs, related, allowed)
    torch.testing.assert_close(found, expected)
    all_inputs = [*inputs, *vectors(related)]
    both = zip(gradients(found, all_inputs), gradients(expected, all_inputs), strict=True)
    for one, other in both:
        torch.testing.assert_close(one, other)


def test_each_pair_has_the_vectors_of_its_relation():
    """Shaw et al., eqs. 3 and 4, a pair at a time."""
    (q, k, v, _), (one, _) = problem()
    found = attention(q, k, v, None, 0.0, [one])
    (key,), (value,) = one.key.vectors, one.value.vectors
    for b in range(B):
        for h in range(H):
            for i in range(T):
                r = one.key.rows.index[b, i]
                e = torch.stack([q[b, h, i] @ (k[b, h, j] + key[r[j]]) for j in range(T)])
                alpha = (e / math.sqrt(D)).softmax(0)
                z = sum(alpha[j] * (v[b, h, j] + value[r[j]]) for j in range(T))
                torch.testing.assert_close(found[b, h, i], z)


def test_dropout_hides_weights_from_values_and_their_vectors():
    """Values of 1 show the weights that are left; the gradient passes only where they do."""
    (q, k, _, _), (one, _) = problem()
    ones = torch.ones(B, H, T, D, dtype=torch.double)
    related = [Related(one.key, Table(one.key.rows, torch.ones(1, N, D, dtype=torch.double)), 0)]
    torch.manual_seed(5)
    found = attention(q, k, ones, None, 0.5, related)
    assert found[..., 0].std() > 0.1
    assert (found[..., 0] / 2).mean().item() == pytest.approx(1, abs=0.2)

    def differentiable(q, k, v, key, value):
        torch.manual_seed(5)
        return attention(q, k, v, None, 0.5, [relating(one.key.rows, key[0], value[0])])

    inputs, _ = problem()
    assert torch.autograd.gradcheck(differentiable, (*inputs[:3], *vectors([one])))


@pytest.mark.parametrize("index", [drawn(), drawn(1), drawn().sort(-1).values])
def test_sorted_sums_are_those_of_each_relation(index):
    x = torch.randn(B, H, T, T, dtype=torch.double)
    expected = torch.zeros(B, H, T, N, dtype=torch.double)
    for b in range(B):
        for i in range(T):
            for j in range(T):
                expected[b, :, i, index[b % len(index), i, j]] += x[b, :, i, j]
    is_rising = bool((index.diff() >= 0).all())
    for one in (Rows(index, N, H), Rows.in_order(index, N, B, H, is_rising)):
        torch.testing.assert_close(one.sums(x), expected)
        last = one.of_queries(2)
        torch.testing.assert_close(last.sums(x[:, :, -2:]), expected[:, :, -2:])
        assert torch.equal(last.picked(expected[:, :, -2:]), one.picked(expected)[:, :, -2:])


def of_type(one, dtype):
    tables = [Table(t.rows, t.vectors.detach().to(dtype).requires_grad_()) for t in one[:2]]
    return Related(*tables, 0)


@pytest.mark.parametrize("half", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("form", FORMS)
def test_half_precision_rounds_neither_scores_nor_sums(half, form):
    """For inputs in half precision, the results and the gradients of tables are exact."""
    inputs, related = problem(form=form)
    q, k, v = (x.detach().to(half).requires_grad_() for x in inputs[:3])
    single = [of_type(one, torch.float32) for one in related]
    exact = [x.detach().double().requires_grad_() for x in (q, k, v)]
    double = [of_type(one, torch.double) for one in single]
    with torch.autocast("cpu", dtype=half):
        found = attention(q, k, v, None, 0.0, single)
    expected = attention(*exact, None, 0.0, double)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-5)
    grads = torch.autograd.grad(found.sum(), [q, *vectors(single)])
    assert grads[0].dtype == half
    for one, other in zip(
        grads[1:], torch.autograd.grad(expected.sum(), vectors(double)), strict=True
    ):
        torch.testing.assert_close(one.double(), other, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("n_queries", [1, 3, 7])  # D = 4 numbers each, so below and above LEAST
@pytest.mark.parametrize(("keys", "values"), [(True, True), (True, False), (False, True)])
@torch.inference_mode()
def test_hidden_padding_does_not_change_a_bit(n_queries, keys, values):
    torch.manual_seed(4)
    tables = [torch.randn(N, D) if has else None for has in (keys, values)]
    q, k, v = (3 * torch.randn(B, H, n, D) for n in (n_queries, 16, 16))
    index = torch.randint(N, (B, n_queries, 16))
    expected = None
    for more in (0, 32):
        wide = [torch.nn.functional.pad(x, (0, 0, 0, more)) for x in (k, v)]
        related = [relating(Rows(torch.nn.functional.pad(index, (0, more)), N, H), *tables)]
        hidden = torch.zeros(B, 1, n_queries, 16 + more)
        hidden[..., 16:] = -torch.inf
        found = relations.attention((q, *wide), H, None, 0.0, related, hidden)
        expected = found if expected is None else expected
        assert torch.equal(found, expected)
