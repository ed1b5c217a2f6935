"""Decoding step by step where every step reads the prefix anew."""

from __future__ import annotations

import pytest
import torch
from support.decoding import Stepping
from support.models import make, side, small

from synmt_cli.core.decoding.hypothesis import Rules
from synmt_cli.core.decoding.scorers import scorer
from synmt_cli.core.decoding.scorers.scorer import RereadingScorer
from synmt_cli.core.decoding.search import search
from synmt_cli.core.model.modifier import Side

SOURCES = [[4, 7, 9, 3], [5, 10, 8, 9, 6, 3], [4, 3]]


@pytest.fixture
def model():
    whole = make(small("pre"))
    whole.rereads = True
    return whole


@torch.inference_mode()
def test_steps_give_what_training_gives(model):
    """Hypotheses change places and sources leave, as in a beam."""
    torch.manual_seed(0)
    stepping = Stepping(RereadingScorer(model), model, side(SOURCES))
    prefixes = torch.full((3, 3, 1), 2)
    rows = [0, 1, 2]
    for n in range(1, 5):
        found = stepping.step(prefixes)
        for b, row in enumerate(rows):
            memory = model.encode(side([SOURCES[row]]))
            for k in range(prefixes.size(1)):
                states, _ = model.decode(Side(prefixes[b, k][None]), memory)
                expected = model.logits(states[0, -1]).log_softmax(-1)
                torch.testing.assert_close(found[b, k].double(), expected, rtol=1e-5, atol=1e-5)
        parents = torch.randint(prefixes.size(1), (len(rows), 3))
        stay = torch.tensor([2, 0] if n == 2 else range(len(rows)))
        stepping.select(stay.tolist(), len(rows), parents[stay])
        rows = [rows[i] for i in stay.tolist()]
        prefixes = prefixes[stay[:, None], parents[stay]]
        token = torch.randint(4, 11, (*prefixes.shape[:2], 1))
        prefixes = torch.cat((prefixes, token), dim=-1)


def test_passes_of_any_size_give_the_same(model, monkeypatch):
    rules = Rules(beam=3, nbest=3)
    expected = search([model], side(SOURCES), rules)
    for cells in (1, 20, 40):  # one source a pass; or two, while prefixes are short
        monkeypatch.setattr(scorer, "_tokens_per_pass", lambda _, cells=cells: cells)
        for nbest, found in zip(expected, search([model], side(SOURCES), rules), strict=True):
            assert [one.ids for one in found] == [one.ids for one in nbest]
            for one, other in zip(found, nbest, strict=True):
                assert one.log_prob == pytest.approx(other.log_prob, rel=1e-6)


def test_a_beam_of_a_rereading_model_is_scored_as_it_was_trained(model):
    for source, nbest in zip(
        SOURCES, search([model], side(SOURCES), Rules(beam=3, nbest=2)), strict=True
    ):
        memory = model.encode(side([source]))
        for one in nbest:
            ids = [*one.ids] if one.cut else [*one.ids, 3]
            states, _ = model.decode(side([[2, *ids[:-1]]]), memory)
            log_p = model.logits(states[0]).log_softmax(-1)[range(len(ids)), ids].sum()
            assert one.log_prob == pytest.approx(log_p.item(), rel=1e-4)


def test_rereading_and_remembering_models_make_an_ensemble(model):
    plain = make(small("pre"))
    for source, (one,) in zip(
        SOURCES, search([model, plain], side(SOURCES), Rules(beam=2)), strict=True
    ):
        ids = [*one.ids] if one.cut else [*one.ids, 3]
        mean = 0.0
        for net in (model, plain):
            states, _ = net.decode(side([[2, *ids[:-1]]]), net.encode(side([source])))
            mean = mean + net.logits(states[0]).softmax(-1)[range(len(ids)), ids] / 2
        assert one.log_prob == pytest.approx(mean.log().sum().item(), rel=1e-4)
