"""AWSL against loops, and cases where there must be none."""

from __future__ import annotations

import math

import pytest
import torch
from support.models import make, queries_keys_values, side, small

from synmt_cli.core.analysis.awsl import AwslMeter, valid_pairs, weigh
from synmt_cli.core.model.attention import split_heads
from synmt_cli.core.variants import plan
from synmt_cli.core.variants.stack import StackSpec

SIZE = small()
ROWS = [[4, 5, 6, 7, 3], [8, 9, 3], [5, 3]]
FEATURES = {
    "sentence": [[0, 0, 1, -1, -1], [0, 0, -1], [-1, -1]],  # the last line has no tree
    "path": [[[1], [1, 2], [1], [], []], [[1, 3], [1], []], [[], []]],
    "parent_middle": [[0.0, 0.0, 2.0, 3.0, 4.0], [1.0, 1.0, 2.0], [0.0, 1.0]],
}


def model_of(variant, options=None):
    setting = StackSpec(SIZE, SIZE.encoder_layers, 3)
    return make(SIZE, plan(variant).encoder(setting, {variant: options or {}}))


def measured(model, source):
    meter = AwslMeter(model)
    meter.add(source)
    return meter.layers()


def test_equation_7_by_hand():
    """Two tokens: shares 3/4, 0 and 1/2; the pair of two zeros does not count."""
    before = torch.tensor([[1.0, -2.0], [0.0, 3.0]])[None, None]
    after = torch.tensor([[-2.0, -2.0], [0.0, 0.0]])[None, None]
    share, n = weigh(before, after, torch.ones(1, 2, 2, dtype=torch.bool))
    assert n.item() == 3
    assert share.item() == pytest.approx((3 / 4 + 0 + 1 / 2) / 3)


def test_pairs_are_of_words_of_one_sentence():
    valid = valid_pairs(side(ROWS, sentence=FEATURES["sentence"]))
    assert valid[0].nonzero().tolist() == [[0, 0], [0, 1], [1, 0], [1, 1], [2, 2]]
    assert valid[1].nonzero().tolist() == [[0, 0], [0, 1], [1, 0], [1, 1]]
    assert not valid[2].any()


def test_gps_against_loops():
    """e^s is GPS's second term, computed here from its parameters."""
    model, source = model_of("gps"), side(ROWS, **FEATURES)
    (gps,) = model.encoder.modifiers
    layer = model.encoder.layers[0].attention
    q, k, _ = queries_keys_values(layer, model.encoder.embedding(source.ids, []))
    vectors = gps.vectors(source.paths)[source.features["path"]]
    q_s, k_s = (split_heads(t, 3) for t in gps.qk["0"](vectors).chunk(2, dim=-1))
    of_heads = [[], [], []]
    for b, sentence in enumerate(FEATURES["sentence"]):
        for head in range(3):
            shares = []
            for i, s_i in enumerate(sentence):
                for j, s_j in enumerate(sentence):
                    if s_i == s_j >= 0:
                        e = (q[b, head, i] @ k[b, head, j]).item() / math.sqrt(4)
                        e_s = (q_s[b, head, i] @ k_s[b, head, j]).item() / math.sqrt(4)
                        shares.append(abs(e_s) / (abs(e) + abs(e_s)))
            if shares:
                of_heads[head].append(sum(shares) / len(shares))
    expected = [sum(shares) / len(shares) for shares in of_heads]
    found = measured(model, source)[0]
    assert found.heads == pytest.approx(expected)
    assert found.weight == pytest.approx(sum(expected) / 3)
    assert found.document()["equation_7"] == pytest.approx(1 - sum(expected) / 3)
    assert found.variants == ["gps"]


def test_layers_without_syntax_have_none():
    bottom, top = measured(model_of("gps"), side(ROWS, **FEATURES))
    assert bottom.weight > 0
    assert (top.weight, top.document()["equation_7"], top.variants) == (0.0, 1.0, [])


def test_vanilla_has_none_and_no_tree_gives_nothing():
    vanilla = model_of("vanilla")
    found = measured(vanilla, side(ROWS, **FEATURES))
    assert [layer.weight for layer in found] == [0.0, 0.0]
    treeless = measured(vanilla, side(ROWS[2:], sentence=FEATURES["sentence"][2:]))
    assert [layer.weight for layer in treeless] == [None, None]


def test_pascal_has_the_share_of_its_nearness():
    """n - s = (D - 1) s: |D - 1| / (1 + |D - 1|), in its heads alone."""
    model = model_of("pascal", {"heads": 1})
    found = measured(model, side(ROWS[1:2], **{k: v[1:2] for k, v in FEATURES.items()}))
    density = [math.exp(-d / 2) / math.sqrt(2 * math.pi) for d in (1, 0, 1, 0)]
    expected = sum((1 - d) / (2 - d) for d in density) / 4
    assert found[0].heads[0] == pytest.approx(expected)
    assert found[0].heads[1:] == [0.0, 0.0]


def related(model, name, source):
    """The term that a variant of relations adds to the scores of layer 0, pair by pair."""
    (relation,) = (m for m in model.encoder.modifiers if m.name == name)
    q, _, _ = queries_keys_values(
        model.encoder.layers[0].attention, model.encoder.embedding(source.ids, [])
    )
    table = relation.key[0][relation.rows(source, relation.clip)]  # (B or 1, T, T, d_head)
    return (q[:, :, :, None] * table[:, None]).sum(-1) / math.sqrt(q.size(-1))


@pytest.mark.parametrize("variant", ["rel", "dep+rel", "rel+dep"])
def test_distances_in_the_sentence_are_not_syntax(variant):
    """e^s is the term of dep alone, and that of rel a part of e."""
    model = model_of(variant)
    depths = [[1, 0, 0, 0, 0], [1, 0, 0], [0, 0]]
    source = side(ROWS, sentence=FEATURES["sentence"], depth=depths)
    found = measured(model, source)[0]
    if variant == "rel":
        assert (found.weight, found.heads, found.variants) == (0.0, [0.0] * 3, [])
        return
    q, k, _ = queries_keys_values(
        model.encoder.layers[0].attention, model.encoder.embedding(source.ids, [])
    )
    e = q @ k.transpose(-2, -1) / math.sqrt(4) + related(model, "rel", source)
    e_s = related(model, "dep", source)
    shares = e_s.abs() / (e.abs() + e_s.abs())  # (B, H, T, T)
    valid = valid_pairs(source)
    expected = torch.stack([shares[b, :, valid[b]].mean(-1) for b in (0, 1)]).mean(0)
    assert found.heads == pytest.approx(expected.tolist(), rel=1e-5)
    assert found.variants == ["dep"]


def test_batches_and_padding_never_matter():
    model = model_of("gps")
    together = measured(model, side(ROWS, **FEATURES, width=9, fill=1))
    meter = AwslMeter(model)
    for i in (2, 1, 0):
        meter.add(side(ROWS[i : i + 1], **{k: v[i : i + 1] for k, v in FEATURES.items()}))
    for one, other in zip(together, meter.layers(), strict=True):
        assert one.weight == pytest.approx(other.weight)
        assert one.heads == pytest.approx(other.heads)


def test_looking_changes_nothing_and_leaves_nothing():
    model, source = model_of("gps"), side(ROWS, **FEATURES)
    before = model.encode(source).states
    measured(model, source)
    after = model.encode(source).states
    assert torch.equal(before, after)
    assert not any(m._forward_pre_hooks for m in model.modules())
