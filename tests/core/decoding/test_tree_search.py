"""Search over transitions with random weights: whole trees, scored as they were trained."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from support.models import make, side, small
from support.trees import lenient_attachments, replay

from synmt_cli.core.decoding.hypothesis import LONGEST, LengthLimit, Rules, limits, normalised_score
from synmt_cli.core.decoding.sampling import Sampling
from synmt_cli.core.decoding.search import search, search_each
from synmt_cli.core.model.modifier import Side
from synmt_cli.core.text.vocabulary import BOS, EOS
from synmt_cli.core.transitions.grammar import FEATURES, OTHER, Grammar
from synmt_cli.core.trees.arc_standard import (
    ARCS,
    OPENING,
    PIECES,
    Configuration,
    Move,
    attachments,
)
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
NAMES = ["linearized", "parent", "gcn", "parent+gcn", "bitran+linearized"]
NAMES += ["rel+linearized", "rel+parent"]


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
    """BOS and the ids, with the features that the transition system gives them."""
    draw = lenient_attachments if lenient else attachments
    found = draw(moves_of(ids, grammar), grammar.split)
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
    """The log-probability of the tokens by teacher forcing."""
    prefix = target(tokens[:-1], net.grammar, lenient)
    states, _ = net.decode(prefix, net.encode(side([source])))
    each = net.logits(states[0]).log_softmax(-1)
    return each[range(len(tokens)), tokens].sum().item()


def n_words(moves):
    return sum(move in (Move.BEGIN, *OPENING) for move in moves)


RULES = {
    "greedy": Rules(),
    "beam": Rules(beam=3, nbest=3),
    "sampling": Rules(nbest=3, sampling=Sampling()),
}


@torch.inference_mode()
@pytest.mark.parametrize("rules", RULES.values(), ids=RULES)
@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_random_weights_write_whole_trees_scored_as_trained(name, split, rules):
    net = model(name, split)
    found = search([net], side(SOURCES), rules)
    longest = limits([len(source) for source in SOURCES], LONGEST)
    for source, nbest, limit in zip(SOURCES, found, longest, strict=True):
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
            wanted = one.ids[: len(one.ids) - one.n_closing]
            assert one.log_prob == pytest.approx(
                log_prob(net, source, [*wanted, EOS]), rel=1e-4, abs=1e-4
            )


@pytest.mark.long
@torch.inference_mode()
@pytest.mark.parametrize("rules", RULES.values(), ids=RULES)
@pytest.mark.parametrize("name", ["linearized", "parent+gcn"])
def test_unconstrained_search_reads_what_it_wrote_leniently(name, rules):
    n_broken = 0
    for seed in range(4):
        net = model(name, seed=seed)
        found = search([net], side(SOURCES), replace(rules, constrained=False))
        for source, (one, *_) in zip(SOURCES, found, strict=True):
            moves = moves_of(one.ids, net.grammar)
            ended = one.length > sum(move in PIECES for move in moves)
            tokens = [*one.ids, EOS] if ended else one.ids
            n_broken += n_words(moves) != 1 + sum(move in ARCS for move in moves)
            expected = log_prob(net, source, tokens, lenient=True)
            assert one.log_prob == pytest.approx(expected, rel=1e-4, abs=1e-4)
    assert n_broken


@torch.inference_mode()
def test_cut_translations_come_best_first_for_each_length_penalty():
    """Prefixes at the limit of unconstrained search have different numbers of pieces."""
    n_others = 0
    for seed in range(4):
        net = model("linearized", seed=seed)
        rules = Rules(beam=8, nbest=8, longest=LengthLimit(0, 3), constrained=False)
        for pair in zip(*search_each([net], side(SOURCES), rules, [0.0, 2.0]), strict=True):
            cuts = [[one for one in nbest if one.cut] for nbest in pair]
            for cut in cuts:
                assert cut == sorted(cut, key=lambda h: -h.score)
            n_others += [one.ids for one in cuts[0]] != [one.ids for one in cuts[1]]
    assert n_others


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
    """With one piece at most there are as many translations as tokens that begin a word."""
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
        tokens = [*nbest[0].ids[: len(nbest[0].ids) - nbest[0].n_closing], EOS]
        prefix = target(tokens[:-1], a.grammar)
        each = []
        for net in (a, b):
            states, _ = net.decode(prefix, net.encode(side([source])))
            each.append(net.logits(states[0]).softmax(-1)[range(len(tokens)), tokens])
        assert nbest[0].log_prob == pytest.approx(
            ((each[0] + each[1]) / 2).log().sum().item(), rel=1e-4
        )


# --- trees that end before they are whole --------------------------------------------------------

TINY = [OTHER, OTHER, OTHER, Move.FINISH, Move.BEGIN, Move.CONTINUE, Move.LEFT, Move.RIGHT]
TINY_MOVES = {False: [*TINY, Move.GLUE], True: [*TINY, Move.LABEL, Move.LABEL]}


def tiny(name, split, seed=1):
    """A model of few tokens, so that the end is often wanted."""
    net = model(name, split, seed)
    moves = TINY_MOVES[split]
    drawing = (Move.LABEL,) if split else ARCS
    labels = [1 + id % 2 if move in drawing else 0 for id, move in enumerate(moves)]
    net.grammar = Grammar(np.array(moves), np.array(labels), ("a", "b"), split)
    net.output = torch.nn.Embedding.from_pretrained(net.output.weight[: len(moves)])
    return net


def next_token(net, source, ids):
    states, _ = net.decode(target(ids, net.grammar), net.encode(side([source])))
    return net.logits(states[0, -1]).log_softmax(-1)


def next_tokens(net, source, prefixes):
    """Log-probabilities of the next token, (N, V). prefixes: N of one length."""
    rows = [target(ids, net.grammar) for ids in prefixes]
    features = {n: torch.cat([row.features[n] for row in rows]) for n in FEATURES}
    both = Side(torch.cat([row.ids for row in rows]), features=features)
    memory = net.encode(side([source])).of(torch.zeros(len(rows), dtype=torch.long))
    states, _ = net.decode(both, memory)
    return net.logits(states[:, -1]).log_softmax(-1)


def may_end(state):
    return state.n_words > 0 and state.last not in OPENING


def every_end(net, source, limit, lenpen):
    """(score, ids without EOS) of whatever may end within the limit of pieces, best first."""
    grammar, found = net.grammar, []
    begun = [([], 0.0, Configuration(split=grammar.split))]
    while begun:
        each = next_tokens(net, source, [ids for ids, _, _ in begun]).tolist()
        longer = []
        for (ids, log_p, state), own in zip(begun, each, strict=True):
            n_pieces = sum(move in PIECES for move in moves_of(ids, grammar))
            if may_end(state):
                found.append((normalised_score(log_p + own[EOS], n_pieces + 1, lenpen), ids))
            for id, move in enumerate(grammar.moves):
                if move in (OTHER, Move.FINISH) or not state.allows(Move(move)):
                    continue
                if move in (*ARCS, Move.LABEL) or n_pieces + 1 < limit:
                    longer.append(([*ids, id], log_p + own[id], state.after(Move(move))))
        begun = longer
    return sorted(found, reverse=True)


def closed(net, source, ids):
    """The tokens and those that close their tree, by an explicit loop."""
    ids, grammar = list(ids), net.grammar
    state = Configuration(split=grammar.split)
    for id in ids:
        state = state.after(Move(grammar.moves[id]))
    while not state.allows(Move.FINISH):
        each = next_token(net, source, ids)
        arcs = [
            id
            for id, move in enumerate(grammar.moves)
            if move in (*ARCS, Move.LABEL) and state.allows(Move(move))
        ]
        ids.append(max(arcs, key=lambda id: each[id].item()))
        state = state.after(Move(grammar.moves[ids[-1]]))
    return ids


@torch.inference_mode()
@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize("name", ["linearized", "bitran+linearized", "parent+gcn"])
def test_a_wide_beam_finds_the_best_of_all_ends_and_closes_it(name, split):
    net, source, lenpens = tiny(name, split), SOURCES[0], (0.0, 0.6, 1.5)
    rules = Rules(beam=60, nbest=4, longest=LengthLimit(0, 4))
    each = search_each([net], side([source]), rules, lenpens)
    n_closed = 0
    for lenpen, (nbest,) in zip(lenpens, each, strict=True):
        expected = {}
        for score, ids in every_end(net, source, 4, lenpen)[: rules.nbest]:
            expected.setdefault(tuple(closed(net, source, ids)), (score, len(ids)))
        assert [tuple(one.ids) for one in nbest] == list(expected)
        for one, (score, n_wanted) in zip(nbest, expected.values(), strict=True):
            assert one.score == pytest.approx(score, rel=1e-4, abs=1e-5)
            assert one.n_closing == len(one.ids) - n_wanted
            n_closed += one.n_closing > 0
    assert n_closed


@torch.inference_mode()
@pytest.mark.parametrize("name", ["linearized", "parent+gcn"])
def test_greedy_search_writes_no_word_after_the_end_was_wanted(name):
    source, n_closed = SOURCES[0], 0
    most = 4  # pieces
    for seed in range(12):
        net = tiny(name, False, seed)
        net.output.weight[EOS] *= 3
        ((one,),) = search([net], side([source]), Rules(longest=LengthLimit(0, most + 1)))
        wanted = one.ids[: len(one.ids) - one.n_closing]
        assert one.ids == closed(net, source, wanted)
        state = Configuration()
        for n, id in enumerate([*wanted, EOS]):
            has_room = sum(move in PIECES for move in moves_of(wanted[:n], net.grammar)) < most
            may = [
                token
                for token, move in enumerate(net.grammar.moves)
                if (may_end(state) if move == Move.FINISH else move < OTHER and state.allows(move))
                and (has_room or move in (*ARCS, Move.FINISH))
            ]
            each = next_token(net, source, wanted[:n])
            assert max(may, key=lambda token: each[token].item()) == id
            state = state if id == EOS else state.after(Move(net.grammar.moves[id]))
        n_closed += one.n_closing > 0
    assert n_closed
