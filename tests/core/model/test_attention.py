import math

import numpy as np
import pytest
import torch
from support.reference import array, causal, heads, linear, plain

from synmt_cli.core.model.attention import (
    CrossAttention,
    SelfAttention,
    attention_of_few,
    masked,
    split_heads,
)
from synmt_cli.core.model.modifier import Active, Modifier
from synmt_cli.core.model.projection import projection

B, T, S, D, H = 3, 6, 4, 12, 3


class Recorder(Modifier):
    """Changes nothing and keeps what the last call showed."""

    def scores(self, state, site, scores):
        self.site, self.shown = site, scores
        return scores

    def context(self, state, site, weights, context):
        self.weights, self.heads = weights, context
        return context


def attention(device="cpu", dropout=0.0):
    torch.manual_seed(3)
    return SelfAttention(D, H, dropout, 0).double().to(device).eval()


def inputs(n=T, device="cpu"):
    torch.manual_seed(4)
    return torch.randn(B, n, D, dtype=torch.double, device=device)


def lengths(*counts, n=T):
    """Allowed keys, (B, 1, 1, n): True at the first `counts[b]` of sentence b."""
    return (torch.arange(n) < torch.tensor(counts)[:, None])[:, None, None, :]


@pytest.mark.parametrize("future", [True, False])
@pytest.mark.parametrize("eager", [True, False])
def test_self_attention_is_equation_1_for_each_head(eager, future):
    layer, x = attention(), inputs()
    active = [Active(Recorder([0]), None)] if eager else []
    past = torch.ones(T, T, dtype=torch.bool).tril() if eager and not future else None
    out = layer(x, past, not future and not eager, active)
    for b in range(B):
        q, k, v = np.split(linear(layer.qkv, array(x[b])), 3, axis=1)
        context = heads(q, k, v, H, plain if future else causal)
        torch.testing.assert_close(out[b], torch.from_numpy(linear(layer.out, context)))


@pytest.mark.parametrize("is_causal", [True, False])
def test_eager_and_fused_attention_agree_under_padding(device, is_causal):
    layer, x = attention(device), inputs(device=device)
    allowed = lengths(6, 1, 4).to(device)
    if is_causal:
        allowed = allowed & torch.ones(T, T, dtype=torch.bool, device=device).tril()
    eager = layer(x, allowed, False, [Active(Recorder([0]), None)])
    torch.testing.assert_close(eager, layer(x, allowed, False, []))


def test_a_modifier_acts_only_in_its_layers():
    one, other = Active(Recorder([1, 2]), None), Active(Recorder([0]), None)
    assert attention().modified_by([one, other]) == [other]


def test_modifiers_are_not_left_without_the_mask_of_a_causal_layer():
    with pytest.raises(ValueError, match="need the mask"):
        attention()(inputs(), None, True, [Active(Recorder([0]), None)])


def test_hooks_see_scaled_scores_masked_weights_and_heads():
    layer, x, recorder = attention(), inputs(), Recorder([0])
    out = layer(x, lengths(6, 2, 4), False, [Active(recorder, None)])
    site = recorder.site
    assert site.layer == 0
    assert torch.equal(site.x, x)
    for h in range(H):
        expected = site.q[1, h] @ site.k[1, h].T / math.sqrt(D / H)
        torch.testing.assert_close(recorder.shown[1, h], expected)
    assert (recorder.weights[1, :, :, 2:] == 0).all()
    assert recorder.shown[1, :, :, 2:].abs().max() < 100  # the mask comes after the hook
    joined = recorder.heads.transpose(1, 2).reshape(B, T, D)
    torch.testing.assert_close(out, layer.out(joined))


def test_modifiers_act_one_after_the_other():
    class Add(Modifier):
        def scores(self, state, site, scores):
            return scores + 1

    class Double(Modifier):
        def scores(self, state, site, scores):
            return scores * 2

    before, after = Recorder([0]), Recorder([0])
    active = [Active(m, None) for m in (before, Add([0]), Double([0]), after)]
    attention()(inputs(), None, False, active)
    torch.testing.assert_close(after.shown, (before.shown + 1) * 2)


def test_cross_attention_reads_the_source_through_loops():
    torch.manual_seed(5)
    layer = CrossAttention(D, H, 0.0).double()
    x, memory = inputs(), inputs(S)
    out = layer(x, *layer.keys_values(memory), lengths(4, 1, 3, n=S))
    for b, n in enumerate((4, 1, 3)):
        k, v = np.split(linear(layer.kv, array(memory[b, :n])), 2, axis=1)
        context = heads(linear(layer.q, array(x[b])), k, v, H, plain)
        torch.testing.assert_close(out[b], torch.from_numpy(linear(layer.out, context)))


def test_split_heads_gives_each_head_neighbouring_dimensions():
    x = torch.arange(2 * 5 * 12).reshape(2, 5, 12)
    split = split_heads(x, 3)
    assert split.shape == (2, 3, 5, 4)
    assert torch.equal(split[1, 2, 3], x[1, 3, 8:12])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_a_row_with_nothing_to_see_stays_finite(dtype):
    scores = torch.randn(1, 1, 2, 3).to(dtype)
    allowed = torch.tensor([[True, False, True], [False, False, False]])
    hidden = masked(scores, allowed)
    assert hidden.isfinite().all()
    weights = hidden.softmax(-1)
    assert weights[0, 0, 0, 1] == 0
    torch.testing.assert_close(weights.sum(-1), torch.ones(1, 1, 2, dtype=dtype))
    read = masked(scores.float(), allowed, dtype).to(dtype)
    assert read.isfinite().all()
    assert read.softmax(-1)[0, 0, 0, 1] == 0


def test_hidden_stays_hidden_beside_very_negative_scores():
    scores = torch.tensor([-6e4, 3.0, -6e4])
    weights = masked(scores, torch.tensor([True, False, True])).softmax(-1)
    assert weights.tolist() == [0.5, 0.0, 0.5]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
@pytest.mark.parametrize("eager", [True, False])
def test_a_padded_sentence_gives_finite_outputs_and_gradients(eager, dtype):
    layer, x = attention().to(dtype), inputs().to(dtype).requires_grad_()
    active = [Active(Recorder([0]), None)] if eager else []
    out = layer(x, lengths(6, 0, 4), False, active)
    out.float().sum().backward()
    assert out.isfinite().all()
    assert x.grad.isfinite().all()


def test_dropout_falls_on_the_weights_in_training_only():
    layer, x, recorder = attention(dropout=0.5), inputs(), Recorder([0])
    active = [Active(recorder, None)]
    layer(x, None, False, active)
    assert (recorder.weights > 0).all()
    layer.train()(x, None, False, active)
    kept = recorder.weights[recorder.weights > 0]
    assert 0.3 < len(kept) / recorder.weights.numel() < 0.7


def test_joined_projections_are_initialised_as_if_they_stood_alone():
    torch.manual_seed(6)
    linear = projection(200, 200, 200, 50)
    assert (linear.bias == 0).all()
    for part in linear.weight.split([200, 200, 50]):
        bound = math.sqrt(6 / (200 + len(part)))  # Glorot and Bengio (2010), eq. 16
        assert part.abs().max() <= bound
        assert part.std().item() == pytest.approx(bound / math.sqrt(3), rel=0.03)


@pytest.mark.parametrize("n_queries", [1, 5])
def test_attention_of_few_queries_is_that_of_the_kernel(n_queries):
    torch.manual_seed(3)
    q, (k, v) = torch.randn(2, 3, n_queries, 8), torch.randn(2, 2, 3, 16, 8)
    mask = torch.zeros(2, 1, 1, 16).masked_fill_(torch.arange(16) > 6, -torch.inf)
    found = attention_of_few(q, k, v, mask, None)
    expected = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    torch.testing.assert_close(found, expected)
    q, k = (torch.cat((one, torch.randn_like(one)), -1) for one in (q, k))  # as GPS widens them
    found = attention_of_few(q, k, v, mask, 0.25)
    expected = torch.nn.functional.scaled_dot_product_attention(q, k, v, mask, scale=0.25)
    torch.testing.assert_close(found, expected)


class Some(Modifier):
    """Hides some tokens from some queries in one head."""

    def visible(self, state, n_queries):
        return state


@pytest.mark.parametrize("modified", [True, False])
def test_the_output_of_some_tokens_needs_no_others(modified):
    torch.manual_seed(6)
    layer, x, mask = attention(), inputs(), torch.rand(B, 1, T, T) < 0.7
    active = [Active(Some([0]), torch.rand(B, H, T, T) < 0.7)] if modified else []
    taken = torch.tensor([[0, 5], [3, 3], [4, 1]])  # the tokens kept of each sentence

    def keep(x):
        return x.gather(1, taken[..., None].expand(-1, -1, x.size(-1)))

    some = layer(x, mask, active=active, keep=keep)
    torch.testing.assert_close(some, keep(layer(x, mask, active=active)))


def test_the_output_of_some_tokens_has_dropout_on_its_weights(monkeypatch):
    layer, x = attention(dropout=0.5).train(), inputs()
    seen = []

    def attend(q, k, v, **options):
        seen.append(options["dropout_p"])
        return q

    monkeypatch.setattr("torch.nn.functional.scaled_dot_product_attention", attend)
    layer(x, keep=lambda x: x[:, 2:4])
    assert seen == [0.5]
