"""Syntactically-informed self-attention against explicit loops. Strubell et al. (2018).

As Bugliarello and Okazaki (2020) describe it for subwords: the parent of a token is the first
subword of its word's parent, and a root is its own.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from support.models import logits, make, side, small
from support.parsed_sources import IDS, TREES, source, words
from support.reference import array, encode, linear

from synmt_cli.core.model.modifier import Modifier, Side, Site
from synmt_cli.core.trees.features import PieceTree
from synmt_cli.core.variants import plan
from synmt_cli.core.variants.sisa import sisa
from synmt_cli.core.variants.stack import StackSpec
from synmt_cli.errors import UsageError

D, N_LAYERS, N_HEADS, D_HEAD = 12, 2, 3, 4
NEEDS = ("parent_first", "sentence")
TARGETS = [[2, 5, 6], [2, 9], [2, 4, 8, 7]]
CLOSE = {"rtol": 1e-6, "atol": 1e-6}  # sinusoids and losses are of single precision


def setting(**changes):
    return StackSpec(small(**changes), N_LAYERS)


def leaky(x):
    return x if x > 0 else 0.01 * x


def biaffine(modifier, x):
    """Scores of the head, (T, T): [q_t; 1] U k_j, with q and k through a feed-forward layer."""
    q, k = np.split(np.vectorize(leaky)(linear(modifier.qk, x)), 2, axis=1)
    u, n = array(modifier.biaffine), len(x)
    found = np.zeros((n, n))
    for t in range(n):
        for j in range(n):
            for b in range(D_HEAD):
                found[t, j] += u[D_HEAD, b] * k[j, b]
                for a in range(D_HEAD):
                    found[t, j] += q[t, a] * u[a, b] * k[j, b]
    return found  # never divided by sqrt(d)


def encoded(model, modifier, ids):
    """Reference states of one sentence, and the head's scores."""
    seen, (layer,) = {}, modifier.layers

    def score(i, h, t, j, s):
        return seen["scores"][t, j] if (i, h) == (layer, 0) else s

    def watch(i, x):
        if i == layer:
            seen["scores"] = biaffine(modifier, x)

    return torch.from_numpy(encode(model, ids, score, watch=watch)), seen["scores"]


def parents(tree):
    """The position that each row is to attend to; None where there is no word."""
    of_word = words(tree)
    found = []
    for word in of_word:
        if word is None:
            found.append(None)
            continue
        head = tree.heads[word]
        found.append(of_word.index(word if head == -1 else head))
    return found


def cross_entropy(scores, targets):
    """The sum over rows of -log softmax(scores)[parent]."""
    total = 0.0
    for row, target in zip(scores, targets, strict=True):
        if target is not None:
            total -= math.log(math.exp(row[target]) / sum(math.exp(s) for s in row))
    return total


def loss(model, batch):
    (found,) = model.encode(batch).losses.values()
    return found


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("layer", [0, 1])
def test_an_encoder_with_sisa_equals_explicit_loops(layer, norm):
    (modifier,) = sisa(setting(), layer=layer)
    model = make(small(norm), [modifier])
    states = model.encode(source()).states
    for b, ids in enumerate(IDS):
        expected, _ = encoded(model, modifier, ids)
        torch.testing.assert_close(states[b, : len(ids)], expected, **CLOSE)


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("layer", [0, 1])
@pytest.mark.parametrize("weight", [1.0, 0.25])
def test_the_loss_is_the_summed_cross_entropy_of_parents(weight, layer, norm):
    """One log-softmax, over the keys of a row; padding, EOS and pieces of no word do not count."""
    (modifier,) = sisa(setting(), layer=layer, weight=weight)
    model = make(small(norm, positions="none"), [modifier])
    scores = [encoded(model, modifier, ids)[1] for ids in IDS]
    expected = sum(map(cross_entropy, scores, map(parents, TREES)))
    found = loss(model, source(needs=NEEDS))
    assert found.item() == pytest.approx(weight * expected, rel=1e-6)
    assert found.shape == ()


def test_the_parents_of_the_test_batch_are_these():
    assert parents(TREES[0]) == [1, 3, 3, 3, 3, None]  # a split word; the root is its own
    assert parents(TREES[1]) == [1, 1, 2, 2, None]  # two sentences, two roots
    assert parents(TREES[2]) == [0, None, 0, None]  # a piece of no word


def test_the_loss_of_a_batch_is_the_sum_over_its_sentences():
    (modifier,) = sisa(setting())
    model = make(small(), [modifier])
    single = [
        loss(model, source([ids], [tree], NEEDS)) for ids, tree in zip(IDS, TREES, strict=True)
    ]
    torch.testing.assert_close(loss(model, source(needs=NEEDS)), sum(single), **CLOSE)
    wide = source(needs=NEEDS, width=20, fill=1)
    torch.testing.assert_close(loss(model, wide), sum(single), **CLOSE)


def test_a_sentence_without_a_tree_adds_nothing_to_the_loss():
    (modifier,) = sisa(setting())
    model = make(small(), [modifier])
    bare = PieceTree([], [], [0], [-1, -1, -1])
    batch = source([*IDS, [4, 7, 9, 3]], [*TREES, bare], NEEDS)
    torch.testing.assert_close(loss(model, batch), loss(model, source(needs=NEEDS)), **CLOSE)
    nothing = loss(model, source([[4, 7, 9, 3]], [bare], NEEDS))
    assert nothing.item() == 0
    nothing.backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())


def test_translation_needs_no_tree():
    """Features are for the loss alone: at test time the head's own scores are used."""
    (modifier,) = sisa(setting())
    model = make(small(), [modifier])
    bare = side(IDS)
    assert bare.features == {}
    memory = model.encode(bare)
    assert not memory.losses
    assert torch.equal(memory.states, model.encode(source(needs=NEEDS)).states)
    assert set(modifier.learns) == set(modifier.needs) == set(NEEDS)


def test_a_model_reports_the_loss_by_its_variants_name():
    (modifier,) = sisa(setting())
    modifier.name = "sisa"
    assert list(make(small(), [modifier]).encode(source(needs=NEEDS)).losses) == ["sisa"]


# One head of one layer, and nothing else.


class Scores(Modifier):
    """Keeps the scores of each layer."""

    def __init__(self):
        super().__init__(range(N_LAYERS))
        self.of = {}

    def scores(self, state, site, scores):
        self.of[site.layer] = scores
        return scores


@pytest.mark.parametrize("layer", [0, 1])
def test_the_scores_of_head_0_alone_are_replaced(layer):
    (modifier,) = sisa(setting(), layer=layer)
    watch, plain_watch = Scores(), Scores()
    model, plain = make(small(), [modifier, watch]), make(small(), [plain_watch])
    plain.load_state_dict(model.state_dict(), strict=False)
    real = ~source().pad[:, :, None] & ~source().pad[:, None, :]
    model.encode(source())
    plain.encode(source())
    for i in range(layer + 1):  # above that layer everything differs
        for h in range(N_HEADS):
            one, other = (w.of[i][:, h][real] for w in (watch, plain_watch))
            assert torch.allclose(one, other, rtol=0, atol=1e-10) == ((i, h) != (layer, 0))
    assert (modifier.layers, modifier.replaces) == ({layer}, {0})


def test_scores_grow_with_the_product_of_queries_and_keys():
    """Twice the biaffine matrix, twice the score."""
    (modifier,) = sisa(setting())
    watch = Scores()
    model = make(small(positions="none"), [modifier, watch])
    model.encode(source())
    before = watch.of[0][:, 0]
    modifier.biaffine.data *= 2
    model.encode(source())
    torch.testing.assert_close(watch.of[0][:, 0], 2 * before)
    bias = modifier.biaffine.data.clone()
    bias[:-1] = 0
    modifier.biaffine.data = bias  # the last row is a bias on the side of queries
    model.encode(source())
    rows = watch.of[0][0, 0]
    torch.testing.assert_close(rows, rows[:1].expand_as(rows))


def test_padding_is_never_a_parent():
    """This holds whatever its score, since the loss is over the tokens of the sentence."""
    (modifier,) = sisa(setting())
    model = make(small(), [modifier])
    clean = source(needs=NEEDS)
    for token in range(11):
        ids = torch.where(clean.pad, token, clean.ids)
        dirty = Side(ids, clean.pad, clean.features)
        torch.testing.assert_close(loss(model, dirty), loss(model, clean), **CLOSE)


# Parameters and learning.


def test_the_head_has_a_projection_and_a_matrix():
    (modifier,) = sisa(setting())
    assert {name: tuple(p.shape) for name, p in modifier.named_parameters()} == {
        "qk.weight": (2 * D_HEAD, D),
        "qk.bias": (2 * D_HEAD,),
        "biaffine": (D_HEAD + 1, D_HEAD),
    }


def test_the_matrix_is_initialised_as_xavier_says():
    """The published code never initialises it."""
    torch.manual_seed(2)
    (modifier,) = sisa(StackSpec(small(d_model=192), N_LAYERS))
    bound = math.sqrt(6 / (65 + 64))
    assert modifier.biaffine.abs().max().item() <= bound
    assert modifier.biaffine.std().item() == pytest.approx(bound / math.sqrt(3), rel=0.05)


def test_the_loss_trains_the_head_and_what_is_below_it():
    (modifier,) = sisa(setting(), layer=1)
    model = make(small(), [modifier])
    loss(model, source(needs=NEEDS)).backward()
    trained = {name for name, p in model.named_parameters() if p.grad is not None and p.grad.any()}
    assert {name for name in trained if name.startswith("encoder.modifiers")} == {
        "encoder.modifiers.0.qk.weight",
        "encoder.modifiers.0.qk.bias",
        "encoder.modifiers.0.biaffine",
    }
    assert any(name.startswith("encoder.layers.0") for name in trained)
    assert not any(name.startswith(("encoder.layers.1", "decoder.layers")) for name in trained)


def test_a_head_learns_the_parents_of_a_batch():
    torch.manual_seed(4)
    (modifier,) = sisa(setting())
    model = make(small(), [modifier])
    optimizer = torch.optim.Adam(model.parameters(), 0.02)
    batch = source(needs=NEEDS)
    first = loss(model, batch).item()
    for _ in range(100):
        optimizer.zero_grad()
        loss(model, batch).backward()
        optimizer.step()
    assert loss(model, batch).item() < 0.05 * first


def test_the_loss_and_the_translation_use_the_same_scores():
    """The gradients of both reach the head in one pass."""
    (modifier,) = sisa(setting())
    model = make(small(), [modifier])
    memory = model.encode(source(needs=NEEDS))
    states, _ = model.decode(side(TARGETS), memory)
    (model.logits(states).square().mean() + memory.losses[modifier.name]).backward()
    assert all(p.grad.isfinite().all() and p.grad.any() for p in modifier.parameters())
    assert logits(model, source(), side(TARGETS)).isfinite().all()


def test_scores_are_of_single_precision_where_the_rest_is_not():
    """In bf16 a score of 200 may be off by half a unit."""
    (modifier,) = sisa(setting())
    torch.manual_seed(0)
    x = 30 * torch.randn(1, 5, D)
    state = modifier.prepare(Side(torch.ones(1, 5, dtype=torch.long)))
    with torch.autocast("cpu", torch.bfloat16):
        modifier.scores(state, Site(0, x, x, x), torch.zeros(1, N_HEADS, 5, 5))
        qk = torch.nn.functional.leaky_relu(modifier.qk(x), 0.01)
    q, k = qk.double().chunk(2, dim=-1)
    u = modifier.biaffine.double()
    expected = (q @ u[:-1] + u[-1]) @ k.transpose(1, 2)
    assert expected.abs().max() > 100
    assert state.scores.dtype == torch.float32
    torch.testing.assert_close(state.scores.double(), expected, rtol=1e-5, atol=1e-3)


@pytest.mark.parametrize("layer", [-1, 2])
def test_a_layer_that_does_not_exist_is_refused(layer):
    with pytest.raises(UsageError, match=rf"sisa\.layer must be within 0\.\.1, not {layer}"):
        sisa(setting(), layer=layer)


@pytest.mark.parametrize("weight", [-1.0, math.nan, math.inf])
def test_a_weight_that_is_no_share_is_refused(weight):
    with pytest.raises(UsageError, match=r"sisa\.weight must be"):
        plan("sisa").encoder(setting(), {"sisa": {"weight": weight}})
