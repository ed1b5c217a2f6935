"""The classifier learns what is there and no more; vectors are means of states."""

from __future__ import annotations

import pytest
import torch
from support.small_runs import RECORDS, opened

from synmt_cli.core.analysis.classifier import ClassifierSettings, fit
from synmt_cli.core.analysis.probe import control_task, layer_vectors
from synmt_cli.core.text.vocabulary import EOS
from synmt_cli.formats.senteval import Example


def splits(vectors, classes):
    bounds = {"tr": slice(0, 600), "va": slice(600, 700), "te": slice(700, 800)}
    return {split: (vectors[part], classes[part]) for split, part in bounds.items()}


@pytest.fixture
def noise():
    random = torch.Generator().manual_seed(3)
    return torch.randn(800, 8, generator=random), torch.randint(0, 4, (800,), generator=random)


@pytest.mark.parametrize("hidden", [200, 0])
def test_vectors_that_hold_the_label_give_it(noise, hidden):
    vectors, classes = noise
    vectors = torch.cat((vectors, torch.eye(4)[classes]), 1)
    found = fit(splits(vectors, classes), 4, ClassifierSettings(hidden=hidden))
    assert found.test > 98


def test_noise_gives_the_majority(noise):
    vectors, classes = noise
    found = fit(splits(vectors, classes), 4, ClassifierSettings())
    assert 10 < found.test < 40
    mostly = torch.where(classes == 3, 1, 0)  # 0 in three of four
    assert 60 < fit(splits(vectors, mostly), 2, ClassifierSettings()).test < 90


def test_exclusive_or_needs_the_hidden_layer(noise):
    vectors = noise[0][:, :2].sign()
    data = splits(vectors, (vectors.prod(1) > 0).long())
    data["tr"] = tuple(part.repeat_interleave(6, 0) for part in data["tr"])
    assert fit(data, 2, ClassifierSettings(hidden=50)).test > 95
    assert fit(data, 2, ClassifierSettings(hidden=0)).test < 80


def test_the_seed_decides_and_others_see_nothing(noise):
    data = splits(*noise)
    state = torch.random.get_rng_state()
    assert fit(data, 4, ClassifierSettings(seed=5)) == fit(data, 4, ClassifierSettings(seed=5))
    assert torch.equal(state, torch.random.get_rng_state())


def test_the_model_that_is_best_on_dev_is_tested(noise):
    """Test has the vectors of dev and opposite labels: what is right on dev is wrong on test."""
    classes = noise[1] % 2
    data = splits(noise[0] + 0.2 * classes[:, None], classes)
    data["te"] = data["va"][0], 1 - data["va"][1]
    found = fit(data, 2, ClassifierSettings(hidden=0))
    assert found.test == pytest.approx(100 - found.dev)
    assert found.dev > 50


@pytest.mark.parametrize("variant", ["vanilla", "pascal"])
def test_a_vector_is_the_mean_of_states_with_the_end_of_sentence(variant):
    run = opened(variant)
    (found,) = layer_vectors(run, RECORDS, (None,))
    for vector, record in zip(found, RECORDS, strict=True):
        ((_, side),) = run.batches([record])
        assert side.ids[0, -1] == EOS
        states = run.model.encode(side).states[0]
        assert len(states) == len(record.pieces) + 1
        assert torch.allclose(vector.double(), states.mean(0), atol=1e-6)


@pytest.mark.parametrize("variant", ["vanilla", "pascal"])
def test_vectors_of_layers_are_means_of_what_they_give(variant):
    run = opened(variant)
    n = len(run.model.encoder.layers)
    found = layer_vectors(run, RECORDS, [*range(n), None])
    assert torch.equal(found[n], layer_vectors(run, RECORDS, (None,))[0])
    for row, record in enumerate(RECORDS):
        ((_, side),) = run.batches([record])
        for layer in range(n):
            outputs = []
            handle = run.model.encoder.layers[layer].register_forward_hook(
                lambda module, given, output, outputs=outputs: outputs.append(output)
            )
            run.model.encode(side)
            handle.remove()
            mean = outputs[0][0].mean(0)
            assert torch.allclose(found[layer, row].double(), mean.double(), atol=1e-6)
    last = torch.allclose(found[n - 1], found[n], atol=1e-6)
    assert last == isinstance(run.model.encoder.norm, torch.nn.Identity)


def test_control_labels_belong_to_first_words():
    label = control_task([0, 0, 0, 1], 5)
    words = [Example("tr", "x", f"w{i} and more") for i in range(400)]
    drawn = [label(one) for one in words]
    assert drawn == [label(Example("te", "y", f"W{i} less")) for i in range(400)]
    assert 0.15 < sum(drawn) / 400 < 0.35
    assert drawn != [control_task([0, 0, 0, 1], 6)(one) for one in words]
    assert label(Example("tr", "x", "")) in (0, 1)
