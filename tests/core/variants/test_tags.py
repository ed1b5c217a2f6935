"""Labels in the embedding. Sennrich and Haddow (2016), as in Bugliarello and Okazaki (2020)."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from support.models import logits, make, side, small
from support.parsed_sources import IDS, LABELS, TREES, label_id, source, words
from support.reference import array, encode, sinusoids, tokens

from synmt_cli.core.trees.features import PieceTree
from synmt_cli.core.variants.stack import StackSpec
from synmt_cli.core.variants.tags import tags
from synmt_cli.errors import UsageError

D, N_LAYERS = 12, 2
CLOSE = {"rtol": 1e-6, "atol": 1e-6}  # sinusoids are of single precision


def setting(**changes):
    return StackSpec(small(**changes), N_LAYERS, len(LABELS))


def embedded(model, modifier, ids, tree, width):
    """Token embeddings, (T, D), whose last `width` dimensions are the label's vector."""
    x = tokens(model.encoder.embedding, ids)
    for t, word in enumerate(words(tree)):
        label = 0 if word is None else label_id(tree.deprels[word])
        x[t, D - width :] = array(modifier.label.weight)[label]
    return x


@pytest.mark.parametrize("positions", ["sinusoid", "none"])
@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("width", [10, 1, 11])
def test_an_encoder_with_tags_equals_explicit_loops(width, norm, positions):
    """The token is scaled by sqrt(d), the label is not; positions are added to both."""
    size = small(norm, positions=positions)
    (modifier,) = tags(StackSpec(size, N_LAYERS, len(LABELS)), width=width)
    model = make(size, [modifier])
    states = model.encode(source()).states
    for b, (ids, tree) in enumerate(zip(IDS, TREES, strict=True)):
        p = sinusoids(range(len(ids)), D) if positions == "sinusoid" else np.zeros((len(ids), D))
        x = embedded(model, modifier, ids, tree, width) + p
        expected = torch.from_numpy(encode(model, ids, x=x))
        torch.testing.assert_close(states[b, : len(ids)], expected, **CLOSE)


def tagged(modifier, tree, x):
    """Puts labels into the embeddings x, (T, D), of a sentence."""
    batch = source([[0] * len(x)], [tree], modifier.needs)
    return modifier.tokens(modifier.prepare(batch), x[None])[0]


def test_the_first_dimensions_are_the_tokens_and_the_last_ten_the_labels():
    (modifier,) = tags(setting())
    x = torch.rand(4, D)
    found = tagged(modifier, TREES[2], x)
    assert torch.equal(found[:, :2], x[:, :2])
    table = modifier.label.weight
    assert torch.equal(found[:, 2:], table[[label_id("root"), 0, 0, 0]])


def test_subwords_have_the_label_of_their_word_without_marks():
    (modifier,) = tags(setting())
    tree = PieceTree([1, -1], ["obj", "root"], [0], [0, 0, 0, 1])
    found = tagged(modifier, tree, torch.zeros(5, D))
    assert (found[:3] == found[0]).all()
    assert not torch.equal(found[0], found[3])


def test_a_sentence_without_labels_still_replaces_the_last_dimensions():
    """A token's last dimensions are never seen, so there is no plain model inside."""
    (modifier,) = tags(setting())
    tree = PieceTree([], [], [0], [-1, -1])
    found = tagged(modifier, tree, torch.full((3, D), 7.0))
    assert (found[:, 2:] == modifier.label.weight[0]).all()


def test_the_label_table_has_a_row_for_none():
    (modifier,) = tags(setting())
    assert {name: tuple(p.shape) for name, p in modifier.named_parameters()} == {
        "label.weight": (len(LABELS) + 1, 10)
    }
    assert not modifier.layers


def test_replaced_dimensions_of_tokens_are_not_trained():
    (modifier,) = tags(setting())
    model = make(small(tied="none"), [modifier])
    logits(model, source(), side([[2, 5], [2, 9], [2, 4]])).square().sum().backward()
    gradient = model.encoder.embedding.table.weight.grad
    assert (gradient[:, D - 10 :] == 0).all()
    assert (gradient[[4, 7, 9], : D - 10] != 0).all()
    assert (modifier.label.weight.grad != 0).all(1)[[label_id("root"), 0]].all()


@pytest.mark.parametrize("width", [0, -1, 12])
def test_a_width_that_leaves_nothing_of_label_or_token_is_refused(width):
    with pytest.raises(UsageError, match=rf"tags\.width must be within 1\.\.11, not {width}"):
        tags(setting(), width=width)
