"""Decoders that read the tree they build: edges by the paper's table, against explicit loops."""

from __future__ import annotations

import math
import random

import pytest
import torch
from support.models import make, queries_keys_values, side, small

from synmt_cli.core.model.modifier import Active, Modifier, Side
from synmt_cli.core.trees.arc_standard import Configuration, Move, attachments, oracle
from synmt_cli.core.trees.shapes import random_projective_tree
from synmt_cli.core.variants import plan
from synmt_cli.core.variants.gcn import gcn
from synmt_cli.core.variants.parent import HEAD, parent
from synmt_cli.core.variants.stack import StackSpec

B, C, L, R = Move.BEGIN, Move.CONTINUE, Move.LEFT, Move.RIGHT
N_LABELS = 5
# Jo@@ hn put LEFT-ARC:nsubj the coals LEFT-ARC:det RIGHT-ARC:obj out RIGHT-ARC:compound:prt
EXAMPLE = [B, C, B, L, B, B, L, R, B, R]


def random_moves(rng, n):
    """The moves of a random tree whose words have one to three pieces."""
    found = []
    for move, _ in oracle(random_projective_tree(n, rng.random)):
        found += [move, *([C] * rng.randrange(3) if move == B else [])]
    return found


def edges(moves, known):
    """The edges of the first `known` moves by section 3's table: (head, dependent, transition).

    Positions are those of the decoder's input: BOS is 0.
    """
    found, stack = [], []
    for x, move in enumerate(moves[:known], 1):
        if move == B:
            stack.append([x])
        elif move == C:
            stack[-1].append(x)
        else:
            a, b = stack.pop(), stack.pop()
            head, dependent = (a, b) if move == L else (b, a)
            found += [(h, d, x) for h in head for d in dependent]
            found += [(x, d, x) for d in dependent]
            found += [(h, x, x) for h in head]
            stack.append(head)
    return found


def target(sequences, labels=None):
    """A side of such sequences after BOS, padded, with the features that a decoder may ask for."""
    features = {name: [] for name in ("arc", "head_begin", "head_end", "arc_label")}
    for number, moves in enumerate(sequences):
        at, begin, end = attachments(moves)
        arcs = [2**30, *(x if x == 2**30 else x + 1 for x in at)]
        label = labels[number] if labels else {}
        features["arc"].append(arcs)
        features["head_begin"].append([0, *(x + 1 for x in begin)])
        features["head_end"].append([0, *(x + 1 for x in end)])
        features["arc_label"].append([label.get(x, 0) for x in arcs])
    rows = [[2, *(4 + (5 * i + move) % 7 for i, move in enumerate(moves))] for moves in sequences]
    made = side(rows, **features)
    return Side(made.ids, features=made.features)


def labelled(rng, moves):
    return {x: rng.randrange(1, N_LABELS + 1) for x, m in enumerate(moves, 1) if m in (L, R)}


def setting(**changes):
    return StackSpec(small(**changes), 2, N_LABELS, "decoder")


# --- PARENT ---------------------------------------------------------------------------------


def seen_by(modifier, prefix):
    """The tokens that head 0 sees, (T, T). The other heads see everything."""
    found = modifier.visible(modifier.prepare(prefix), prefix.ids.size(1))
    assert found[:, HEAD + 1 :].all()
    assert found.size(1) == 3
    return found[0, HEAD].tolist()


def test_the_mask_of_parent_by_hand_on_example_1():
    (modifier,) = parent(setting())
    assert modifier.layers == {0, 1}
    # <s> Jo@@ hn put LEFT-ARC:nsubj the coals LEFT-ARC:det RIGHT-ARC:obj out RIGHT-ARC:prt
    #  0   1    2   3       4         5    6        7            8        9       10
    parents = {1: {3, 4}, 2: {3, 4}, 4: {3}, 5: {6, 7}, 7: {6}, 6: {3, 8}, 8: {3}}
    parents |= {9: {3, 10}, 10: {3}}
    drawn = {1: 4, 2: 4, 4: 4, 5: 7, 7: 7, 6: 8, 8: 8, 9: 10, 10: 10}
    whole = target([EXAMPLE])
    for n in range(1, 12):
        seen = seen_by(modifier, whole[:, :n])
        for i in range(n):
            expected = {i} | (parents[i] if drawn.get(i, 99) < n else set())
            assert {j for j in range(n) if seen[i][j]} == expected


def test_the_mask_of_parent_is_the_table_at_every_prefix():
    rng = random.Random(3)
    (modifier,) = parent(setting())
    for _ in range(20):
        moves = random_moves(rng, rng.randrange(1, 9))
        whole = target([moves])
        for n in range(1, len(moves) + 2):
            seen = seen_by(modifier, whole[:, :n])
            known = {(d, h) for h, d, _ in edges(moves, n - 1)} | {(i, i) for i in range(n)}
            assert {(i, j) for i in range(n) for j in range(n) if seen[i][j]} == known


def test_the_last_layer_asks_for_the_newest_row_alone():
    (modifier,) = parent(setting())
    state = modifier.prepare(target([EXAMPLE]))
    assert torch.equal(modifier.visible(state, 1), modifier.visible(state, 11)[:, :, -1:])


class Inert(Modifier):
    """Changes nothing, but has to be asked, which the fused kernel cannot do."""

    def scores(self, state, site, scores):
        return scores


@pytest.mark.parametrize("beside", [[], [Active(Inert([0]), None)]])
def test_attention_of_parent_is_that_with_its_mask(beside):
    attention, prefix = model("parent").decoder.layers[0].attention, target([EXAMPLE])
    (modifier,) = parent(setting())
    torch.manual_seed(3)
    x = torch.randn(1, 11, 12, dtype=torch.double)
    q, k, v = queries_keys_values(attention, x)
    scores = q[0] @ k[0].mT / 2  # d_head = 4
    scores[HEAD][~torch.tensor(seen_by(modifier, prefix))] = -torch.inf
    context = scores.softmax(-1) @ v[0]
    expected = attention.out(context.transpose(0, 1).flatten(1))
    active = [Active(modifier, modifier.prepare(prefix)), *beside]
    torch.testing.assert_close(attention(x, None, False, active)[0], expected)


# --- GCN ------------------------------------------------------------------------------------


def by_loops(layer, h, moves, label, n, bias, *, labels=True, gates=True):
    """gcn(v) of a prefix of n tokens (BOS counted), an edge at a time.

    bias: (direction, label) -> (b, b').
    """
    d = h.size(-1)
    matrices = dict(zip(("self", "left", "right"), layer.message.weight.split(d), strict=True))
    if gates:
        vectors = dict(zip(("self", "left", "right"), layer.gate.weight, strict=True))
    sums = torch.zeros_like(h)
    messages = [("self", v, v, None) for v in range(n)]
    for head, dependent, x in edges(moves, n - 1):
        messages.append(("left", dependent, head, label[x]))  # to the parent
        messages.append(("right", head, dependent, label[x]))  # from the parent
    for direction, u, v, name in messages:
        b, b_gate = bias(direction, name) if labels else (0.0, 0.0)
        f = matrices[direction] @ h[u] + b
        g = 1.0
        if gates:
            score = (h[u] @ vectors[direction] + b_gate).item()
            g = 1 / (1 + math.exp(-score))
        sums[v] += g * f
    return sums.clamp(min=0)


@pytest.mark.parametrize("label_bias", ["direction", "shared"])
@pytest.mark.parametrize(
    "options", [{}, {"labels": False}, {"labels": False, "gates": False}, {"gates": False}]
)
def test_gcn_is_the_formula_edge_by_edge(options, label_bias):
    rng = random.Random(5)
    torch.manual_seed(2)
    (modifier,) = gcn(setting(), layers=2, label_bias=label_bias, **options)
    modifier = modifier.double()
    for p in modifier.parameters():
        torch.nn.init.normal_(p, 0.1, 0.5)
    sequences = [random_moves(rng, n) for n in (6, 3, 1)]
    labels = [labelled(rng, moves) for moves in sequences]
    whole = target(sequences, labels)
    for n in (1, 4, 9, min(map(len, sequences)) + 1):
        rows = slice(0, sum(len(moves) + 1 >= n for moves in sequences))
        prefix = whole[rows, :n]
        x = torch.randn(prefix.ids.size(0), n, 12, dtype=torch.double)
        found = modifier.inputs(modifier.prepare(prefix), x)
        for row, (moves, label) in enumerate(zip(sequences[rows], labels[rows], strict=True)):
            h = x[row]
            for layer in modifier.convolutions:
                shift = N_LABELS if label_bias == "direction" else 0

                def bias(direction, name, layer=layer, shift=shift):
                    place = {"self": 0, "right": name, "left": (name or 0) + shift}[direction]
                    gate = 0.0 if layer.gate_bias is None else layer.gate_bias[place]
                    return layer.bias[place], gate

                h = h + by_loops(layer, h, moves, label, n, bias, **options)
            torch.testing.assert_close(found[row], h)


def test_a_neighbour_changes_a_node_and_a_stranger_does_not():
    (modifier,) = gcn(setting(), layers=1)
    modifier = modifier.double()
    torch.manual_seed(4)
    for p in modifier.parameters():
        torch.nn.init.normal_(p, 0.3, 0.5)
    prefix = target([EXAMPLE], [{4: 1, 7: 2, 8: 3, 10: 4}])
    near = {(h, d) for h, d, _ in edges(EXAMPLE, 10)}
    state = modifier.prepare(prefix)
    torch.manual_seed(0)
    x = torch.randn(1, 11, 12, dtype=torch.double)
    before = modifier.inputs(state, x)
    for u in range(11):
        other = x.clone()
        other[0, u] += 1
        changed = (modifier.inputs(state, other) != before).any(-1)[0]
        for v in range(11):
            assert changed[v] == (u == v or (u, v) in near or (v, u) in near), (u, v)


# --- the whole decoder ----------------------------------------------------------------------

NAMES = ["bitran", "parent", "gcn", "parent+gcn", "rel+parent", "linearized", "bitran+linearized"]


def model(name, norm="pre", **options):
    one = plan(name)
    there = StackSpec(small(norm), 2, N_LABELS, "decoder")
    built = make(small(norm), [], one.decoder(there, options))
    built.rereads = one.rereads
    return built


@pytest.mark.parametrize("name", NAMES)
def test_later_tokens_change_nothing_before_them(name):
    """Row n of training is what the prefix of n tokens gives alone, whatever comes later."""
    rng = random.Random(8)
    net = model(name)
    sequences = [random_moves(rng, 4), random_moves(rng, 7)]
    labels = [labelled(rng, moves) for moves in sequences]
    whole = target(sequences, labels)
    memory = net.encode(side([[4, 7, 9, 3], [5, 3]], fill=1))
    states, _ = net.decode(whole, memory)
    spared, _ = net.decode(whole, memory, lengths := [len(moves) + 1 for moves in sequences])
    for own, same, length in zip(spared, states, lengths, strict=True):
        torch.testing.assert_close(own[:length], same[:length])
        assert not (net.rereads and own[length:].any())
    for row, moves in enumerate(sequences):
        one = net.encode(side([[4, 7, 9, 3], [5, 3]][row : row + 1]))
        for n in range(1, len(moves) + 2):
            known = whole[row : row + 1, :n]
            # A prefix alone knows no arc that is drawn after it.
            alone, _ = net.decode(target([moves[: n - 1]], labels[row : row + 1]), one)
            torch.testing.assert_close(states[row, n - 1], alone[0, -1])
            assert torch.equal(known.ids, target([moves[: n - 1]]).ids)


def test_state_and_table_agree_on_what_attaches():
    """The attachments of a prefix are those of the whole that are drawn by its end."""
    rng = random.Random(9)
    for _ in range(30):
        moves = random_moves(rng, rng.randrange(1, 10))
        whole = attachments(moves)
        for n in range(len(moves) + 1):
            state = Configuration()
            for move in moves[:n]:
                state = state.after(move)
            part = attachments(moves[:n])
            known = [at if at < n else 2**30 for at in whole.at[:n]]
            assert part.at == known
            assert state.n_tokens == n
