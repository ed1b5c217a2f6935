"""Search against all possible sequences and explicit loops, and what it promises."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product

import pytest
import torch
from support.decoding import S, V, forced, model, sources

from synmt_cli.core.decoding.batching.running import Running
from synmt_cli.core.decoding.batching.supply import Room, Sources, Supply
from synmt_cli.core.decoding.beam import BeamSearch
from synmt_cli.core.decoding.hypothesis import LengthLimit, Rules, hypothesis, limits
from synmt_cli.core.decoding.progress import SPECIAL, PieceProgress
from synmt_cli.core.decoding.scorers.scorer import Prefixes
from synmt_cli.core.decoding.search import encoded, search, search_each
from synmt_cli.core.model.modifier import Side
from synmt_cli.core.text.vocabulary import BOS, EOS
from synmt_cli.errors import ConfigError


class Table:
    """A scorer of one source: {prefix: probabilities of UNK, PAD, BOS, EOS, 4, 5, ...}."""

    def __init__(self, table):
        self.table = {key: torch.tensor(row).log() for key, row in table.items()}

    def step(self, prefixes, normalised=True):
        ((source, n),) = zip(prefixes.ids.tolist(), prefixes.at.tolist(), strict=True)
        return torch.stack([self.table.get(tuple(p[1 : n + 1]), self.table[()]) for p in source])[
            None
        ]

    def enter(self, *given):
        pass

    select = enter
    reads_prefixes = True


def lengths(side):
    return (~side.pad).sum(1).tolist()


@torch.inference_mode()
def log_probs(net, side, rows):
    """Log-probabilities by teacher forcing. rows: of one length, without BOS; side: one source."""
    rows = torch.tensor(rows)
    bos = torch.full((len(rows), 1), BOS)
    source = Side(side.ids.expand(len(rows), -1))
    states, _ = net.decode(Side(torch.cat((bos, rows[:, :-1]), 1)), net.encode(source))
    each = net.logits(states).log_softmax(-1)
    return each.gather(2, rows[..., None]).sum((1, 2)).tolist()


@pytest.mark.parametrize("lenpen", [0.0, 0.6, 2.0])
def test_a_wide_beam_finds_the_best_of_all_sequences(lenpen):
    torch.manual_seed(5)
    n_max, words = 4, range(4, 8)
    net = model()
    net.encoder.embedding.table.weight.data = net.encoder.embedding.table.weight.data[:8]
    side = Side(torch.tensor([[4, 5, EOS]]))
    every = []
    for n in range(n_max):
        rows = [[*body, EOS] for body in product(words, repeat=n)]
        scores = log_probs(net, side, rows)
        every += [hypothesis(y, p, len(y), lenpen) for y, p in zip(rows, scores, strict=True)]
    ranked = sorted(every, key=lambda h: -h.score)
    found = search(
        [net], side, Rules(beam=4**n_max, lenpen=lenpen, nbest=9, longest=LengthLimit(0, n_max))
    )[0]
    assert [h.ids for h in found] == [h.ids for h in ranked[:9]]
    assert [h.score for h in found] == pytest.approx([h.score for h in ranked[:9]], abs=1e-5)


@torch.no_grad()
def test_beam_one_is_the_greedy_loop():
    net, side = model(), sources()
    for b, (found,) in enumerate(search([net], side, Rules(beam=1))):
        one, limit = (
            Side(side.ids[b : b + 1, : lengths(side)[b]]),
            limits(lengths(side), LengthLimit(2, 20))[b],
        )
        prefix = [BOS]
        while prefix[-1] != EOS and len(prefix) <= limit:
            logits = forced(net, one, torch.tensor([[prefix]]))[0, 0]
            logits[list(SPECIAL)] = -torch.inf
            prefix.append(logits.argmax().item())
        assert found.ids == [w for w in prefix[1:] if w != EOS]
        assert found.cut == (prefix[-1] != EOS)
        assert found.log_prob == pytest.approx(log_probs(net, one, [prefix[1:]])[0], abs=1e-4)


@pytest.mark.parametrize("beam", [1, 4])
def test_other_sources_in_the_batch_change_nothing(beam):
    net, side = model(), sources()
    together = search([net], side, Rules(beam=beam, nbest=beam))
    for b in range(len(side.ids)):
        one = Side(side.ids[b : b + 1, : lengths(side)[b]])
        alone = search([net], one, Rules(beam=beam, nbest=beam))[0]
        assert [h.ids for h in alone] == [h.ids for h in together[b]]
        assert [h.score for h in alone] == pytest.approx([h.score for h in together[b]], abs=1e-5)


def test_the_n_best_are_sorted_distinct_and_clean():
    for found in search([model()], sources(), Rules(beam=6, nbest=6)):
        complete = [h for h in found if not h.cut]
        assert [h.score for h in complete] == sorted((h.score for h in complete), reverse=True)
        assert found == complete + [h for h in found if h.cut]
        assert len({tuple(h.ids) for h in found}) == len(found) == 6
        assert not {*SPECIAL, EOS} & {w for h in found for w in h.ids}


def test_an_ensemble_of_a_model_with_itself_is_the_model():
    net, side = model(), sources()
    one = search([net], side, Rules(beam=3, nbest=3))
    for single, twice in zip(one, search([net, net], side, Rules(beam=3, nbest=3)), strict=True):
        assert [h.ids for h in single] == [h.ids for h in twice]
        assert [h.score for h in single] == pytest.approx([h.score for h in twice], abs=1e-5)


def test_an_ensemble_averages_probabilities():
    from synmt_cli.core.decoding.scorers.scorer import EnsembleScorer

    a, b = Table({(): [0.0, 0, 0, 0.8, 0.2]}), Table({(): [0.0, 0, 0, 0.4, 0.6]})
    bos = torch.full((1, 1), BOS)
    prefixes = Prefixes(bos, torch.tensor([0]), 1, 1, bos[None], {})
    mean = EnsembleScorer([a, b]).step(prefixes).exp()[0, 0]
    torch.testing.assert_close(mean, torch.tensor([0.0, 0, 0, 0.6, 0.4]))


def by_table(table, limit, beam, nbest, lenpen, **others):
    rules, cpu = Rules(beam=beam, nbest=nbest, lenpen=lenpen, **others), torch.device("cpu")
    supply = Supply(iter([Sources([0], [1], [limit], [])]), Room(1, 1))
    running = Running(Table(table), PieceProgress(), supply, beam, cpu)
    (((_, nbests),),) = BeamSearch(running, rules, [rules.lenpen]).run()
    return nbests


@pytest.mark.parametrize("beam", [1, 3])
@pytest.mark.parametrize("scores", [True, False])
@torch.inference_mode()
def test_scores_that_are_not_numbers_are_refused(beam, scores):
    """Products that overflow in half precision give such scores: one infinity minus another."""
    torch.manual_seed(5)
    net = model()
    net.decoder.layers[0].cross.out.weight.mul_(1e38)
    with pytest.raises(ConfigError, match="scores are not numbers"):
        search([net], sources(), Rules(beam=beam, scores=scores))


def test_length_counts_eos_in_the_score():
    # "4 EOS" has log(.5 * .8); divided by 2^.6, because EOS counts.
    table = {(): [0.0, 0, 0, 0.1, 0.5, 0.4], (4,): [0.0, 0, 0, 0.8, 0.1, 0.1]}
    table |= {(5,): [0.0, 0, 0, 0.2, 0.4, 0.4]}
    table |= {(a, b): [0.0, 0, 0, 0.98, 0.01, 0.01] for a in (4, 5) for b in (4, 5)}
    ((best, *_),) = by_table(table, 3, 2, 2, 0.6)
    assert best.ids == [4]
    assert best.score == pytest.approx(torch.tensor(0.4).log().item() / 2**0.6, abs=1e-6)


def test_a_long_translation_may_overtake_a_finished_one():
    # Finished first: "EOS" at log .5 / 1. Later and better per token: "4 4 4 EOS".
    table = {(4,) * n: [0.0, 0, 0, 0.0, 1.0] for n in range(1, 3)}
    table |= {(): [0.0, 0, 0, 0.5, 0.5], (4, 4, 4): [0.0, 0, 0, 1.0, 0.0]}
    ((best,),) = by_table(table, 9, 2, 1, 1.0)
    assert best.ids == [4, 4, 4]


def test_patience_is_how_many_translations_are_enough():
    # As above: "EOS" is finished first, "4 EOS" and "4 4 EOS" are not among the 2 best.
    table = {(4,) * n: [0.0, 0, 0, 0.0, 1.0] for n in range(1, 3)}
    table |= {(): [0.0, 0, 0, 0.5, 0.5], (4, 4, 4): [0.0, 0, 0, 1.0, 0.0]}
    ((best,),) = by_table(table, 9, 2, 1, 1.0, patience=0.5)
    assert best.ids == []
    ((best,),) = by_table(table, 9, 2, 1, 1.0, patience=1)
    assert best.ids == [4, 4, 4]
    ((best, second),) = by_table(table, 9, 2, 2, 1.0, patience=0.5)  # never fewer than are wanted
    assert [best.ids, second.ids] == [[4, 4, 4], []]


@pytest.mark.parametrize(
    "wrong",
    [{"nbest": 2}, {"patience": 0}, {"patience": math.nan}, {"beam": 0}]
    + [{"lenpen": lenpen} for lenpen in (-1, math.nan, math.inf)],
)
def test_rules_that_no_search_can_have(wrong):
    with pytest.raises(ValueError, match="no search"):
        Rules(**wrong)


def test_a_translation_cut_at_the_limit_is_marked():
    table = {(4,) * n: [0.0, 0, 0, 0.1, 0.9] for n in range(4)}
    found = by_table(table, 3, 4, 4, 0.0)[0]
    assert [(h.ids, h.cut) for h in found] == [
        ([], False),
        ([4], False),
        ([4, 4], False),
        ([4, 4, 4], True),
    ]


def test_limits_count_tokens_not_pads():
    there = encoded([model()], range(3), [sources()], Rules(longest=LengthLimit(2.0, 5)))
    assert there.limits == [2 * S + 5, 2 * (S - 3) + 5, 2 * (S - 1) + 5]
    assert limits([7], LengthLimit(0.0, 0)) == [1]


def test_search_leaves_training_mode_as_it_was():
    net = model().train()
    search([net], sources(), Rules())
    assert net.training
    states, _ = net.decode(Side(torch.randint(4, V, (3, 5))), net.encode(sources()))
    states.sum().backward()  # a cache of search must not forbid gradients


def test_every_device_finds_the_same(device):
    net, side = model(), sources()
    expected = search([net], side, Rules(beam=3, nbest=2))
    there = Side(side.ids.to(device), side.pad.to(device))
    found = search([net.to(device)], there, Rules(beam=3, nbest=2))
    assert [[h.ids for h in nbest] for nbest in found] == [
        [h.ids for h in nbest] for nbest in expected
    ]


@pytest.mark.parametrize("patience", [float("inf"), 1.0])
def test_one_search_gives_each_length_penalty_what_its_own_gives(patience):
    net, side, lenpens = model(), sources(), (0.0, 0.4, 1.0, 2.5)
    rules = Rules(beam=4, nbest=3, patience=patience)
    for lenpen, found in zip(lenpens, search_each([net], side, rules, lenpens), strict=True):
        assert found == search([net], side, replace(rules, lenpen=lenpen))
    one, other = search_each([net], side, Rules(beam=1), (0.0, 1.0))
    assert [h.ids for (h,) in one] == [h.ids for (h,) in other]
    assert other == search([net], side, Rules(beam=1, lenpen=1.0))
