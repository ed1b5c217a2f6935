"""Vectors for relations of two tokens: Shaw's, Omote's, Wang's, against explicit loops.

Shaw et al. (2018), eqs. 3-5; Omote et al. (2019), eqs. 11-22; Wang et al. (2019), eq. 6.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from support.models import logits, make, side, small
from support.parsed_sources import (
    IDS,
    TREES,
    depth,
    drawn,
    same_sentence,
    source,
    words,
    words_only,
)
from support.reference import array, decode, encode

from synmt_cli.core.model.relations import in_context, in_scores
from synmt_cli.core.run.config import from_settings, resolve
from synmt_cli.core.trees.features import MATRICES, PieceTree
from synmt_cli.core.variants import plan
from synmt_cli.core.variants.relation import dep, rel, struct_rel
from synmt_cli.core.variants.stack import StackSpec
from synmt_cli.errors import SynmtError, UsageError

N_LAYERS, N_HEADS, D_HEAD = 2, 3, 4
TARGETS = [[2, 5, 6, 8, 10], [2, 9], [2, 4, 8, 7]]
EXACT = {"rtol": 0, "atol": 1e-10}
CLOSE = {"rtol": 1e-6, "atol": 1e-6}  # sinusoids are of single precision
SWITCHES = [(True, True), (True, False), (False, True), (False, False)]
BUILDERS = {"rel": rel, "dep": dep, "struct-rel": struct_rel}


def setting(**changes):
    return StackSpec(small(**changes), N_LAYERS)


def clip(x, k):
    return max(-k, min(k, x))


# The relation of each paper, one pair of tokens at a time; None: no relation.


def sequential(tree, t, j):
    return j - t


def relative_depth(tree, t, j):
    one, other = words(tree)[t], words(tree)[j]
    if not same_sentence(tree, one, other):
        return None
    return depth(tree, other) - depth(tree, one)


def structural(tree, t, j):
    """The relation by rules 1 and 2 of Wang et al."""
    of_word = words(tree)
    one, other = of_word[t], of_word[j]
    if t == j or (one == other and one is not None):
        return 0
    related = None not in (one, other) and (tree.heads[one] == other or tree.heads[other] == one)
    if related:
        return level(tree, t) - level(tree, j)
    return (1 if t > j else -1) * (level(tree, t) + level(tree, j))


def level(tree, t):
    """The absolute structural position: the depth; for EOS, one more than the greatest."""
    of_word = words(tree)
    if t == len(of_word) - 1:
        return 1 + max(level(tree, j) for j in range(t))
    return 0 if of_word[t] is None else depth(tree, of_word[t])


RELATIONS = {"rel": sequential, "dep": relative_depth, "struct-rel": structural}


def table_sum(modifiers, name, tree):
    """Reference hook: the sum over modifiers of the rows of their tables `name`."""

    def vector(layer, t, j):
        total = np.zeros(D_HEAD)
        for modifier, relation, k in modifiers:
            table = getattr(modifier, name)
            if table is not None:
                r = relation(tree, t, j)
                total += array(table)[layer, 2 * k + 1 if r is None else k + clip(r, k)]
        return total

    return vector


def check_encoder(model, modifiers):
    """Compares every sentence of the batch with the loops."""
    states = model.encode(source()).states
    for b, (ids, tree) in enumerate(zip(IDS, TREES, strict=True)):
        key, value = (table_sum(modifiers, name, tree) for name in ("key", "value"))
        expected = torch.from_numpy(encode(model, ids, key=key, value=value))
        bound = EXACT if model.size.positions == "none" else CLOSE
        torch.testing.assert_close(states[b, : len(ids)], expected, **bound)


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("k", [1, 2, 16])
@pytest.mark.parametrize("name", BUILDERS)
def test_an_encoder_with_relations_equals_explicit_loops(name, k, norm):
    (modifier,) = BUILDERS[name](setting(), clip=k)
    check_encoder(make(small(norm), [modifier]), [(modifier, RELATIONS[name], k)])


@pytest.mark.parametrize(("keys", "values"), SWITCHES)
@pytest.mark.parametrize("name", BUILDERS)
def test_keys_and_values_are_switched_apart(name, keys, values):
    built = BUILDERS[name](setting(), clip=1, keys=keys, values=values)
    model = make(small(positions="none"), built)
    check_encoder(model, [(modifier, RELATIONS[name], 1) for modifier in built])
    for modifier in built:
        assert (modifier.key is None, modifier.value is None) == (not keys, not values)


@pytest.mark.parametrize("pair", [("dep", "rel"), ("rel", "struct-rel"), ("dep", "struct-rel")])
def test_vectors_of_two_relations_are_summed(pair):
    """Omote et al., eqs. 21-22: both in one score, both in one value."""
    built = [BUILDERS[name](setting(), clip=2)[0] for name in pair]
    model = make(small(), built)
    found = zip(built, map(RELATIONS.get, pair), (2, 2), strict=True)
    check_encoder(model, list(found))


@pytest.mark.parametrize("k", [1, 3])
def test_a_decoder_with_relations_equals_explicit_loops(k):
    (modifier,) = rel(setting(), clip=k)
    model = make(small(), decoder=[modifier])
    found = logits(model, source(), side(TARGETS))
    for b, target in enumerate(TARGETS):
        key, value = (table_sum([(modifier, sequential, k)], n, None) for n in ("key", "value"))
        expected = torch.from_numpy(decode(model, target, encode(model, IDS[b]), key, value))
        torch.testing.assert_close(found[b, : len(target)], expected, **CLOSE)


OMOTE = [1, 2, -1, 5, 5, 2, 2]  # My father bought a red car . (Figure 2)
TABLE_1 = """
0 -1 -2 0 0 -1 -1
1 0 -1 1 1 0 0
2 1 0 2 2 1 1
0 -1 -2 0 0 -1 -1
0 -1 -2 0 0 -1 -1
1 0 -1 1 1 0 0
1 0 -1 1 1 0 0
"""

# The row that each pair of tokens uses, shown by tables whose vectors hold their row numbers.


def rows(name, trees, k):
    """The row of the key table and of the value table for every pair: two (B, T, T)."""
    (modifier,) = BUILDERS[name](setting(), clip=k)
    modifier.double()
    for table in (modifier.key.data, modifier.value.data):
        table.zero_()
        table[..., 0] = torch.arange(table.size(1))
    ids = [[0] * (len(tree.piece_word) + 1) for tree in trees]
    batch = source(ids, trees, modifier.needs)
    b, t = batch.ids.shape
    q = torch.zeros(b, N_HEADS, t, D_HEAD, dtype=torch.double)
    q[..., 0] = D_HEAD**0.5
    related = modifier.related(modifier.prepare(batch), layer=1)
    keys = in_scores(related, q)
    by_column = []
    for j in range(t):
        weights = torch.zeros(b, N_HEADS, t, t, dtype=torch.double)
        weights[..., j] = 1
        by_column.append(in_context(related, weights)[..., 0])
    values = torch.stack(by_column, -1)
    for found in (keys, values):
        assert (found == found[:, :1]).all()  # the heads share a table
    torch.testing.assert_close(keys[:, 0], values[:, 0])
    return keys[:, 0].round().long(), values[:, 0].round().long()


@pytest.mark.parametrize("k", [2, 1])
def test_omotes_table_1_from_heads_to_rows(k):
    """At l = 2 nothing is clipped."""
    lines = TABLE_1.strip().split("\n")
    expected = torch.tensor([[int(x) for x in line.split()] for line in lines])
    for found in rows("dep", [words_only(OMOTE)], k):
        assert torch.equal(found[0, :7, :7] - k, expected.clamp(-k, k))


def test_wangs_rules_sign_dependents_by_depth_and_others_by_order():
    """Figure 1: "held" and "talk" are two words apart and one arc."""
    bush, held, a, talk, _, sharon = range(6)  # Bush held a talk with Sharon
    found = rows("struct-rel", [words_only([1, -1, 3, 1, 5, 1])], 16)[0][0] - 16
    assert (found[talk, held], found[held, talk]) == (1, -1)
    assert (found[a, talk], found[talk, a]) == (1, -1)
    assert (found[bush, held], found[held, bush]) == (1, -1)  # by depth, whatever the order
    assert (found[talk, bush], found[bush, talk]) == (2, -2)
    assert (found[a, held], found[held, a]) == (2, -2)
    assert (found[sharon, a], found[a, sharon]) == (3, -3)
    assert (found.diagonal() == 0).all()


def test_wangs_distance_is_the_way_through_the_root():
    """In a chain 1 <- 2 <- 3 <- 4 it is four between the second and the last, not two."""
    found = rows("struct-rel", [words_only([-1, 0, 1, 2])], 16)[0][0] - 16
    assert (found[3, 1], found[1, 3]) == (4, -4)
    assert (found[3, 0], found[0, 3]) == (3, -3)
    assert (found[2, 1], found[1, 2]) == (1, -1)


def test_shaw_counts_from_the_query_to_the_key():
    found = rows("rel", [words_only([-1, 0, 0, 0])], 2)[0][0] - 2
    assert found[0].tolist() == [0, 1, 2, 2, 2]
    assert found[3].tolist() == [-2, -2, -1, 0, 1]


@pytest.mark.parametrize("k", [1, 2, 4])
def test_a_deep_chain_is_clipped_at_both_ends(k):
    chain = words_only([-1, 0, 1, 2, 3, 4])
    expected = [[clip(j - i, k) for j in range(6)] for i in range(6)]
    for found in rows("dep", [chain], k):
        assert (found[0, :6, :6] - k).tolist() == expected


def test_depths_of_another_sentence_are_no_relation():
    """EOS and pieces outside the tree have none either, but the row after the 2 l + 1 others."""
    tree = PieceTree([-1, 0, 3, -1], ["root", "obj", "det", "root"], [0, 2], [0, 1, -1, 2, 3])
    (found,) = rows("dep", [tree], 2)[0]
    groups = [[0, 1], [3, 4]]
    for i in range(6):
        for j in range(6):
            related = any(i in group and j in group for group in groups)
            assert (found[i, j] == 5) == (not related)


def test_wangs_second_rule_holds_across_sentences():
    tree = PieceTree([-1, 0, 3, -1], ["root", "obj", "det", "root"], [0, 2], [0, 1, 2, 3])
    found = rows("struct-rel", [tree], 16)[0][0] - 16
    assert (found[2, 1], found[1, 2]) == (2, -2)  # depths 1 and 1
    assert (found[3, 1], found[1, 3]) == (1, -1)
    assert (found[3, 0], found[0, 3]) == (0, 0)  # two roots


def test_wangs_eos_is_a_last_word_below_all_others():
    (found,) = rows("struct-rel", [words_only([-1, 0, 1])], 16)[0] - 16  # depths 0 1 2, EOS 3
    assert found[3].tolist() == [3, 4, 5, 0]
    assert found[:, 3].tolist() == [-3, -4, -5, 0]


@pytest.mark.parametrize("name", ["dep", "struct-rel"])
def test_there_is_no_distance_inside_a_word(name):
    tree = PieceTree([1, -1], ["det", "root"], [0], [0, 0, 0, 1, 1])
    (found,) = rows(name, [tree], 2)[0] - 2
    assert (found[:3, :3] == 0).all()
    assert (found[3:5, 3:5] == 0).all()
    assert (found[:3, 3:5].abs() == 1).all()


def test_pieces_outside_the_tree_stand_for_themselves():
    tree = PieceTree([-1, 0], ["root", "obj"], [0], [-1, -1, 0, 1])
    (found,) = rows("struct-rel", [tree], 16)[0] - 16
    assert (found[0, 1], found[1, 0]) == (0, 0)  # depths 0 and 0
    assert (found[0, 3], found[3, 0]) == (-1, 1)


@given(drawn())
@settings(max_examples=25)
def test_rows_are_those_that_featurize_shows(tree):
    n, k = len(tree.piece_word), 2
    for name, matrix in (("dep", "dep_rel"), ("struct-rel", "struct_rel")):
        emitted = MATRICES[matrix](tree)
        expected = [[2 * k + 1 if r is None else k + clip(r, k) for r in row] for row in emitted]
        for found in rows(name, [tree], k):
            assert found[0, :n, :n].tolist() == expected


# Parameters and options.


@pytest.mark.parametrize(
    ("name", "k", "n"), [("rel", 16, 33), ("dep", 2, 6), ("struct-rel", 16, 33)]
)
def test_each_layer_has_a_row_for_each_distance(name, k, n):
    """Omote: k = l = 2 and one row for no relation; Wang: r = 16."""
    (modifier,) = BUILDERS[name](setting())
    shapes = {n: tuple(p.shape) for n, p in modifier.named_parameters()}
    assert shapes == dict.fromkeys(("key", "value"), (N_LAYERS, n, D_HEAD))
    assert modifier.layers == set(range(N_LAYERS))
    assert n in (2 * k + 1, 2 * k + 2)


def test_no_relation_begins_as_nothing():
    (modifier,) = dep(setting())
    for table in (modifier.key, modifier.value):
        assert (table[:, -1] == 0).all()
        assert (table[:, :-1].abs().sum(-1) > 0).all()


@pytest.mark.parametrize("name", BUILDERS)
def test_tables_of_zeros_are_the_plain_transformer(name):
    (modifier,) = BUILDERS[name](setting())
    model, plain = make(small(), [modifier]), make(small())
    for table in (modifier.key, modifier.value):
        table.data.zero_()
    plain.load_state_dict(model.state_dict(), strict=False)
    batch = source()
    found, expected = model.encode(batch).states, plain.encode(batch).states
    torch.testing.assert_close(found[~batch.pad], expected[~batch.pad], rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("stack", "where"), [("both", (1, 1)), ("encoder", (1, 0)), ("decoder", (0, 1))]
)
def test_rel_acts_in_the_stacks_that_are_chosen(stack, where):
    one, options = plan("rel"), {"rel": {"stack": stack}}
    built = one.encoder(setting(), options), one.decoder(setting(), options)
    assert tuple(map(len, built)) == where


@pytest.mark.parametrize("name", BUILDERS)
@pytest.mark.parametrize("k", [-1, -16])
def test_a_negative_clip_is_refused(name, k):
    with pytest.raises(UsageError, match=rf"{name}\.clip must be within 0\.\.1000, not {k}"):
        plan(name).encoder(setting(), {name: {"clip": k}})


@pytest.mark.parametrize("stack", ["above", "", "Both"])
def test_an_unknown_stack_is_refused(stack):
    with pytest.raises(SynmtError, match=r"rel\.stack: expected one of both, encoder, decoder"):
        resolve("rel", "tiny", from_settings([f"rel.stack={stack}"]))


# Omote et al., Table 3: `dep` in keys, values, both or neither, without absolute positions.

TABLE_3 = {
    "keys and values": {},
    "keys": {"values": False},
    "values": {"keys": False},
    "neither": {"keys": False, "values": False},
}


def test_the_four_rows_of_omotes_table_3_are_four_models():
    size, states, n_parameters = small(positions="none"), {}, {}
    plain = make(size)
    for row, options in TABLE_3.items():
        built = plan("dep").encoder(StackSpec(size, N_LAYERS), {"dep": options})
        model = make(size, built)
        model.load_state_dict(plain.state_dict(), strict=False)
        states[row] = model.encode(source()).states[~source().pad]
        n_parameters[row] = sum(p.numel() for m in built for p in m.parameters())
    table = N_LAYERS * 6 * D_HEAD
    assert list(n_parameters.values()) == [2 * table, table, table, 0]
    found = list(states.values())
    for i, one in enumerate(found):
        assert not any(torch.allclose(one, other) for other in found[i + 1 :])
    torch.testing.assert_close(states["neither"], plain.encode(source()).states[~source().pad])
