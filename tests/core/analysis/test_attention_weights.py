"""Attention weights against an explicit softmax, and one result for each record."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from support.models import queries_keys_values, side
from support.small_runs import RECORDS, SIZE, opened

from synmt_cli.core.analysis.attention import AttentionExtractor
from synmt_cli.core.text.vocabulary import BOS, EOS
from synmt_cli.errors import UsageError
from synmt_cli.formats.record import Record


def look(run, stack, records=RECORDS, layers=(), heads=(), max_pieces=100):
    return AttentionExtractor(run, stack, layers, heads).extract(records, max_pieces)


@pytest.mark.parametrize("stack", ["encoder", "decoder", "cross"])
@pytest.mark.parametrize("variant", ["vanilla", "pascal+rel"])
def test_rows_sum_to_1_and_batches_never_matter(stack, variant):
    run = opened(variant)
    found = look(run, stack)
    for one, given in zip(found, RECORDS, strict=True):
        (alone,) = look(run, stack, [given])
        assert list(one.weights) == [(layer, head) for layer in range(2) for head in range(3)]
        for key, rows in one.weights.items():
            assert rows.shape == (len(one.tokens), len(one.keys))
            assert rows.sum(1) == pytest.approx(np.ones(len(one.tokens)))
            assert rows == pytest.approx(alone.weights[key])


def softmax(rows):
    return np.exp(rows) / np.exp(rows).sum(1, keepdims=True)


def test_encoder_weights_are_the_softmax_of_scores():
    run = opened()
    ids = run.vocabularies.source.ids("def")
    x = run.model.encoder.embedding(torch.tensor([[*ids, EOS]]), [])
    q, k, _ = queries_keys_values(run.model.encoder.layers[0].attention, x)
    weights = look(run, "encoder")[0].weights
    for head in range(3):
        scores = (q[0, head] @ k[0, head].T).detach().numpy() / math.sqrt(SIZE.d_head)
        assert weights[0, head] == pytest.approx(softmax(scores))


def test_decoder_and_cross_weights_are_the_softmax_of_scores():
    run = opened()
    target = torch.tensor([[BOS, *run.vocabularies.target.ids("gh")]])
    memory = run.model.encode(side([[*run.vocabularies.source.ids("def"), EOS]])).states
    layer = run.model.decoder.layers[0]
    x = run.model.decoder.embedding(target, [])
    q, k, _ = queries_keys_values(layer.attention, x)
    scores = (q[0, 1] @ k[0, 1].T).detach().numpy() / math.sqrt(SIZE.d_head)
    scores[np.triu_indices(3, 1)] = -np.inf
    (first, *_) = look(run, "decoder")
    assert first.weights[0, 1] == pytest.approx(softmax(scores))
    assert first.tokens == first.keys == ["<s>", "g", "h"]
    x = layer.residual(0, x, lambda x: layer.attention(x, None, True, []))
    q, (k, _) = layer.cross.q(x), layer.cross.keys_values(memory)
    scores = (q[0, :, 4:8] @ k[0, 1].T).detach().numpy() / math.sqrt(SIZE.d_head)
    (first, *_) = look(run, "cross")
    assert first.weights[0, 1] == pytest.approx(softmax(scores))
    assert (first.tokens, first.keys) == (["<s>", "g", "h"], ["d", "e", "f", "</s>"])


def test_what_a_variant_does_is_seen():
    """PASCAL scales the first two heads of the bottom layer."""
    plain, scaled = (look(opened(name), "encoder")[0].weights for name in ("vanilla", "pascal"))
    assert [np.allclose(plain[0, head], scaled[0, head]) for head in range(3)] == [
        False,
        False,
        True,
    ]


def test_only_the_layers_and_heads_that_are_wanted():
    found = look(opened(), "encoder", layers=[1], heads=[2, 0])
    assert list(found[0].weights) == [(1, 0), (1, 2)]
    whole = look(opened(), "encoder")
    assert (found[0].weights[1, 2] == whole[0].weights[1, 2]).all()
    with pytest.raises(UsageError, match=r"--layers 2: the model has layers 0 to 1"):
        look(opened(), "encoder", layers=[2])
    with pytest.raises(UsageError, match=r"--heads 3: the model has heads 0 to 2"):
        look(opened(), "encoder", heads=[3])


def test_every_record_has_its_result():
    given = [
        Record("a", "", "empty", pieces=[]),
        RECORDS[0],
        Record("b", "x", "failed", "no tree", pieces=["x"]),
        RECORDS[2],
    ]
    found = look(opened(), "encoder", given, max_pieces=4)
    assert [(o.id, o.status, o.reason, bool(o.weights)) for o in found] == [
        ("a", "empty", None, False),
        ("1", "ok", None, True),
        ("b", "failed", "no tree", False),
        ("3", "skipped", "more than 4 pieces", False),
    ]
    assert look(opened(), "cross", [RECORDS[1]], max_pieces=3)[0].status == "skipped"
