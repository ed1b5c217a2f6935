"""Remembered keys and values change nothing: step by step equals teacher forcing."""

from __future__ import annotations

import pytest
import torch
from support.decoding import B, Stepping, V, forced, model, sources

from synmt_cli.core.decoding.scorers.cached import CachedScorer
from synmt_cli.core.model.modifier import Modifier, Side
from synmt_cli.core.model.relations import Rows
from synmt_cli.core.text.vocabulary import BOS
from synmt_cli.core.variants.relation import Relation, sequential
from synmt_cli.core.variants.stack import StackSpec

SHAPES = {
    "post": {},
    "pre": {"norm": "pre"},
    "no positions": {"positions": "none"},
    "untied": {"tied": "none"},
}


class Causal(Modifier):
    """A decoder modifier with every hook that decoding calls: later keys score lower."""

    def prepare(self, side):
        return side.ids

    def tokens(self, state, x):
        return 2 * x

    def inputs(self, state, x):
        return x.tanh()

    def scores(self, state, site, scores):
        j = torch.arange(site.k.size(2))
        i = j[-site.q.size(2) :]
        return scores - 0.1 * (i[:, None] - j) - 0.01 * state[:, None, None, :]

    def context(self, state, site, weights, context):
        return context + weights.square().sum(-1, keepdim=True)


def relation(rows, keys=True, values=True):
    size = model().size
    return Relation(StackSpec(size, 2, V, "decoder"), rows, clip=2, keys=keys, values=values)


def last_digits(side, clip):
    """A relation that differs from prefix to prefix."""
    return (side.ids[:, None] + 2 * side.ids[:, :, None]) % (2 * clip + 1)


MODIFIED = {
    "not": lambda: (),
    "by hooks": lambda: [Causal([0])],
    "by distances": lambda: [relation(sequential)],
    "of keys alone": lambda: [relation(sequential, values=False)],
    "of values alone": lambda: [relation(last_digits, keys=False)],
    "by two relations": lambda: [relation(last_digits), relation(sequential)],
    "by a relation and hooks": lambda: [relation(last_digits), Causal([0])],
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("modified", MODIFIED)
@torch.inference_mode()
def test_steps_equal_teacher_forcing(shape, modified):
    net = model(MODIFIED[modified](), **SHAPES[shape])
    side = sources()
    prefixes = torch.cat((torch.full((B, 1, 1), BOS), torch.randint(4, V, (B, 1, 40))), -1)
    scorer = Stepping(CachedScorer(net), net, side)
    for t in range(1, 41):  # beyond the room there is at first
        logits = scorer.step(prefixes[..., :t])
        torch.testing.assert_close(logits, forced(net, side, prefixes[..., :t]))


@pytest.mark.parametrize("modified", MODIFIED)
@torch.inference_mode()
def test_hypotheses_may_branch_swap_and_leave(modified):
    branch_swap_and_leave(model(MODIFIED[modified]()))


@pytest.mark.parametrize("modified", ["by distances", "by two relations"])
@torch.inference_mode()
def test_relations_may_be_summed_in_order(modified, monkeypatch):
    """Sums are made like this where kernels would add in any order."""
    monkeypatch.setattr(Rows, "of", Rows.in_order)
    branch_swap_and_leave(model(MODIFIED[modified]()))


def branch_swap_and_leave(net):
    side = sources(4)
    scorer, prefixes = Stepping(CachedScorer(net), net, side), torch.full((4, 3, 1), BOS)
    moves = [
        ([0, 1, 2, 3], [[0, 0, 0]] * 4),  # all continue the first
        ([0, 3, 2], [[2, 0, 0], [1, 1, 1], [0, 1, 2]]),  # source 1 left, the last took its place
        ([0, 1, 2], [[0, 1, 2], [2, 1, 0], [1, 0, 2]]),
        ([1], [[2, 1, 1]]),
        ([0], [[1, 0, 0]]),
    ]
    for kept, parents in moves:
        torch.testing.assert_close(scorer.step(prefixes), forced(net, side, prefixes))
        stay, parents = torch.tensor(kept), torch.tensor(parents)
        scorer.select(kept, len(prefixes), parents)
        side = Side(side.ids[stay], side.pad[stay])
        new = torch.randint(4, V, (*parents.shape, 1))
        prefixes = torch.cat((prefixes[stay[:, None], parents], new), -1)
    torch.testing.assert_close(scorer.step(prefixes), forced(net, side, prefixes))
