"""Translations are drawn with the model's probabilities; the seed and the source decide which."""

from __future__ import annotations

from collections import Counter
from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support.decoding import forced, model, sources

from synmt_cli.core.decoding.hypothesis import LengthLimit, Rules
from synmt_cli.core.decoding.progress import SPECIAL
from synmt_cli.core.decoding.sampling import Sampling
from synmt_cli.core.decoding.search import search, search_each
from synmt_cli.core.model.modifier import Side
from synmt_cli.core.text.vocabulary import BOS, EOS
from synmt_cli.errors import ConfigError

LAST = float(np.nextafter(1.0, 0.0))  # the largest number that a draw gives


def shares(log_probs, sampling):
    """The probability of each token, by the formula."""
    kept = log_probs > -np.inf
    if 0 < sampling.n_best < len(log_probs):
        kept &= log_probs >= np.sort(log_probs)[-sampling.n_best]
    weights = np.where(kept, np.exp(log_probs / sampling.temperature), 0.0)
    return weights / weights.sum()


@given(
    logits=st.lists(st.floats(-30, 30) | st.just(-np.inf), min_size=2, max_size=200, unique=True),
    n_best=st.integers(0, 210),
    temperature=st.floats(0.3, 3),
    point=st.floats(0, 1, exclude_max=True) | st.sampled_from([0.0, LAST]),
)
def test_a_token_is_where_its_point_lies_among_the_sums(logits, n_best, temperature, point):
    sampling = Sampling(n_best, temperature)
    row = torch.tensor(logits).log_softmax(-1)
    if row.unique().numel() < len(logits):  # which of equals are among the best is undefined
        return
    one = sampling.drawn(row[None].clone(), torch.tensor([point], dtype=torch.double)).item()
    expected = shares(row.double().numpy(), sampling)
    assert row[one] > -torch.inf
    order = np.argsort(-row.numpy()) if 0 < n_best < len(row) else np.arange(len(row))
    place = int(np.flatnonzero(order == one)[0])
    sums = np.cumsum(expected[order])
    assert sums[place - 1] * (place > 0) - 1e-5 <= point <= sums[place] + 1e-5


@pytest.mark.parametrize("sampling", [(-1, 1.0), (0, 0.0), (0, -1.0), (0, float("nan"))])
def test_settings_that_draw_nothing(sampling):
    with pytest.raises(ValueError, match="no sampling"):
        Sampling(*sampling)


@torch.inference_mode()
@pytest.mark.parametrize(("n_best", "temperature"), [(0, 1.0), (3, 1.0), (0, 0.5), (2, 3.0)])
def test_translations_are_drawn_with_their_probability(n_best, temperature):
    """Counts against products of token probabilities, over all sequences of up to three tokens."""
    torch.manual_seed(5)
    net, n, sampling = model(), 4000, Sampling(n_best, temperature)
    net.encoder.embedding.table.weight.data = net.encoder.embedding.table.weight.data[:8]
    side, words = Side(torch.tensor([[4, 5, EOS]])), range(4, 8)
    rules = Rules(nbest=n, longest=LengthLimit(0, 3), sampling=sampling)
    (found,) = search([net], side, rules)
    counts = Counter((*h.ids, *([] if h.cut else [EOS])) for h in found)

    def next_shares(prefix):
        log_probs = forced(net, side, torch.tensor([[[BOS, *prefix]]]))[0, 0].double().numpy()
        log_probs[list(SPECIAL)] = -np.inf
        return shares(log_probs, sampling)

    expected = {}
    for length in range(4):
        for body in product(words, repeat=length):
            whole = (*body, EOS) if length < 3 else body
            each = [next_shares(whole[:i])[token] for i, token in enumerate(whole)]
            expected[whole] = float(np.prod(each))
    assert sum(expected.values()) == pytest.approx(1)
    assert {one for one, p in expected.items() if p > 20 / n} <= set(counts)
    assert all(expected[one] > 0 for one in counts)
    often = [one for one, p in expected.items() if p * n >= 5]
    chi2 = sum((counts[one] - expected[one] * n) ** 2 / (expected[one] * n) for one in often)
    assert chi2 < len(often) + 4 * (2 * len(often)) ** 0.5  # four standard deviations


@torch.inference_mode()
def test_the_score_is_that_of_the_model_whatever_the_temperature():
    net, side = model(), sources(1)
    rules = Rules(nbest=5, sampling=Sampling(4, 2.0), lenpen=0.0)
    for one in search([net], side, rules)[0]:
        tokens = [*one.ids, *([] if one.cut else [EOS])]
        prefixes = [torch.tensor([[[BOS, *tokens[:i]]]]) for i in range(len(tokens))]
        each = [forced(net, side, p)[0, 0, t] for p, t in zip(prefixes, tokens, strict=True)]
        assert one.log_prob == one.score == pytest.approx(sum(each).item(), abs=1e-4)
        assert one.length == len(tokens)


def test_one_token_to_draw_from_is_greedy_search():
    net, side = model(), sources()
    drawn = search([net], side, Rules(nbest=2, sampling=Sampling(1)))
    for (best,), same in zip(search([net], side, Rules()), drawn, strict=True):
        assert [h.ids for h in same] == [best.ids] * 2


def test_other_sources_in_the_batch_change_no_draw():
    net, side = model(), sources()
    rules = Rules(nbest=3, sampling=Sampling(seed=7))
    together = search([net], side, rules)
    lengths = (~side.pad).sum(1).tolist()
    alone = search([net], Side(side.ids[:1, : lengths[0]]), rules)  # number 0, as before
    assert [h.ids for h in alone[0]] == [h.ids for h in together[0]]
    assert len({tuple(h.ids) for found in together for h in found}) == 9


def test_draws_depend_on_the_seed_and_number_of_the_draw_alone():
    net, side = model(), sources()
    several = search([net], side, Rules(nbest=3, sampling=Sampling(seed=7)))
    first = search([net], side, Rules(nbest=1, sampling=Sampling(seed=7)))
    other = search([net], side, Rules(nbest=1, sampling=Sampling(seed=8)))
    assert [found[0].ids for found in several] == [found[0].ids for found in first]
    assert all(a[0].ids != b[0].ids for a, b in zip(first, other, strict=True))


def test_length_penalties_change_the_scores_of_draws_alone():
    net, side = model(), sources()
    rules = Rules(nbest=2, sampling=Sampling())
    plain, divided = search_each([net], side, rules, [0.0, 1.0])
    for a, b in zip(plain, divided, strict=True):
        assert [h.ids for h in a] == [h.ids for h in b]
        assert [h.log_prob / h.length for h in a] == pytest.approx([h.score for h in b])


@pytest.mark.parametrize("n_best", [0, 3])
def test_scores_that_are_not_numbers_are_refused(n_best):
    net = model()
    torch.nn.init.constant_(net.encoder.embedding.table.weight, torch.nan)
    with pytest.raises(ConfigError, match="not numbers"):
        search([net], sources(), Rules(sampling=Sampling(n_best)))
