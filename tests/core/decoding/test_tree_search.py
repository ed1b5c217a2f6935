"""Search over transitions with random weights: whole trees, scored as they were trained."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from support.models import make, side, small
from support.trees import replay

from synmt_cli.core.decoding.beam import search
from synmt_cli.core.decoding.hypothesis import LONGEST, LengthLimit, Rules, limits, normalised_score
from synmt_cli.core.model.modifier import Side
from synmt_cli.core.text.vocabulary import BOS, EOS
from synmt_cli.core.transitions.grammar import FEATURES, OTHER, Grammar
from synmt_cli.core.trees.arc_standard import ARCS, OPENING, PIECES, Move, attachments
from synmt_cli.core.variants import plan
from synmt_cli.core.variants.stack import StackSpec

MOVES = [OTHER, OTHER, OTHER, Move.FINISH, OTHER]
MOVES += [move for move in Move if move not in (Move.FINISH, Move.LABEL) for _ in range(3)]
GRAMMARS = {
    split: Grammar(
        np.array([*MOVES, *([Move.LABEL] * 2 if split else [])]),
        np.arange(len(MOVES) + 2 * split) % 4,
        ("a", "b", "c"),
        split,
    )
    for split in (False, True)
}
SOURCES = [[4, 7, 9, 3], [5, 10, 8, 9, 6, 3], [4, 3]]
NAMES = ["linearized", "parent", "gcn", "parent+gcn", "bitran+linearized", "rel+parent"]


def model(name, split=False, seed=1):
    one, grammar = plan(name), GRAMMARS[split]
    setting = StackSpec(small("pre"), 2, 3, "decoder")
    torch.manual_seed(seed)
    net = make(small("pre"), [], one.decoder(setting, {}), n=len(grammar.moves))
    torch.manual_seed(seed)
    for parameter in net.parameters():
        torch.nn.init.normal_(parameter, 0.0, 0.4)
    net.rereads, net.grammar = one.rereads, grammar
    return net


def moves_of(ids, grammar):
    return [Move(grammar.moves[id]) for id in ids]


def target(ids, grammar, lenient=False):
    """BOS and the ids, with the features by the transition system."""
    found = attachments(moves_of(ids, grammar), grammar.split, lenient)
    arcs = [2**30, *(at + 1 if at < 2**30 else at for at in found.at)]
    values = [
        arcs,
        [0, *(p + 1 for p in found.begin)],
        [0, *(p + 1 for p in found.end)],
        [0 if at == 2**30 else int(grammar.labels[ids[at - 1]]) for at in arcs],
    ]
    features = {n: torch.tensor([v]) for n, v in zip(FEATURES, values, strict=True)}
    return Side(torch.tensor([[BOS, *ids]]), features=features)


def log_prob(net, source, tokens, lenient=False):
    """Of tokens by teacher forcing."""
    prefix = target(tokens[:-1], net.grammar, lenient)
    states, _ = net.decode(prefix, net.encode(side([source])))
    each = net.logits(states[0]).log_softmax(-1)
    return each[range(len(tokens)), tokens].sum().item()


def n_words(moves):
    return sum(move in (Move.BEGIN, *OPENING) for move in moves)


@torch.inference_mode()
@pytest.mark.parametrize("beam", [1, 3])
@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_random_weights_write_whole_trees_scored_as_trained(name, split, beam):
    net = model(name, split)
    found = search([net], side(SOURCES), Rules(beam=beam, nbest=beam))
    for source, nbest, limit in zip(SOURCES, found, limits(side(SOURCES), LONGEST), strict=True):
        for one in nbest:
            assert one.cut == (one.length == limit)
            moves = moves_of(one.ids, net.grammar)
            words = [
                Move.BEGIN if move in OPENING else move
                for move in moves
                if move not in (Move.CONTINUE, Move.LABEL)
            ]
            assert len(replay(words)) == n_words(moves)
            assert one.length == 1 + sum(move in PIECES for move in moves) <= limit
            assert one.score == pytest.approx(normalised_score(one.log_prob, one.length, 0.6))
            assert one.log_prob == pytest.approx(
                log_prob(net, source, [*one.ids, EOS]), rel=1e-4, abs=1e-4
            )


@torch.inference_mode()
@pytest.mark.parametrize("beam", [1, 3])
@pytest.mark.parametrize("name", ["linearized", "parent+gcn"])
def test_unconstrained_search_reads_what_it_wrote_leniently(name, beam):
    n_broken = 0
    for seed in range(4):
        net = model(name, seed=seed)
        found = search([net], side(SOURCES), Rules(beam=beam, constrained=False))
        for source, (one, *_) in zip(SOURCES, found, strict=True):
            moves = moves_of(one.ids, net.grammar)
            ended = one.length > sum(move in PIECES for move in moves)
            tokens = [*one.ids, EOS] if ended else one.ids
            n_broken += n_words(moves) != 1 + sum(move in ARCS for move in moves)
            expected = log_prob(net, source, tokens, lenient=True)
            assert one.log_prob == pytest.approx(expected, rel=1e-4, abs=1e-4)
    assert n_broken


@torch.inference_mode()
@pytest.mark.parametrize("longest", [1, 2, 4])
def test_short_limits_still_leave_whole_trees(longest):
    for name in ("linearized", "gcn"):
        net = model(name)
        for beam in (1, 4):
            for nbest in search(
                [net], side(SOURCES), Rules(beam=beam, longest=LengthLimit(0, longest))
            ):
                (one,) = nbest
                assert 1 < one.length <= max(longest, 2)
                assert one.cut == (one.length >= longest)
                moves = moves_of(one.ids, net.grammar)
                assert n_words(moves) == 1 + sum(move in ARCS for move in moves)


@torch.inference_mode()
def test_fewer_trees_than_asked_for_are_all_found():
    """One piece at most: as many translations as tokens that begin a word."""
    net = model("parent")
    begins = sorted(i for i, move in enumerate(net.grammar.moves) if move == Move.BEGIN)
    for nbest in search([net], side(SOURCES), Rules(beam=9, nbest=9, longest=LengthLimit(0, 2))):
        assert sorted(one.ids[0] for one in nbest) == begins
        assert all(len(one.ids) == 1 and one.cut for one in nbest)


@torch.inference_mode()
@pytest.mark.parametrize("beam", [1, 4])
def test_other_sources_in_the_batch_change_nothing(beam):
    net = model("gcn")
    together = search([net], side(SOURCES), Rules(beam=beam, nbest=beam))
    for source, nbest in zip(SOURCES, together, strict=True):
        alone = search([net], side([source]), Rules(beam=beam, nbest=beam))[0]
        assert [one.ids for one in alone] == [one.ids for one in nbest]


@torch.inference_mode()
def test_decoders_over_one_grammar_make_an_ensemble():
    a, b = model("parent"), model("linearized", seed=2)
    for source, nbest in zip(SOURCES, search([a, b], side(SOURCES), Rules(beam=2)), strict=True):
        tokens = [*nbest[0].ids, EOS]
        prefix = target(tokens[:-1], a.grammar)
        each = []
        for net in (a, b):
            states, _ = net.decode(prefix, net.encode(side([source])))
            each.append(net.logits(states[0]).softmax(-1)[range(len(tokens)), tokens])
        assert nbest[0].log_prob == pytest.approx(
            ((each[0] + each[1]) / 2).log().sum().item(), rel=1e-4
        )
