"""A sentence encodes and decodes the same alone, padded, and at any place in a batch.

The published PASCAL code fails this twice: it scales rows of other sentences, and shifts
parents against tokens where a batch has padding.
"""

from __future__ import annotations

import pytest
import torch
from support.models import logits, make, side, small

from synmt_cli.core.model.modifier import Side
from synmt_cli.core.variants import plan
from synmt_cli.core.variants.stack import StackSpec

MODELS = {  # name: options of PASCAL
    "vanilla-post": {},
    "vanilla-pre": {},
    "pascal-post": {"heads": 2},
    "pascal-pre-all-heads": {"heads": 3, "variance": 4.0},
    "pascal-post-two-layers": {"heads": [1, 2]},
    "pascal-pre-parent-only": {"heads": 2, "parent_only": True},
    "pascal-post-ignoring": {"heads": 2, "ignore": 0.5},
}
SENTENCE = ([4, 7, 9, 9, 6, 3], [1.0, 1.5, 1.5, 1.5, 3.0, 5.0])
OTHERS = [
    ([5, 3], [0.0, 1.0]),
    ([8, 10, 4, 5, 6, 7, 8, 9, 3], [4.0, 0.5, 0.5, 8.0, 6.5, 6.5, 2.0, 7.0, 8.0]),
    ([6, 6, 6, 3], [2.0, 0.0, 2.0, 3.0]),
]
TARGETS = [[2, 5, 6, 7], [2, 9], [2, 4, 4, 4, 4, 4, 8], [2, 10, 9]]
EXACT = {"rtol": 0, "atol": 1e-12}


def each_model(test):
    return pytest.mark.parametrize("model", MODELS, indirect=True)(test)


@pytest.fixture
def model(request):
    variant, norm = request.param.split("-")[:2]
    size = small(norm)
    setting = StackSpec(size, size.encoder_layers)
    return make(size, plan(variant).encoder(setting, {variant: MODELS[request.param]}))


def source(pairs, **options):
    ids, parents = zip(*pairs, strict=True)
    return side(ids, parent_middle=parents, **options)


def states(model, pairs, **options):
    return model.encode(source(pairs, **options)).states


@each_model
@pytest.mark.parametrize("place", [0, 1, 3])
def test_a_sentence_encodes_the_same_in_any_batch(model, place):
    alone = states(model, [SENTENCE])[0]
    batch = [*OTHERS[:place], SENTENCE, *OTHERS[place:]]
    torch.testing.assert_close(states(model, batch)[place, : len(alone)], alone, **EXACT)


@each_model
def test_the_order_of_a_batch_never_matters(model):
    batch = [*OTHERS, SENTENCE]
    forward, backward = states(model, batch), states(model, batch[::-1])
    torch.testing.assert_close(backward.flip(0), forward, **EXACT)


@each_model
@pytest.mark.parametrize("width", [6, 7, 40])
def test_the_width_of_padding_never_matters(model, width):
    alone = states(model, [SENTENCE])[0]
    torch.testing.assert_close(states(model, [SENTENCE], width=width)[0, :6], alone, **EXACT)


@each_model
@pytest.mark.parametrize("fill", [1, 7, 10])
def test_what_stands_in_padding_never_matters(model, fill):
    """This holds for ids and features: 1, 7 and 10 would also be parents within the sentence."""
    batch, targets = [SENTENCE, *OTHERS], side(TARGETS)
    clean, dirty = source(batch), source(batch, fill=fill)
    real = ~clean.pad
    one, other = model.encode(clean).states[real], model.encode(dirty).states[real]
    torch.testing.assert_close(other, one, **EXACT)
    scores = logits(model, dirty, side(TARGETS, fill=fill))[~targets.pad]
    torch.testing.assert_close(scores, logits(model, clean, targets)[~targets.pad], **EXACT)


@pytest.mark.parametrize("model", ["pascal-post", "pascal-pre-parent-only"], indirect=True)
@pytest.mark.parametrize("garbage", [-1e6, 1e30, float("inf")])
def test_absurd_features_of_padding_never_matter(model, garbage):
    clean = source([SENTENCE, *OTHERS])
    parents = clean.features["parent_middle"].masked_fill(clean.pad, garbage)
    dirty = Side(clean.ids, clean.pad, {"parent_middle": parents})
    one, other = model.encode(clean).states, model.encode(dirty).states
    torch.testing.assert_close(other[~clean.pad], one[~clean.pad], **EXACT)


@each_model
def test_a_mask_without_padding_is_no_mask(model):
    bare = source([SENTENCE])
    masked = Side(bare.ids, torch.zeros_like(bare.ids, dtype=torch.bool), bare.features)
    torch.testing.assert_close(model.encode(masked).states, model.encode(bare).states, **EXACT)


@each_model
@pytest.mark.parametrize("place", [0, 2, 3])
def test_a_target_decodes_the_same_in_any_batch(model, place):
    alone = logits(model, source([SENTENCE]), side(TARGETS[:1]))[0]
    sources = [*OTHERS[:place], SENTENCE, *OTHERS[place:]]
    targets = [*TARGETS[1 : place + 1], TARGETS[0], *TARGETS[place + 1 :]]
    scores = logits(model, source(sources), side(targets))[place, : len(alone)]
    torch.testing.assert_close(scores, alone, **EXACT)


@each_model
def test_a_prefix_decodes_as_it_does_inside_the_whole_target(model):
    memory = model.encode(source([SENTENCE, *OTHERS]))
    whole, _ = model.decode(side(TARGETS), memory)
    for n in (1, 2, 3):
        prefix, _ = model.decode(side([row[:n] for row in TARGETS]), memory)
        for b, row in enumerate(TARGETS):
            known = min(n, len(row))
            torch.testing.assert_close(prefix[b, :known], whole[b, :known], **EXACT)


@each_model
def test_parents_of_other_sentences_never_matter(model):
    other = [(ids, [0.0] * len(ids)) for ids, _ in OTHERS]
    one, two = states(model, [SENTENCE, *OTHERS]), states(model, [SENTENCE, *other])
    torch.testing.assert_close(one[0, :6], two[0, :6], **EXACT)


@pytest.mark.parametrize("model", ["vanilla-post", "pascal-post"], indirect=True)
def test_single_precision_keeps_a_sentence_within_rounding(model, device):
    model = model.float().to(device)
    alone = states(model, [SENTENCE], device=device)[0]
    batch = states(model, [*OTHERS, SENTENCE], device=device)[3, :6]
    torch.testing.assert_close(batch, alone, rtol=0, atol=2e-5)
