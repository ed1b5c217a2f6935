"""PASCAL against explicit loops over equations 4-6, and what its paper and options promise."""

from __future__ import annotations

import math

import pytest
import torch
from support.models import logits, make, side, small
from support.reference import decode, density, encode

from synmt_cli.core.model.modifier import Modifier, Site
from synmt_cli.core.variants.pascal import Pascal, pascal
from synmt_cli.core.variants.stack import StackSpec

N_HEADS, N_LAYERS = 3, 2
SOURCES = [[4, 7, 9, 9, 6, 3], [5, 10, 8, 3], [4, 9, 3]]  # 3 is EOS
# Middle positions of parents that are one token, two (x.5) or three; EOS is its own parent.
PARENTS = [[1.0, 1.5, 1.5, 1.5, 3.0, 5.0], [2.0, 0.5, 0.5, 3.0], [0.0, 0.0, 2.0]]
TARGETS = [[2, 5, 6], [2, 9], [2, 4, 8, 7]]


def setting(**changes):
    return StackSpec(small(**changes), N_LAYERS)


def model(norm="post", extra=(), **options):
    return make(small(norm), [*pascal(setting(), **options), *extra])


def batch(fill=0, **options):
    return side(SOURCES, fill=fill, parent_middle=PARENTS, **options)


def scores(modifier, q_k, parents=PARENTS, layer=0):
    """Raw scores (B, H, T, T), changed by the modifier."""
    width = q_k.size(-1)
    state = modifier.prepare(side([[0] * len(p) for p in parents], parent_middle=parents))
    x = torch.zeros(len(parents), width, 12)
    q = torch.zeros(len(parents), N_HEADS, width, 4)
    return modifier.scores(state, Site(layer, x, q, q), q_k)


def random_scores(n=6, b=3):
    torch.manual_seed(7)
    return torch.randn(b, N_HEADS, n, n, dtype=torch.double)


class Recorder(Modifier):
    """Keeps each head's output in every layer."""

    def __init__(self):
        super().__init__(range(N_LAYERS))
        self.heads = {}

    def context(self, state, site, weights, context):
        self.heads[site.layer] = context
        return context


# Equations 4-6.


@pytest.mark.parametrize("variance", [1, 4, 9, 16, 25])
def test_a_score_is_multiplied_by_the_density_with_that_variance(variance):
    (modifier,) = pascal(setting(), heads=2, variance=variance)
    before = random_scores()
    after = scores(modifier, before)
    for b, parents in enumerate(PARENTS):
        for h in range(N_HEADS):
            for t, p in enumerate(parents):
                for j in range(6):
                    d = density(p, j, variance) if h < 2 else 1.0
                    n = before[b, h, t, j].item() * d
                    assert after[b, h, t, j].item() == pytest.approx(n, rel=1e-5, abs=1e-9)


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("options", [{"heads": 2}, {"heads": [1, 3]}, {"heads": 2, "layer": 1}])
def test_a_model_with_pascal_heads_equals_explicit_loops(norm, options):
    whole = model(norm, variance=4.0, **options)
    counts = options["heads"] if isinstance(options["heads"], list) else [2, 0]
    counts = [0, 2] if "layer" in options else counts
    states = whole.encode(batch()).states
    target = logits(whole, batch(), side(TARGETS))
    for b, (ids, parents) in enumerate(zip(SOURCES, PARENTS, strict=True)):

        def score(layer, h, t, j, s, parents=parents):
            return s * density(parents[t], j, 4.0) if h < counts[layer] else s

        expected = encode(whole, ids, score)
        torch.testing.assert_close(
            states[b, : len(ids)], torch.from_numpy(expected), rtol=1e-5, atol=1e-6
        )
        prefix = torch.from_numpy(decode(whole, TARGETS[b], expected))
        torch.testing.assert_close(target[b, : len(prefix)], prefix, rtol=1e-5, atol=1e-5)


def test_the_factor_of_the_density_is_kept():
    """At variance 1 even the parent's own score is multiplied by 1 / sqrt(2 pi) = .3989."""
    (modifier,) = pascal(setting(), heads=3)
    after = scores(modifier, torch.ones(1, N_HEADS, 3, 3, dtype=torch.double), [[1.0, 1.0, 2.0]])
    assert after[0, 0, 0, 1].item() == pytest.approx(0.3989423)
    assert after[0, 0, 0, 0].item() == pytest.approx(0.2419707)
    assert after[0, 0, 0, 2].item() == pytest.approx(0.2419707)


def test_a_parent_between_two_tokens_weighs_both_alike():
    (modifier,) = pascal(setting(), heads=1)
    after = scores(modifier, torch.ones(1, N_HEADS, 4, 4, dtype=torch.double), [[1.5] * 4])
    assert after[0, 0, 0, 1] == after[0, 0, 0, 2]
    assert after[0, 0, 0, 1].item() == pytest.approx(math.exp(-0.125) / math.sqrt(2 * math.pi))


def test_negative_scores_are_pulled_toward_zero():
    """Equation 5 as it stands: among equal negative scores the parent is attended least."""
    (modifier,) = pascal(setting(), heads=1)
    before = torch.full((1, N_HEADS, 5, 5), -2.0, dtype=torch.double)
    after = scores(modifier, before, [[2.0] * 5])[0, 0, 0]
    assert after.argmin() == 2
    assert (after <= 0).all()
    assert after[2].item() == pytest.approx(-2 * 0.3989423)
    assert after.softmax(-1).argmin() == 2


# Parent-only, Table 7b.


def test_parent_only_keeps_the_scores_of_the_parents_tokens():
    (modifier,) = pascal(setting(), heads=2, parent_only=True)
    before = random_scores()
    after = scores(modifier, before)
    for b, parents in enumerate(PARENTS):
        for t, p in enumerate(parents):
            for j in range(6):
                kept = before[b, 1, t, j].item() if abs(j - p) < 1 else 0.0
                assert after[b, 1, t, j].item() == kept


@pytest.mark.parametrize(("p", "tokens"), [(0.0, [0]), (2.0, [2]), (2.5, [2, 3]), (4.0, [4])])
def test_parent_only_means_both_middle_tokens_where_there_are_two(p, tokens):
    (modifier,) = pascal(setting(), heads=1, parent_only=True)
    after = scores(modifier, torch.ones(1, N_HEADS, 5, 5, dtype=torch.double), [[p] * 5])
    assert after[0, 0, 3].nonzero().flatten().tolist() == tokens


def test_parent_only_with_padding_has_no_nan():
    whole = model(heads=3, parent_only=True)
    scores = logits(whole, batch(fill=9), side(TARGETS))
    scores.sum().backward()
    assert scores.isfinite().all()
    assert all(p.grad.isfinite().all() for p in whole.parameters())


def test_padding_gets_no_weight_whatever_its_scaled_score():
    """The mask comes after the product: 0 * -inf would be NaN, and a scaled mask would leak."""

    class Weights(Recorder):
        def context(self, state, site, weights, context):
            self.heads[site.layer] = weights
            return context

    for parent_only in (True, False):
        watch = Weights()
        model(heads=3, parent_only=parent_only, extra=[watch]).encode(batch())
        assert (watch.heads[0][1, :, :, 4:] == 0).all()
        assert (watch.heads[0][1, :, :, :4] > 0).all()


# The heads and layers that are scaled.


@pytest.mark.parametrize("h", [0, 1, 2, 3])
@pytest.mark.parametrize("layer", [0, 1])
def test_exactly_h_heads_of_the_layer_differ_from_plain(h, layer):
    touched, plain = Recorder(), Recorder()
    model(heads=h, layer=layer, extra=[touched]).encode(batch())
    model(heads=0, extra=[plain]).encode(batch())
    real = ~batch().pad[:, None, :, None]
    for i in range(layer + 1):  # above that layer everything differs
        for head in range(N_HEADS):
            a, b = (r.heads[i][:, head : head + 1] for r in (touched, plain))
            assert torch.equal(a, b) == (i < layer or head >= h)
            for sentence in range(3):  # every sentence is touched, not the last ones only
                close = torch.allclose((a * real)[sentence], (b * real)[sentence])
                assert close == (i < layer or head >= h)


def test_a_list_gives_each_layer_its_count():
    (modifier,) = pascal(setting(), heads=[0, 3])
    assert modifier.layers == {1}
    assert modifier.heads == {1: 3}
    (modifier,) = pascal(setting(), heads=[2])
    assert modifier.heads == {0: 2}


@pytest.mark.parametrize("options", [{"heads": 0}, {"heads": [0, 0]}, {"heads": []}])
def test_no_heads_is_the_plain_transformer_bit_for_bit(options):
    plain = make(small())
    torch.testing.assert_close(
        model(**options).encode(batch()).states, plain.encode(batch()).states, rtol=0, atol=0
    )


def test_pascal_has_no_parameters():
    assert not list(pascal(setting())[0].parameters())
    names = [name for name, _ in make(small()).named_parameters()]
    assert [name for name, _ in model(heads=2).named_parameters()] == names


def test_weights_load_from_and_into_the_plain_model():
    """Same names: a trained vanilla model can be continued with PASCAL and compared."""
    model(heads=2).load_state_dict(make(small()).state_dict(), strict=True)


def test_gradient_reaches_every_parameter():
    whole = model(heads=3)
    logits(whole, batch(), side([[*row, 10] for row in TARGETS])).square().sum().backward()
    for name, parameter in whole.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name


# Parent ignoring.


def rows_ignored(q, b=200, n=6, heads=2):
    """(B, h, T) bool: rows whose scores stay as they were; checks that all others are scaled."""
    torch.manual_seed(8)
    modifier = pascal(setting(), heads=heads, ignore=q)[0].train()
    after = scores(modifier, torch.ones(b, N_HEADS, n, n), [[1.0, 1.5, 2.0, 0.0, 3.0, 5.0]] * b)
    row = torch.tensor([density(1.0, j, 1) for j in range(n)])
    ignored = (after[:, :heads] == 1).all(-1)
    torch.testing.assert_close(after[:, 0, 0][~ignored[:, 0, 0]][0], row)
    assert (after[:, :heads][~ignored] < 0.5).all()  # a row is 1 everywhere or scaled everywhere
    assert (after[:, heads:] == 1).all()
    return ignored


@pytest.mark.parametrize("q", [0.1, 0.4, 0.9])
def test_the_share_of_ignored_rows_is_q(q):
    assert rows_ignored(q).float().mean().item() == pytest.approx(q, abs=0.05)


def test_rows_are_ignored_independently_for_sentence_head_and_token():
    ignored = rows_ignored(0.4).float()
    assert ignored.mean((0, 2)).tolist() == pytest.approx([0.4] * 2, abs=0.06)  # heads
    assert ignored.mean((0, 1)).tolist() == pytest.approx([0.4] * 6, abs=0.1)  # tokens
    assert ignored.mean((1, 2)).var().item() == pytest.approx(0.4 * 0.6 / 12, abs=0.007)
    for one, other in ((ignored[:, 0], ignored[:, 1]), (ignored[:100], ignored[100:])):
        assert (one * other).mean().item() == pytest.approx(0.4 * 0.4, abs=0.04)
    tokens = ignored.flatten(0, 1)  # (sentences and heads, T)
    assert torch.corrcoef(tokens.T).fill_diagonal_(0).abs().max() < 0.2


def test_the_row_of_eos_is_ignored_like_any_other():
    share = rows_ignored(0.4)[:, :, -1].float().mean().item()
    assert share == pytest.approx(0.4, abs=0.08)


def test_nothing_is_ignored_outside_training():
    before = random_scores()
    (plain,), (modifier,) = pascal(setting()), pascal(setting(), ignore=0.9)
    assert torch.equal(scores(modifier.eval(), before), scores(plain.eval(), before))
    assert torch.equal(scores(pascal(setting())[0].train(), before), scores(plain, before))


def test_all_rows_ignored_gives_the_plain_scores():
    before = random_scores()
    modifier = pascal(setting(), heads=3, ignore=1.0)[0].train()
    assert torch.equal(scores(modifier, before), before)
    whole = model(heads=3, ignore=1.0).train()
    plain = make(small()).encode(batch()).states
    torch.testing.assert_close(whole.encode(batch()).states, plain)


def test_ignoring_is_drawn_anew_for_each_batch_and_repeats_with_the_seed():
    whole = model(heads=3, ignore=0.5).train()
    torch.manual_seed(9)
    one, two = (whole.encode(batch()).states for _ in range(2))
    assert not torch.allclose(one, two)
    torch.manual_seed(9)
    assert torch.equal(whole.encode(batch()).states, one)


# Precision.


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("variance", [1.0, 25.0])
def test_half_precision_scores_stay_finite_far_from_the_parent(dtype, variance, device):
    n = 400  # 400^2 is beyond float16
    parents = [[0.5] * (n - 1) + [float(n - 1)]]
    modifier = Pascal({0: 2}, variance, 0.0, False).to(device)
    features = side([[0] * n], device=device, parent_middle=parents)
    x = torch.zeros(1, n, 12, device=device)
    before = torch.full((1, N_HEADS, n, n), 3.0, dtype=dtype, device=device)
    after = modifier.scores(modifier.prepare(features), Site(0, x, x, x), before)
    assert after.dtype == dtype
    assert after.isfinite().all()
    expected = 3 * density(0.5, 1, variance)
    assert after[0, 0, 0, 1].item() == pytest.approx(expected, rel=0.01)
    assert after[0, 0, 0, n - 1].item() == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("parent_only", [True, False])
@pytest.mark.parametrize("half", [torch.bfloat16, torch.float16])
def test_half_precision_models_stay_finite_and_close(half, parent_only):
    whole = model(heads=2, parent_only=parent_only).float()
    expected = whole.encode(batch()).states[~batch().pad]
    with torch.autocast("cpu", dtype=half):
        cast = whole.encode(batch()).states[~batch().pad]
    converted = whole.to(half).encode(batch()).states
    assert converted.isfinite().all()
    for states in (cast, converted[~batch().pad]):
        torch.testing.assert_close(states.float(), expected, rtol=0.1, atol=0.15)
