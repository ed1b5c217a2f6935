"""GPS against explicit loops: paths, their LSTM, the second dot product. Xie et al. (2021)."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from support.models import make, small
from support.parsed_sources import (
    IDS,
    LABELS,
    TREES,
    drawn,
    label_id,
    same_sentence,
    source,
    upward,
    words,
)
from support.reference import array, encode
from support.trees import path_of

from synmt_cli.core.data.labels import Labels
from synmt_cli.core.model.attention import scaled_product
from synmt_cli.core.model.modifier import Dot, Modifier, Site
from synmt_cli.core.trees.features import FEATURES, PieceTree
from synmt_cli.core.variants.gps import gps
from synmt_cli.core.variants.path_lstm import side_by_side
from synmt_cli.core.variants.stack import StackSpec
from synmt_cli.errors import UsageError

N_LAYERS, N_HEADS, D_HEAD, D = 2, 3, 4, 12
EXACT = {"rtol": 0, "atol": 1e-10}
CLOSE = {"rtol": 1e-6, "atol": 1e-6}  # sinusoids are of single precision
# Tom and John go to school together (Figure 1), as Universal Dependencies have it.
TOM_AND_JOHN = PieceTree(
    [3, 2, 0, -1, 5, 3, 3],
    ["nsubj", "cc", "conj", "root", "case", "obl", "advmod"],
    [0],
    range(7),
)


def setting(**changes):
    return StackSpec(small(**changes), N_LAYERS, len(LABELS))


def path(tree, word):
    """Section 3.2: label ids from the root to a word, both included."""
    return [label_id(tree.deprels[w]) for w in reversed(upward(tree, word))]


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm(modifier, labels):
    """s = LSTM(p): the last hidden state over the labels' embeddings, the root's first."""
    cell, h, c = modifier.lstm, np.zeros(D), np.zeros(D)
    for label in labels:
        table = array(modifier.label.weight)
        x = table[label] if label else table[1:].mean(0)  # 0: a label that training did not have
        gates = array(cell.weight_ih) @ x + array(cell.weight_hh) @ h
        gates = gates + array(cell.bias_ih) + array(cell.bias_hh)
        i, f, g, o = np.split(gates, 4)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
    return h


def second_term(modifier, layer, h, one, other):
    """(s_i W_s^Q)(s_j W_s^K)^T / sqrt(d_z) of eq. 5; one, other: paths."""
    q, k = np.split(array(modifier.qk[str(layer)].weight), 2)  # (D, D) each, rows out
    part = slice(h * D_HEAD, (h + 1) * D_HEAD)
    query, key = (q @ lstm(modifier, one))[part], (k @ lstm(modifier, other))[part]
    return float(query @ key) / math.sqrt(D_HEAD)


def check(model, modifier, layers):
    states = model.encode(source()).states
    for b, (ids, tree) in enumerate(zip(IDS, TREES, strict=True)):
        of_word = words(tree)

        def score(layer, h, t, j, s, tree=tree, of_word=of_word):
            one, other = of_word[t], of_word[j]
            if layer not in layers or not same_sentence(tree, one, other):
                return s
            return s + second_term(modifier, layer, h, path(tree, one), path(tree, other))

        expected = torch.from_numpy(encode(model, ids, score))
        bound = EXACT if model.size.positions == "none" else CLOSE
        torch.testing.assert_close(states[b, : len(ids)], expected, **bound)


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize(("layer", "layers"), [(0, {0}), (1, {1}), ("all", {0, 1})])
def test_an_encoder_with_gps_equals_explicit_loops(layer, layers, norm):
    (modifier,) = gps(setting(), layer=layer)
    check(make(small(norm), [modifier]), modifier, layers)


def test_an_encoder_with_gps_equals_explicit_loops_without_absolute_positions():
    (modifier,) = gps(setting(), layer="all")
    check(make(small(positions="none"), [modifier]), modifier, {0, 1})


def added(modifier, tree, layer=0, **options):
    """The term that is added to the scores, (H, T, T), where x and q are zero."""
    ids = [[0] * (len(tree.piece_word) + 1)]
    batch = source(ids, [tree], modifier.needs, **options)
    x = torch.zeros(1, len(ids[0]), D, dtype=torch.double)
    q = torch.zeros(1, N_HEADS, len(ids[0]), D_HEAD, dtype=torch.double)
    return numbers(modifier.added(modifier.prepare(batch), Site(layer, x, q, q)))[0]


def numbers(added):
    """The term that is added, (B, H, T, T), whichever form it has."""
    return scaled_product(*added) if isinstance(added, Dot) else added


def random(**options):
    """A GPS modifier whose parameters are all random."""
    torch.manual_seed(3)
    (modifier,) = gps(setting(), **options)
    for parameter in modifier.parameters():
        torch.nn.init.normal_(parameter, 0.0, 0.6)
    return modifier.double().eval()


def test_what_two_sentences_of_a_line_get_is_of_single_precision_in_bf16():
    modifier = random().float()
    batch = source(IDS, TREES, modifier.needs)
    q = torch.zeros(len(IDS), N_HEADS, batch.ids.size(1), D_HEAD)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        state = modifier.prepare(batch)
        found = modifier.added(state, Site(0, q, q, q))
    assert state.within is not None
    assert found.dtype == torch.float32


# Paths.


def test_the_paths_of_tom_and_john():
    """From the root to the word, both labels included; `John` is Tom's conjunct."""
    assert FEATURES["path"].compute(TOM_AND_JOHN) == [
        ["root", "nsubj"],
        ["root", "nsubj", "conj", "cc"],
        ["root", "nsubj", "conj"],
        ["root"],
        ["root", "obl", "case"],
        ["root", "obl"],
        ["root", "advmod"],
    ]


@given(drawn())
@settings(max_examples=25)
def test_paths_in_a_batch_are_those_that_featurize_shows(tree):
    labels = Labels(LABELS)
    batch = source([[0] * (len(tree.piece_word) + 1)], [tree], ("path",))
    emitted = [[labels.id(label) for label in path] for path in FEATURES["path"].compute(tree)]
    rows = batch.features["path"][0].tolist()
    assert [path_of(batch.paths, row) for row in rows] == [*emitted, []]


def test_a_path_is_read_from_the_root_and_to_its_end():
    """Neither the set of its labels nor its length says where a word is."""
    modifier = random()
    tree = PieceTree([-1, 0, 1, 0, 3], ["root", "nsubj", "obj", "obj", "nsubj"], [0], range(5))
    terms = added(modifier, tree)
    assert not torch.allclose(terms[:, 0, 2], terms[:, 0, 4])
    for j, labels in enumerate([[1], [1, 2], [1, 2, 4], [1, 4], [1, 4, 2]]):
        expected = second_term(modifier, 0, 1, [1, 2], labels)
        assert terms[1, 1, j].item() == pytest.approx(expected, abs=1e-12)


def test_words_with_the_same_path_are_the_same():
    tree = PieceTree([-1, 0, 0, 0], ["root", "obj", "det", "obj"], [0], range(4))
    terms = added(random(), tree)
    assert torch.equal(terms[:, 1], terms[:, 3])
    assert torch.equal(terms[:, :, 1], terms[:, :, 3])
    assert not torch.allclose(terms[:, 1], terms[:, 2])


def test_a_label_that_training_never_met_is_a_step_like_others():
    modifier = random()
    tree = PieceTree([-1, 0, 1], ["root", "vocative", "obj"], [0], range(3))
    expected = second_term(modifier, 0, 0, [1, 0, 4], [1, 0])
    assert added(modifier, tree)[0, 2, 1].item() == pytest.approx(expected, abs=1e-12)
    assert abs(expected - second_term(modifier, 0, 0, [1, 4], [1])) > 1e-3


@pytest.mark.parametrize("width", [8, 20])
def test_the_lstm_takes_one_step_for_each_distinct_prefix(width):
    """Each prefix is computed once, whatever the number of words and the padding."""
    modifier, steps = random(), []
    modifier.lstm.register_forward_hook(lambda cell, given, out: steps.append(len(given[0])))
    modifier.prepare(source([[0] * 8] * 3, [TOM_AND_JOHN] * 3, modifier.needs, width=width))
    paths = FEATURES["path"].compute(TOM_AND_JOHN)
    prefixes = {tuple(map(label_id, path[:n])) for path in paths for n in range(1, len(path) + 1)}
    assert sum(steps) == len(prefixes)
    assert len(steps) == 4  # the longest path


def test_paths_side_by_side_give_the_states_of_paths_by_prefix():
    """The form for a GPU gives the same vectors, and the same gradients of every parameter."""
    modifier = random()
    paths = source().paths
    x = modifier.label(paths.labels)  # (P, D)
    by_prefix, beside = modifier._by_prefix(x, paths), side_by_side(modifier.lstm, x, paths)
    torch.testing.assert_close(beside, by_prefix, **EXACT)
    weight = torch.randn_like(beside)
    parameters = [modifier.label.weight, *modifier.lstm.parameters()]
    found, expected = (
        torch.autograd.grad((out * weight).sum(), parameters, retain_graph=True)
        for out in (beside, by_prefix)
    )
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, **EXACT)


@given(drawn())
@settings(max_examples=25)
def test_sequences_of_paths_have_every_path_at_its_place(tree):
    paths = source([[0] * (len(tree.piece_word) + 1)], [tree], ("path",)).paths
    n_steps, n_columns = len(paths.whole), max(1, paths.whole.size(1))
    assert n_steps == len(paths.sizes) - 1
    for row, place in enumerate(paths.places.tolist()):
        column = [paths.whole[step, place % n_columns].item() for step in range(n_steps)]
        length = place // n_columns
        labels = [paths.labels[one].item() for one in column[:length]]
        assert labels == path_of(paths, row)
        assert column[:length][-1:] in ([row], [])


# Pairs without a second term: 0 is added, not minus infinity.


def test_words_of_two_sentences_have_no_second_term():
    tree = PieceTree([-1, 0, 3, -1], ["root", "obj", "det", "root"], [0, 2], range(4))
    terms = added(random(), tree)
    for i in range(4):
        for j in range(4):
            assert (terms[:, i, j] != 0).all() == (i // 2 == j // 2)
            assert terms[:, i, j].isfinite().all()


def test_words_of_two_sentences_attend_to_each_other():
    """The mask of section 3.3 applies to the second term alone."""

    class Weights(Modifier):
        def __init__(self):
            super().__init__([0])

        def context(self, state, site, weights, context):
            self.weights = weights
            return context

    watch = Weights()
    make(small(), [*gps(setting()), watch]).encode(source())
    assert (watch.weights[1, :, :5, :5] > 0).all()  # two sentences and EOS


def test_neither_eos_nor_pieces_outside_the_tree_have_a_second_term():
    terms = added(random(), TREES[2])  # a root, a piece of no word, its vocative; EOS
    for i in (0, 2):
        assert (terms[:, i, [0, 2]] != 0).all()
    for outside in (1, 3):
        assert (terms[:, outside] == 0).all()
        assert (terms[:, :, outside] == 0).all()


# Parameters: where they are, and when they change nothing.


@pytest.mark.parametrize("half", ["both", "queries", "keys"])
def test_projections_of_zeros_are_the_plain_transformer(half):
    (modifier,) = gps(setting(), layer="all")
    model, plain = make(small(), [modifier]), make(small())
    rows = {"both": slice(None), "queries": slice(D), "keys": slice(D, None)}[half]
    for projection in modifier.qk.values():
        projection.weight.data[rows] = 0
    plain.load_state_dict(model.state_dict(), strict=False)
    batch = source()
    found, expected = model.encode(batch).states, plain.encode(batch).states
    torch.testing.assert_close(found[~batch.pad], expected[~batch.pad], rtol=0, atol=1e-12)


@pytest.mark.parametrize(("layer", "layers"), [(0, [0]), (1, [1]), ("all", [0, 1])])
def test_one_lstm_serves_all_layers_and_each_has_its_projections(layer, layers):
    (modifier,) = gps(setting(), layer=layer)
    shapes = {name: tuple(p.shape) for name, p in modifier.named_parameters()}
    lstm = {"weight_ih": (4 * D, D), "weight_hh": (4 * D, D), "bias_ih": (4 * D,)}
    lstm["bias_hh"] = (4 * D,)
    assert shapes == {
        "label.weight": (len(LABELS) + 1, D),
        **{f"lstm.{name}": shape for name, shape in lstm.items()},
        **{f"qk.{i}.weight": (2 * D, D) for i in layers},
    }
    assert modifier.layers == set(layers)


def test_values_come_from_the_tokens_alone():
    (modifier,) = gps(setting())
    weights, context = torch.rand(1, N_HEADS, 4, 4), torch.rand(1, N_HEADS, 4, D_HEAD)
    state = modifier.prepare(source([[0] * 4], [TREES[2]], modifier.needs))
    site = Site(0, torch.zeros(1, 4, D), context, context)
    assert torch.equal(modifier.context(state, site, weights, context), context)


def test_terms_do_not_depend_on_the_tokens():
    """Section 3.3: no product of a word and a path."""
    modifier, site = random(), Site(0, *[torch.rand(1, N_HEADS, 4, D_HEAD).double()] * 3)
    state = modifier.prepare(source([[0] * 4], [TREES[2]], modifier.needs))
    found = numbers(modifier.added(state, site))
    torch.testing.assert_close(found[0], added(modifier, TREES[2]), rtol=0, atol=1e-12)


def test_dropout_is_that_of_embeddings_and_can_be_left_out():
    for dropout in (True, False):
        torch.manual_seed(5)
        (modifier,) = gps(setting(dropout=0.5), dropout=dropout)
        modifier.double().train()
        one, two = (added(modifier, TOM_AND_JOHN) for _ in range(2))
        assert torch.equal(one, two) != dropout
        modifier.eval()
        one, two = (added(modifier, TOM_AND_JOHN) for _ in range(2))
        assert torch.equal(one, two)


@pytest.mark.parametrize("layer", [-1, 2, 6])
def test_a_layer_that_does_not_exist_is_refused(layer):
    with pytest.raises(UsageError, match=rf"gps\.layer must be within 0\.\.1.*{layer}"):
        gps(setting(), layer=layer)
