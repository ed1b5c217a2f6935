"""p by matrix products against plain loops, sacreBLEU's own tests, and SciPy."""

import random

import numpy as np
import pytest
from sacrebleu import BLEU, CHRF, TER
from sacrebleu.significance import PairedTest
from scipy.stats import binomtest

from synmt_cli.core.evaluation.metrics.registry import METRICS, build
from synmt_cli.core.evaluation.statistics import significance
from synmt_cli.core.evaluation.statistics.significance import (
    FORMULAS,
    SignificanceTest,
    against_first,
    binomial,
    compare,
    p_value,
)

SACREBLEU = {"bleu": BLEU, "chrf": CHRF, "ter": TER}
EVERY_TEST = [(name, definition) for name, known in FORMULAS.items() for definition in known]


def noisy(lines, rate, seed):
    dice = random.Random(seed)
    return [
        " ".join(dice.choice("xyzw") if dice.random() < rate else word for word in line.split())
        for line in lines
    ]


@pytest.fixture(scope="module")
def texts():
    """80 references; three systems, each worse than the one before."""
    words = random.Random(0)
    lines = [" ".join(words.choices("abcdefgh", k=12)) for _ in range(80)]
    return lines, [noisy(lines, rate, seed) for seed, rate in enumerate((0.3, 0.33, 0.45))]


def compared(test, names, texts):
    """The comparisons by metric name."""
    references, systems = texts
    metrics = build(names, [references])
    statistics = [[[metric.statistics(lines)] for lines in systems] for metric in metrics]
    found = compare(test, metrics, statistics, against_first(len(systems)))
    return dict(zip(names, found.pairs, strict=True))


@pytest.mark.parametrize("kind", ["bs", "ar"])
def test_reproduces_sacrebleus_p(kind, texts, monkeypatch):
    monkeypatch.setenv("SACREBLEU_SEED", "7")
    references, systems = texts
    theirs = {name: one(references=[references]) for name, one in SACREBLEU.items()}
    named = [(str(i), lines) for i, lines in enumerate(systems)]
    _, expected = PairedTest(named, theirs, None, test_type=kind, n_samples=400)()
    found = compared(SignificanceTest(kind, "sacrebleu", 400, 7), list(SACREBLEU), texts)
    for name, label in (("bleu", "BLEU"), ("chrf", "chrF2"), ("ter", "TER")):
        p_values = [result.p_value for result in expected[label][1:]]
        assert [one.p for one in found[name]] == pytest.approx(p_values, abs=1e-9)
        assert 0.001 < max(p_values) < 1  # at an end of the scale, agreement would say little


@pytest.mark.parametrize("definition", FORMULAS["bs"])
def test_bootstrap_equals_a_plain_loop(definition, texts):
    references, (baseline, system, _) = texts
    found = compared(SignificanceTest("bs", definition, 50, 3), ["bleu"], texts)
    draws = np.random.default_rng(3).integers(len(references), size=(50, len(references)))

    def score(lines, indices):
        chosen = [[texts[i] for i in indices] for texts in (lines, references)]
        return BLEU().corpus_score(chosen[0], [chosen[1]]).score

    everything = range(len(references))
    d = score(system, everything) - score(baseline, everything)
    sampled = np.array([score(system, draw) - score(baseline, draw) for draw in draws])
    expected = {
        "centred": (1 + sum(abs(sampled - sampled.mean()) >= abs(d))) / 51,
        "koehn": np.mean([not (one > 0 if d > 0 else one < 0) for one in sampled]),
        "sacrebleu": (1 + sum(abs(sampled) - abs(sampled).mean() > abs(d))) / 51,
    }
    one = found["bleu"][0]
    assert one.delta == pytest.approx(d)
    assert one.p == pytest.approx(expected[definition])
    assert one.ci95 == pytest.approx(tuple(np.percentile(sampled, (2.5, 97.5))))


def test_randomization_equals_a_plain_loop(texts):
    references, (baseline, system, _) = texts
    found = compared(SignificanceTest("ar", "two-sided", 60, 5), ["chrf"], texts)
    keeps = np.random.default_rng(5).integers(2, size=(60, len(references)), dtype=bool)

    def score(lines):
        return CHRF().corpus_score(lines, [references]).score

    d, as_far = score(system) - score(baseline), 0
    for keep in keeps:
        sides = [(b, s) if k else (s, b) for k, b, s in zip(keep, baseline, system, strict=True)]
        as_far += abs(score([s for _, s in sides]) - score([b for b, _ in sides])) >= abs(d)
    assert found["chrf"][0].p == pytest.approx((1 + as_far) / 61)


@pytest.mark.parametrize("wins", range(14))
def test_sign_test_is_scipys(wins):
    assert binomial(wins, 13 - wins) == pytest.approx(binomtest(wins, 13).pvalue, rel=1e-12)


def test_sign_test_on_many_sentences():
    assert binomial(5000, 5300) == pytest.approx(binomtest(5000, 10300).pvalue, rel=1e-9)
    assert binomial(0, 0) == 1.0
    assert binomial(0, 20_000) == 0.0  # far below the least float
    assert 0.0 < binomial(0, 1000) == pytest.approx(0.5**999, rel=1e-9)


@pytest.mark.parametrize("name", ["chrf", "ter"])
def test_sign_test_drops_ties_and_knows_which_way_is_better(name):
    texts = ["a b c d", "a b c d", "a b c d"], [["x", "a b", "a"], ["a b c", "a b", "a b c d"]]
    found = compared(SignificanceTest("sign", "binomial", 10, 1), [name], texts)
    [one] = found[name]
    assert (one.n, one.p) == (2, 0.5)
    assert (one.delta > 0) == (name == "chrf")


@pytest.mark.parametrize(("test", "definition"), EVERY_TEST)
def test_a_system_against_itself_is_never_significant(test, definition, texts):
    references, (baseline, *_) = texts
    found = compared(
        SignificanceTest(test, definition, 200, 1),
        list(METRICS),
        (references, [baseline, baseline]),
    )
    for [one] in found.values():
        assert one.delta == 0 == one.ci95[0] == one.ci95[1]
        assert one.mark() == ""
        assert one.p == (1 / 201 if definition == "sacrebleu" else 1)


def test_the_winner_decides_the_direction_of_koehns_p(texts):
    references, (best, _, worst) = texts
    test = SignificanceTest("bs", "koehn", 300, 1)
    up = compared(test, ["bleu", "ter"], (references, [worst, best]))
    down = compared(test, ["bleu", "ter"], (references, [best, worst]))
    for name in ("bleu", "ter"):
        assert up[name][0].p == down[name][0].p < 0.05
    assert up["bleu"][0].delta > 0 > up["ter"][0].delta


@pytest.mark.parametrize("kind", ["bs", "ar"])
def test_blocks_of_samples_change_nothing(kind, texts, monkeypatch):
    test = SignificanceTest(kind, next(iter(FORMULAS[kind])), 333, 9)
    whole = compared(test, ["bleu", "ribes"], texts)
    monkeypatch.setattr(significance, "CELLS", 100)
    blocks = compared(test, ["bleu", "ribes"], texts)
    for name in whole:
        for one, other in zip(whole[name], blocks[name], strict=True):
            assert one.p == other.p
            assert one.ci95 == pytest.approx(other.ci95, rel=1e-12)


def test_other_seeds_agree_within_tolerance(texts):
    found = [
        compared(SignificanceTest("bs", "centred", 1000, seed), ["bleu"], texts)["bleu"][0].p
        for seed in (1, 2)
    ]
    assert found[0] != found[1]
    assert found[0] == pytest.approx(found[1], abs=0.06)


def test_centred_p_of_pure_noise_is_uniform():
    random_scores = np.random.default_rng(4)
    p_values = []
    for _ in range(300):
        sentences = random_scores.normal(size=40)
        draws = random_scores.integers(40, size=(200, 40))
        test = SignificanceTest("bs", "centred", 200, 0)
        p_values.append(p_value(test, sentences.mean(), sentences[draws].mean(axis=1)))
    assert np.mean(np.array(p_values) < 0.05) == pytest.approx(0.05, abs=0.04)
    assert np.mean(np.array(p_values) < 0.5) == pytest.approx(0.5, abs=0.1)


def test_an_unknown_definition_is_the_callers_mistake():
    with pytest.raises(ValueError, match="no such p"):
        p_value(SignificanceTest("ar", "koehn", 1, 1), 0.0, np.zeros(1))
