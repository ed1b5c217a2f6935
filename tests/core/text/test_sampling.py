"""Drawn pieces against formulas, explicit loops and sentencepiece's own draws."""

from __future__ import annotations

import math
from collections import Counter
from itertools import pairwise, product

import pytest

from synmt_cli.core.text.sampling import Sampler, Sampling
from synmt_cli.core.text.vocabulary import Vocabulary
from synmt_cli.core.text.vocabulary_training import VocabularySettings, train

LINES = [
    "the dog sees the cats",
    "a cat sees dogs and the catdogs <tag>",
    "ab abc bc cats cat at ats",
    "naïve cast scat tact acts act cater catered at the seas",
    "these tea teas eat eats seat seats seated heated heat that hats",
] * 3
N = 3000


@pytest.fixture(scope="module", params=["bpe", "unigram"])
def vocabulary(request):
    return made(request.param)


def made(kind, size=48, **options):
    return Vocabulary(train(LINES, VocabularySettings(size=size, type=kind, **options)))


def drawn(vocabulary, text, alpha, n=N, nbest=0):
    sampler = Sampler(vocabulary, Sampling(alpha, nbest, 1))
    return Counter(" ".join(sampler.pieces(text, i)) for i in range(n))


@pytest.mark.parametrize("text", ["", " ", "the dog", "sees 中文 cats", "<tag>dogs", "a  b"])
def test_without_chance_pieces_are_those_of_the_model(vocabulary, text):
    alpha = 0 if vocabulary.making.type == "bpe" else 1000
    assert drawn(vocabulary, text, alpha, 2) == {" ".join(vocabulary.pieces(text)): 2}


def test_pieces_are_of_the_text(vocabulary):
    for found in drawn(vocabulary, "the cats 中 see naïve <s>", 0.4, 50):
        assert vocabulary.join(found.split(" ")) == "the cats 中 see naïve <s>"


def test_dropping_every_merge_gives_characters():
    assert drawn(made("bpe"), "the dog", 1, 1) == {"▁ t h e ▁ d o g": 1}


def test_a_merge_is_left_out_with_its_chance():
    """`▁a` is one merge of two characters."""
    counts = drawn(made("bpe"), "a", 0.3)
    assert set(counts) == {"▁a", "▁ a"}
    assert counts["▁ a"] / N == pytest.approx(0.3, abs=4 * math.sqrt(0.21 / N))


@pytest.mark.parametrize(("alpha", "nbest"), [(0.0, 0), (0.5, 0), (1.0, 0), (0.5, 3)])
def test_segmentations_have_the_probabilities_of_equation_4(alpha, nbest):
    """All segmentations by explicit loops. Kudo 2018, eq. 4 of section 3.3 without its limit."""
    vocabulary = made("unigram")
    scores, text = vocabulary.scores(), "▁cats"
    weights = {}
    for cuts in product((False, True), repeat=len(text) - 1):
        borders = [0, *(i for i, cut in enumerate(cuts, 1) if cut), len(text)]
        parts = [text[a:b] for a, b in pairwise(borders)]
        if all(part in scores for part in parts):
            weights[" ".join(parts)] = sum(scores[part] for part in parts)
    if nbest:
        weights = dict(sorted(weights.items(), key=lambda one: -one[1])[:nbest])
    whole = sum(math.exp(alpha * score) for score in weights.values())
    counts = drawn(vocabulary, "cats", alpha, nbest=nbest)
    assert set(counts) <= set(weights)
    assert len(weights) > 2
    for parts, score in weights.items():
        p = math.exp(alpha * score) / whole
        assert counts[parts] / N == pytest.approx(p, abs=4 * math.sqrt(p * (1 - p) / N) + 1e-9)


def test_sentencepiece_draws_as_often(vocabulary):
    ours = drawn(vocabulary, "the catdogs", 0.2)
    theirs = Counter(
        " ".join(
            vocabulary._processor.encode(
                "the catdogs", out_type=str, enable_sampling=True, alpha=0.2, nbest_size=-1
            )
        )
        for _ in range(N)
    )
    for pieces, n in (ours + theirs).most_common(12):
        p = n / (2 * N)
        assert abs(ours[pieces] - theirs[pieces]) / N < 5 * math.sqrt(2 * p * (1 - p) / N)


def test_user_symbols_stay_whole():
    vocabulary = made("bpe", user_symbols=["<tag>"])
    assert all("<tag>" in one.split(" ") for one in drawn(vocabulary, "dogs <tag>s", 0.9, 20))
    assert vocabulary.user_symbols() == {"<tag>"}


def test_bytes_stand_for_unknown_characters():
    vocabulary = made("bpe", 300, byte_fallback=True)
    (found,) = drawn(vocabulary, "é", 1, 1)
    assert found == "▁ <0xC3> <0xA9>"
