"""Structural absolute positions against explicit loops. Wang et al. (2019), eqs. 3, 5, 7."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from support.models import logits, make, side, small
from support.parsed_sources import IDS, TREES, source, upward, words, words_only
from support.reference import array, encode, sinusoid, tokens

from synmt_cli.core.run.config import from_settings, resolve
from synmt_cli.core.trees.features import FEATURES, PieceTree
from synmt_cli.core.variants import plan
from synmt_cli.core.variants.stack import StackSpec
from synmt_cli.core.variants.structural import struct_abs
from synmt_cli.errors import SynmtError

N_LAYERS, D, D_HEAD = 2, 12, 4
CLOSE = {"rtol": 1e-6, "atol": 1e-6}  # sinusoids are of single precision


def setting(**changes):
    return StackSpec(small(**changes), N_LAYERS)


def levels(tree):
    """Eq. 5 and the text after it: subwords share a depth, and EOS is below the deepest word."""
    found = [0 if w is None else len(upward(tree, w)) - 1 for w in words(tree)[:-1]]
    return [*found, max(found) + 1]


def nonlinear(modifier, t, level):
    """Eq. 7, one token: tanh(PE_seq U + PE_stru W + b)."""
    u, w = array(modifier.sequential.weight), array(modifier.structural.weight)
    bias = array(modifier.structural.bias)
    return np.tanh(u @ sinusoid(t, D) + w @ sinusoid(level, D) + bias)


def added(modifier, t, level):
    """Footnote 1, one token: PE_seq + PE_stru."""
    return sinusoid(t, D) + sinusoid(level, D)


def alone(modifier, t, level):
    """Table 1, rows 2 and 3: no sequential position to fuse with."""
    return sinusoid(level, D)


FORMS = [
    ({}, "sinusoid", nonlinear),
    ({"fuse": "nonlinear"}, "sinusoid", nonlinear),
    ({"fuse": "add"}, "sinusoid", added),
    ({}, "none", alone),
    ({"fuse": "add"}, "none", alone),
]


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize(("options", "positions", "fused"), FORMS)
def test_an_encoder_with_depths_equals_explicit_loops(options, positions, fused, norm):
    size = small(norm, positions=positions)
    (modifier,) = struct_abs(StackSpec(size, N_LAYERS), **options)
    model = make(size, [modifier])
    states = model.encode(source()).states
    for b, (ids, tree) in enumerate(zip(IDS, TREES, strict=True)):
        p = np.array([fused(modifier, t, level) for t, level in enumerate(levels(tree))])
        x = tokens(model.encoder.embedding, ids) + p
        expected = torch.from_numpy(encode(model, ids, x=x))
        torch.testing.assert_close(states[b, : len(ids)], expected, **CLOSE)


def positions(modifier, depths, p=None):
    """The positions, (T, D), that the modifier makes from the depths of one sentence."""
    batch = side([[0] * len(depths)], struct_abs=[depths])
    if p is None:
        p = torch.from_numpy(np.array([sinusoid(t, D) for t in range(len(depths))]))
    state, zero = modifier.prepare(batch), torch.zeros(1, len(depths), D, dtype=torch.double)
    assert torch.equal(modifier.tokens(state, zero), zero)
    return modifier.positions(state, p[None])[0]


@pytest.mark.parametrize("fuse", ["nonlinear", "add"])
def test_depth_and_place_both_matter(fuse):
    (modifier,) = struct_abs(setting(), fuse=fuse)
    found = positions(modifier.double(), [1, 1, 0])
    other = positions(modifier, [1, 2, 0])
    assert not torch.allclose(found[0], found[1])
    assert not torch.allclose(found[1], other[1])
    assert torch.equal(found[[0, 2]], other[[0, 2]])


def test_depths_of_zero_add_the_same_to_each_token():
    (modifier,) = struct_abs(setting(), fuse="add")
    zero = torch.zeros(4, D, dtype=torch.double)
    found = positions(modifier, [0, 0, 0, 0], zero)
    torch.testing.assert_close(found, torch.tensor([0.0, 1.0] * (D // 2)).double().expand(4, D))


def test_the_nonlinear_form_stays_within_one():
    (modifier,) = struct_abs(setting())
    for parameter in modifier.parameters():
        torch.nn.init.normal_(parameter, 0.0, 9.0)
    found = positions(modifier.double(), [0, 1, 2, 100])
    assert (found.abs() <= 1).all()


def test_the_origin_is_the_root_and_subwords_share_its_place():
    tree = PieceTree([1, -1, 1], ["det", "root", "obj"], [0], [0, 0, 1, 1, 1, 2])
    assert levels(tree) == [1, 1, 0, 0, 0, 1, 2]
    assert source([[0] * 7], [tree]).features["struct_abs"][0].tolist() == levels(tree)


def test_eos_is_below_the_deepest_word_of_all_sentences():
    tree = PieceTree([-1, 0, 1, -1], ["root"] * 4, [0, 3], range(4))
    values = FEATURES["struct_abs"].compute(tree)
    assert (values, FEATURES["struct_abs"].eos(tree)) == ([0, 1, 2, 0], 3)


def test_eos_is_below_a_word_that_has_no_piece():
    """Wang et al., section 3.1: it is one below the third word, which has no piece."""
    tree = PieceTree([-1, 0, 1], ["root", "obj", "det"], [0], [0, 1])
    assert FEATURES["struct_abs"].compute(tree) == [0, 1]
    assert FEATURES["struct_abs"].eos(tree) == 3
    assert FEATURES["struct_abs"].eos(PieceTree([], [], [0], [-1, -1])) == 1


def test_wang_gives_bush_held_a_talk_these_depths():
    """Figure 1: `held` is the origin."""
    assert FEATURES["struct_abs"].compute(words_only([1, -1, 3, 1])) == [1, 0, 2, 1]


# Parameters.


def test_the_nonlinear_form_has_two_matrices_and_a_bias():
    (modifier,) = struct_abs(setting())
    shapes = {name: tuple(p.shape) for name, p in modifier.named_parameters()}
    assert shapes == {
        "sequential.weight": (D, D),
        "structural.weight": (D, D),
        "structural.bias": (D,),
    }


@pytest.mark.parametrize(
    ("options", "positions"),
    [({"fuse": "add"}, "sinusoid"), ({}, "none"), ({"fuse": "add"}, "none")],
)
def test_other_forms_have_no_parameters(options, positions):
    (modifier,) = struct_abs(setting(positions=positions), **options)
    assert not list(modifier.parameters())


def test_attention_is_left_alone():
    (modifier,) = struct_abs(setting())
    assert not modifier.layers


@pytest.mark.parametrize("fuse", ["tanh", "", "Add"])
def test_an_unknown_form_is_refused(fuse):
    with pytest.raises(SynmtError, match=r"struct-abs\.fuse: expected one of nonlinear, add"):
        resolve("struct-abs", "tiny", from_settings([f"struct-abs.fuse={fuse}"]))


# Table 1: which of four kinds of position the encoder has. The decoder is always the same.

ABS, REL = 2 * D * D + D, N_LAYERS * 2 * 33 * D_HEAD
TABLE_1 = {  # row: variant, absolute sequential positions, parameters
    1: ("vanilla", "none", 0),
    2: ("struct-abs", "none", 0),
    3: ("struct-rel", "none", REL),
    4: ("vanilla", "sinusoid", 0),
    5: ("struct-abs", "sinusoid", ABS),
    6: ("struct-abs+struct-rel", "sinusoid", ABS + REL),
    7: ("rel", "sinusoid", REL),
    8: ("rel+struct-abs", "sinusoid", REL + ABS),
    9: ("rel+struct-abs+struct-rel", "sinusoid", 2 * REL + ABS),
}


def row(number):
    """The model of one row; the parts that rows have in common have the same weights."""
    variant, positions, _ = TABLE_1[number]
    size, options = small(positions=positions), {"rel": {"stack": "encoder"}}
    there = StackSpec(size, N_LAYERS)
    model = make(size, plan(variant).encoder(there, options), plan(variant).decoder(there, options))
    model.load_state_dict(make(small()).state_dict(), strict=False)
    return model


def test_the_nine_rows_of_wangs_table_1_are_nine_models():
    batch = source()
    found = {n: row(n).encode(batch).states[~batch.pad] for n in TABLE_1}
    for one in TABLE_1:
        for other in range(one + 1, 10):
            assert not torch.allclose(found[one], found[other]), (one, other)


@pytest.mark.parametrize("number", TABLE_1)
def test_a_row_has_the_parameters_of_its_positions_and_the_plain_decoder(number):
    model, plain = row(number), make(small())
    count = [sum(p.numel() for p in m.parameters()) for m in (model, plain)]
    assert count[0] - count[1] == TABLE_1[number][2]
    assert not len(model.decoder.modifiers)


def test_a_row_without_any_position_cannot_tell_the_order_of_words():
    """This is why row 1 loses 16 BLEU. With any kind of position, order matters."""
    ids, order = [4, 7, 9, 3], [2, 0, 1, 3]
    one, other = side([ids]), side([[ids[i] for i in order]])
    states = row(1).encode(one).states[0, order]
    torch.testing.assert_close(row(1).encode(other).states[0], states, rtol=0, atol=1e-12)
    assert not torch.allclose(row(4).encode(other).states[0], row(4).encode(one).states[0, order])


def test_structural_positions_leave_the_decoder_alone():
    model, plain = row(6), row(4)
    memory = plain.encode(source())
    target = side([[2, 5, 6], [2, 9], [2, 4, 8, 7]])
    assert torch.equal(model.decode(target, memory)[0], plain.decode(target, memory)[0])
    assert not torch.allclose(logits(model, source(), target), logits(plain, source(), target))
