"""No pass is larger than the settings say: in training, validation, timing, and the estimate."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from support import launches

from synmt_cli import signals
from synmt_cli.core.decoding import search
from synmt_cli.core.decoding.batching.supply import Room
from synmt_cli.core.run.config import Training
from synmt_cli.core.training import batches, validation
from synmt_cli.core.training.device import precision
from synmt_cli.core.training.device.memory_estimate import estimate
from synmt_cli.core.training.validation import Abandoned, Validation

CPU = torch.device("cpu")
UNBOUNDED = 10_000_000  # batch_tokens of the presets that count sentences
BOUNDS = [
    {"batch_tokens": UNBOUNDED, "batch_sentences": 3},
    {"batch_tokens": 200},
    {"batch_tokens": UNBOUNDED, "micro_tokens": 90},
    {"batch_tokens": 90, "batch_sentences": 3, "accumulate": 2, "micro_tokens": 60},
]


def watched(model):
    """Notes the shape of each pass through a model, (pairs, the longer side)."""
    shapes, encode, decode = [], model.encode, model.decode

    def noted_encode(source):
        shapes.append(source.ids.shape)
        return encode(source)

    def noted_decode(target, memory, lengths=()):
        shapes[-1] = (len(target.ids), max(target.ids.size(1), shapes[-1][1]))
        return decode(target, memory, lengths)

    model.encode, model.decode = noted_encode, noted_decode
    return shapes


def fits(shapes, settings):
    limit = settings.micro_tokens or settings.batch_tokens
    return all(
        n <= (settings.batch_sentences or n) and (n * m <= limit or n == 1) for n, m in shapes
    )


@pytest.mark.parametrize("bounds", BOUNDS)
def test_passes_fit_and_every_pair_is_in_one(bounds):
    corpus, settings = launches.corpus(40), Training(**bounds)
    whole = [*batches.of_epoch(corpus, settings, 0)]
    for passes in (
        batches.passes(corpus, settings, whole),
        batches.cut(corpus, settings, np.arange(40)),
    ):
        assert sorted(np.concatenate(passes)) == [*range(40)]
        shapes = [(len(rows), corpus.longer_sides_in_pieces(rows).max()) for rows in passes]
        assert fits(shapes, settings)
        assert len(shapes) < 40


@pytest.mark.parametrize("bounds", BOUNDS)
def test_validation_and_timing_make_no_larger_passes(bounds, monkeypatch):
    model, corpus = launches.build("vanilla", {}), launches.corpus(40)
    shapes, settings = watched(model), Training(metric="loss", **bounds)
    Validation(model, corpus, None, settings, CPU, signals.Request()).run()
    assert sum(n for n, _ in shapes) == len(corpus)
    assert fits(shapes, settings)
    shapes.clear()
    monkeypatch.setattr(precision.devices, "has_bf16", lambda device: True)
    precision.choose(model, corpus, settings, 1000, CPU)
    assert len(shapes) > 1
    assert fits(shapes, settings)


def test_translations_of_dev_are_bounded_by_tokens_and_the_same(monkeypatch):
    model, corpus = launches.build("vanilla", {}), launches.corpus(40)
    encoded, shapes, found = search.encoded, [], set()

    def noted(models, numbers, sides, rules):
        shapes.append(tuple(sides[0].ids.shape))
        return encoded(models, numbers, sides, rules)

    monkeypatch.setattr(search, "encoded", noted)
    given = model, corpus, launches.Numbers(), Training(metric="bleu"), CPU, signals.Request()
    for room in (Room(64, 2**15), Room(9, 60)):
        monkeypatch.setattr(validation, "room_on", lambda _, room=room: room)
        shapes.clear()
        found.add(Validation(*given).run().value)
    assert len(found) == 1
    assert sum(n for n, _ in shapes) == len(corpus)
    assert all(n * length <= 60 and n <= 9 for n, length in shapes)
    assert max(n for n, _ in shapes) > 1


@pytest.mark.parametrize("variant", ["vanilla", "bitran"])
def test_a_signal_ends_the_translation_of_dev_in_the_middle_of_a_batch(variant):
    class Request(signals.Request):
        n_asked = 0

        def __bool__(self):
            self.n_asked += 1
            return self.n_asked > 5

    model, corpus = launches.build(variant, {}), launches.corpus(40)
    given = model, corpus, launches.Numbers(), Training(metric="bleu"), CPU, Request()
    with pytest.raises(Abandoned):
        Validation(*given)._bleu()
    assert model.training


def test_the_estimate_is_of_the_batches_that_there_are():
    model, corpus = launches.build("vanilla", {}), launches.corpus(40)

    def memory(model=model, **bounds):
        return estimate(model, corpus, Training(**bounds))["memory"]

    few = memory(batch_tokens=UNBOUNDED, batch_sentences=3)
    assert few < memory(batch_tokens=UNBOUNDED) == memory(batch_tokens=2 * UNBOUNDED)
    assert memory(batch_tokens=UNBOUNDED, micro_tokens=40) < few
    assert memory(launches.build("bitran", {}), batch_tokens=200) > memory(batch_tokens=200)


def test_half_precision_halves_what_passes_need_where_it_is_not_a_cpu():
    model, corpus = launches.build("vanilla", {}), launches.corpus(40)

    def added(precision, device):
        """The bytes that larger passes need."""
        many, few = (
            estimate(model.to(device), corpus, Training(precision=precision, batch_tokens=n))
            for n in (400, 100)
        )
        return many["memory"] - few["memory"]

    assert added("bf16", "cpu") == added("fp32", "cpu") == added("fp32", "meta")
    assert added("bf16", "meta") == pytest.approx(added("fp32", "meta") / 2, abs=1)
