"""Claims that the pretend device makes about a GPU, checked by torch itself on a GPU."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
import torch
from support import launches

from synmt_cli import signals
from synmt_cli.core.data.batch import to_device
from synmt_cli.core.decoding.hypothesis import LengthLimit, Rules
from synmt_cli.core.decoding.sampling import Sampling
from synmt_cli.core.decoding.search import search
from synmt_cli.core.model.size import Size
from synmt_cli.core.run import device as devices
from synmt_cli.core.run.config import Training
from synmt_cli.core.run.directory import Run
from synmt_cli.core.text.vocabulary import Vocabularies
from synmt_cli.core.training.loop import Trainer
from synmt_cli.core.variants import plan

CUDA = torch.device("cuda")
SIZE = Size(d_model=64, d_ff=64, n_heads=4, encoder_layers=2, decoder_layers=2)

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]


@pytest.fixture(autouse=True, scope="module")
def chosen():
    """The GPU, set up as by the commands."""
    return devices.choose("cuda")


@contextlib.contextmanager
def nothing_waits():
    """Makes torch raise where the host would wait."""
    torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")


def trainer(variant, folder, **settings):
    corpus = launches.corpus(32, plan(variant).transitions)
    given = {"batch_tokens": 200, "accumulate": 2, "max_steps": 4, "metric": "loss", **settings}
    both = Vocabularies(launches.Numbers(), launches.Numbers())
    model = launches.build(variant, {}, SIZE)
    return Trainer(Run(folder), Training(**given), model, both, corpus, None, CUDA)


@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
@pytest.mark.parametrize("variant", ["vanilla", "pascal", "gps", "sisa", "rel", "gcn"])
def test_between_two_reports_nothing_waits(variant, precision, tmp_path):
    one = trainer(variant, tmp_path, precision=precision)
    one.model.train()
    updates, nobody = one._updates_since(0, 0), signals.Request()
    for _ in range(2):  # these make what is made only once
        one._update(next(updates), nobody)
    with contextlib.closing(updates), nothing_waits():
        for _ in range(2):
            one._update(next(updates), nobody)
    one._read()
    assert one.state.nll > 0


@pytest.mark.parametrize("variant", ["vanilla", "dep+rel"])
def test_a_run_resumes(variant, tmp_path):
    """benchmarks/gpu_report.py tells whether it does so bit for bit."""
    list(trainer(variant, tmp_path, max_steps=2).events(signals.Request(), None))
    again = trainer(variant, tmp_path)
    assert again.resume()
    list(again.events(signals.Request(), None))
    assert again.state.step == 4


def test_draws_are_those_of_a_processor():
    model = launches.build("pascal", {}, SIZE).eval()
    source = launches.corpus(8).sources(np.arange(8))
    rules = Rules(nbest=2, sampling=Sampling(), longest=LengthLimit(1, 0))
    expected = search([model], source, rules)
    found = search([model.to(CUDA)], to_device(source, CUDA), rules)
    assert [[h.ids for h in own] for own in found] == [[h.ids for h in own] for own in expected]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("beam", [1, 4])
def test_search_finds_what_it_finds_on_a_processor(beam, dtype):
    model = launches.build("pascal", {}, SIZE).eval()
    source = launches.corpus(8).sources(np.arange(8))
    rules = Rules(beam=beam, longest=LengthLimit(1, 0))
    expected = search([model], source, rules)
    found = search([model.to(CUDA, dtype)], to_device(source, CUDA), rules)
    for (one,), (other,) in zip(expected, found, strict=True):
        if dtype == torch.float32:
            assert one.ids == other.ids
        assert other.log_prob == pytest.approx(one.log_prob, rel=0.05, abs=0.5)
