"""Compiled layers compute what they did before, and soon nothing more is compiled."""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np
import pytest
import torch
from support import launches
from torch._inductor.runtime import cache_dir_utils

from synmt_cli import signals
from synmt_cli.core.model.layers import Encoder
from synmt_cli.core.model.size import Size
from synmt_cli.core.run.config import Training
from synmt_cli.core.run.directory import Run
from synmt_cli.core.text.vocabulary import Vocabularies
from synmt_cli.core.training.device import compiled
from synmt_cli.core.training.gradient import backward
from synmt_cli.core.training.loop import Trainer
from synmt_cli.core.variants import plan
from synmt_cli.errors import Unavailable

pytestmark = [
    pytest.mark.long,
    pytest.mark.filterwarnings("ignore:::torch"),  # about its own parts
]
CPU = torch.device("cpu")
SIZE = Size(d_model=16, d_ff=16, n_heads=2, encoder_layers=3, decoder_layers=1, dropout=0.0)
ONE_LAYER = replace(SIZE, encoder_layers=1)


@pytest.fixture(autouse=True)
def nothing_compiled_before():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


@pytest.fixture
def traced(monkeypatch):
    """Layers are read as for a compiler but computed as they are, which needs no compiler."""
    monkeypatch.setattr(compiled, "BACKEND", "eager")
    monkeypatch.setattr(compiled, "_refuse_without_compiler", lambda device: None)


def test_results_go_where_the_user_says_and_not_to_the_root(traced, monkeypatch, tmp_path):
    """cli.main names the root, so that torch makes no folder where nothing is compiled."""
    default = cache_dir_utils.default_cache_dir()
    for named, expected in ((os.sep, default), (str(tmp_path), str(tmp_path))):
        monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", named)
        compiled.compile_layers(launches.build("vanilla", {}, ONE_LAYER), CPU)
        assert os.environ.get("TORCHINDUCTOR_CACHE_DIR", default) == expected


def gradients(model, batch):
    model.zero_grad()
    torch.manual_seed(1)
    sums = backward(model, batch, 0.1, 1.0)
    return [sums.smoothed, *(p.grad for p in model.parameters() if p.grad is not None)]


def check(variant, size, mixed=True):
    """Checks batches of many shapes: later ones need no new program. mixed: one has no padding."""
    model = launches.build(variant, {}, size)
    corpus = launches.corpus(64, plan(variant).transitions)
    rows = [np.arange(i, i + 3 + i % 5) for i in range(0, 27, 3)]
    batches = [corpus.batch(some) for some in [*([np.array([1, 1])] if mixed else []), *rows]]
    names = list(model.state_dict())
    expected = [gradients(model, batch) for batch in batches]
    compiled.compile_layers(model, CPU)
    assert list(model.state_dict()) == names
    programs = []
    for batch, wanted in zip(batches, expected, strict=True):
        for one, other in zip(gradients(model, batch), wanted, strict=True):
            scale = max(1.0, other.abs().max().item())
            torch.testing.assert_close(one / scale, other / scale, rtol=1e-5, atol=1e-5)
        programs.append(torch._dynamo.utils.counters["stats"]["unique_graphs"])
    assert programs[-1] == programs[3] > 0
    return programs[-1]


def test_what_a_compiler_makes_computes_the_same(monkeypatch):
    """Only half a layer is compiled: a whole one takes a minute of a processor."""
    try:
        compiled._refuse_without_compiler(CPU)
    except Unavailable as error:
        pytest.skip(str(error))
    from torch._inductor import config

    monkeypatch.setattr(config.cpp, "simdlen", 1)  # takes a third of the time to compile
    torch._dynamo.utils.counters.clear()
    half = "after_attention"
    monkeypatch.setattr(compiled, "_parts", lambda stack, _: [half] * isinstance(stack, Encoder))
    check("vanilla", replace(ONE_LAYER, dropout=0.1), mixed=False)  # dropout is drawn as before


@pytest.mark.parametrize("variant", ["pascal", "dep+rel", "gcn"])
def test_layers_of_variants_are_read_as_they_are(variant, traced):
    torch._dynamo.utils.counters.clear()
    n = check(variant, SIZE if variant == "pascal" else ONE_LAYER)
    if variant == "pascal":  # with and without padding: its layer, others, the decoder's
        assert n <= 6


def trainer(folder, variant="vanilla", **settings):
    given = {"max_steps": 2, "validate_every": 2, "batch_tokens": 256, "metric": "accuracy"}
    corpus, both = launches.corpus(6), Vocabularies(launches.Numbers(), launches.Numbers())
    model = launches.build(variant, {}, SIZE)
    return Trainer(Run(folder), Training(**given, **settings), model, both, corpus, corpus, CPU)


def test_a_compiled_run_goes_on_without(tmp_path, traced):
    list(trainer(tmp_path, compile=True).events(signals.Request(), None))
    one = trainer(tmp_path)
    assert one.resume()
    assert one.state.step == 2


def test_rare_batches_need_no_program_of_their_own(tmp_path, traced):
    """They have no padding, one pair, or single sentences where others have two in a line."""
    torch._dynamo.utils.counters.clear()
    one, nobody = trainer(tmp_path, "gps", compile=True), signals.Request()
    n = len(one.train)
    one.train.features["sentence"].values[-1] = 1
    one._has_pairs = True
    programs = []
    for rows in ([0, 1, n - 1], [2, 3, n - 1], [0, 1], [4, 5, 1], [2, 2], [0], [1, 3, 5]):
        one._update(one.updates.prepared([np.array(rows)]), nobody)
        programs.append(torch._dynamo.utils.counters["stats"]["unique_graphs"])
    assert programs[-1] == programs[1] > 0


def test_what_is_missing_is_said_in_one_line(tmp_path, monkeypatch):
    from torch._inductor import config

    monkeypatch.setattr(config.cpp, "cxx", (None, str(tmp_path / "no-compiler")))
    with pytest.raises(Unavailable, match=r"^training.compile needs a C\+\+ compiler.*false$"):
        trainer(tmp_path, compile=True)
    with pytest.raises(Unavailable, match="not for the device meta"):
        compiled.compile_layers(launches.build("vanilla", {}, SIZE), torch.device("meta"))


def test_a_failure_of_the_compiler_is_said_in_one_line():
    with (
        pytest.raises(Unavailable, match=r"cannot compile the layers: Unsupported: why") as info,
        compiled.explained(True),
    ):
        raise torch._dynamo.exc.Unsupported("why\nand where")
    assert "\n" not in str(info.value)
