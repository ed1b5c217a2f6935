"""Chance of seeds and of sentences: the variances, and tests that hold their level."""

import math

import numpy as np
import pytest
from sacrebleu import BLEU
from scipy import stats
from support.multeval import stratified_p

from synmt_cli.core.evaluation.metrics.outside import metric as outside
from synmt_cli.core.evaluation.metrics.registry import build
from synmt_cli.core.evaluation.statistics import seeds
from synmt_cli.core.evaluation.statistics.significance import (
    SignificanceTest,
    against_first,
    bootstrap_counts,
    compare,
)

TEST = SignificanceTest("bs", "seeds", 1000, 1)
MEAN = outside("mine", ["x"], True)


def rows(scores):
    """Statistics of sentence scores (systems, seeds, n)."""
    return [[np.stack([run, np.ones(len(run))], axis=1) for run in runs] for runs in scores]


def drawn(random, k, n, of_seeds, of_systems, effect=0.0):
    """Sentence scores of two systems, (2, k, n): a crossed design with known variances.

    of_seeds: sd of a run's mean in units of 1 / sqrt n; of_systems: of a system's sentence.
    """
    sentences = random.normal(size=n)
    own = of_systems * random.normal(size=(2, 1, n))
    runs = of_seeds * random.normal(size=(2, k, 1)) / math.sqrt(n)
    return sentences + own + runs + random.normal(size=(2, k, n)) + [[[0.0]], [[effect]]]


def test_the_variances_are_those_of_the_analysis_of_variance():
    """Means of sentences have a closed form: mean squares of runs, sentences and both."""
    scores = drawn(np.random.default_rng(3), 3, 200, 2.0, 1.0)
    k, n = scores.shape[1:]
    d = scores[1].mean(axis=0) - scores[0].mean(axis=0)
    of_seeds = scores.mean(axis=2).var(axis=1, ddof=1) / k  # (2,)
    apart = scores - scores.mean(axis=1, keepdims=True)
    both = apart.var(axis=2).sum() / (k - 1) / k / n
    variance = of_seeds.sum() + d.var() / n - both
    df = variance**2 / (of_seeds**2 / (k - 1)).sum()
    counts = np.concatenate([*bootstrap_counts(n, 20_000, 5)])
    points = scores.mean(axis=2)
    found = seeds.spread(points, scores @ counts.T / n)
    assert found.variance == pytest.approx(variance, rel=0.03)
    assert found.df == pytest.approx(df, rel=0.06)
    expected = 2 * stats.t.sf(abs(d.mean()) / math.sqrt(variance), df)
    assert found.p(d.mean()) == pytest.approx(expected, rel=0.05)
    half = stats.t.ppf(0.975, df) * math.sqrt(variance)
    assert found.interval(d.mean()) == pytest.approx((d.mean() - half, d.mean() + half), rel=0.03)


@pytest.mark.parametrize(("of_seeds", "of_systems"), [(0, 0), (0, 1), (1, 0), (3, 1)])
def test_the_level_holds_with_and_without_variance_of_seeds(of_seeds, of_systems):
    """300 pairs that do not differ; benchmarks/bench_calibration.py does it on translations."""
    random = np.random.default_rng(7)
    n, alarms = 60, []
    counts = np.concatenate([*bootstrap_counts(n, 200, 5)]).T / n
    for _ in range(300):
        scores = drawn(random, 3, n, of_seeds, of_systems)
        points = scores.mean(axis=2)
        d = float(points[1].mean() - points[0].mean())
        alarms.append(seeds.spread(points, scores @ counts).p(d) < 0.05)
    assert 0.02 < np.mean(alarms) < 0.08


@pytest.mark.parametrize(("of_models", "of_systems"), [(0, 0), (3, 0), (3, 1)])
def test_matched_runs_are_compared_model_by_model(of_models, of_systems):
    """The level holds whatever sets models apart, and that is in no variance of d."""
    random = np.random.default_rng(11)
    n, alarms = 60, []
    counts = np.concatenate([*bootstrap_counts(n, 200, 5)]).T / n
    for _ in range(300):
        scores = drawn(random, 3, n, 0.0, of_systems)
        apart = of_models * random.normal(size=(3, 1)) / math.sqrt(n)  # the same in both systems
        points, sampled = scores.mean(axis=2), scores @ counts
        found = seeds.matched(points, sampled)
        shifted = seeds.matched(points + apart[:, 0], sampled + apart)
        assert shifted.variance == pytest.approx(found.variance)
        assert shifted.df == pytest.approx(found.df)
        alarms.append(found.p(float(points[1].mean() - points[0].mean())) < 0.05)
    assert 0.02 < np.mean(alarms) < 0.08


def test_matched_runs_have_the_variances_of_their_differences():
    scores = drawn(np.random.default_rng(3), 3, 200, 2.0, 1.0)
    k, n = scores.shape[1:]
    d = scores[1] - scores[0]  # (k, n)
    of_models = d.mean(axis=1).var(ddof=1) / k
    both = (d - d.mean(axis=0)).var(axis=1).sum() / (k - 1) / k / n
    variance = of_models + d.mean(axis=0).var() / n - both
    counts = np.concatenate([*bootstrap_counts(n, 20_000, 5)])
    found = seeds.matched(scores.mean(axis=2), scores @ counts.T / n)
    assert found.variance == pytest.approx(variance, rel=0.03)
    assert found.df == pytest.approx(variance**2 / (of_models**2 / (k - 1)), rel=0.06)


def test_runs_that_are_all_the_same_leave_the_bootstrap():
    scores = drawn(np.random.default_rng(5), 1, 80, 0.0, 1.0, effect=0.2)
    alike = compare(TEST, [MEAN], [rows(np.repeat(scores, 3, axis=1))], [(0, 1)])
    single = SignificanceTest("bs", "centred", 1000, 1)
    alone = compare(single, [MEAN], [rows(scores)], [(0, 1)])
    [[one]], [[other]] = alike.pairs, alone.pairs
    assert one.delta == pytest.approx(other.delta)
    assert one.p == pytest.approx(other.p, abs=0.02)
    assert one.ci95 == pytest.approx(other.ci95, abs=0.03)
    assert alike.alone[0][0] == pytest.approx(alone.alone[0][0], abs=0.03)


def test_a_system_against_itself_does_not_differ():
    scores = drawn(np.random.default_rng(5), 2, 50, 1.0, 1.0)
    found = compare(TEST, [MEAN], [rows(scores[[0, 0]])], [(0, 1)])
    [[one]] = found.pairs
    assert (one.delta, one.p, one.mark()) == (0, 1, "")
    nothing = np.ones((2, 3, 50))
    [[one]] = compare(TEST, [MEAN], [rows(nothing)], [(0, 1)]).pairs
    assert (one.p, one.ci95) == (1, (0, 0))


def test_the_stratified_test_is_of_all_runs_together():
    """The baseline's better run has more words: d is negative, that of the means is positive."""
    means, words = np.array([[[0.0], [10]], [[8], [6]]]), ((1, 9), (9, 1))
    scores = means + np.random.default_rng(2).normal(size=(2, 2, 12))
    statistics = [
        [run * n for run, n in zip(*of_system, strict=True)]
        for of_system in zip(rows(scores), words, strict=True)
    ]
    test = SignificanceTest("ar", "stratified", 200, 5)
    [[one]] = compare(test, [MEAN], [statistics], [(0, 1)]).pairs

    def d(system, baseline):
        return np.divide(*system.sum(axis=0)) - np.divide(*baseline.sum(axis=0))

    b, s = map(np.vstack, statistics)
    keeps = np.random.default_rng(5).integers(2, size=(200, 24, 1), dtype=bool)
    as_far = [abs(d(np.where(k, s, b), np.where(k, b, s))) >= abs(d(s, b)) for k in keeps]
    assert d(s, b) < 0 < one.delta == pytest.approx(np.subtract(*scores.mean(axis=(1, 2))[::-1]))
    assert one.p == (1 + sum(as_far)) / 201 > 0.05
    assert one.contradicts


def test_the_stratified_test_is_multevals(data):
    """Against loops that were written from the paper, on real outputs."""
    folder = data / "nc11-de-en-outputs"
    names = ("", "_tagemb", "_pascal", "_lisa")
    read = [folder / f"transformer{name}.en" for name in names]
    reference, *outputs = (
        path.read_text(encoding="utf-8").split("\n")[:150] for path in (folder / "ref.en", *read)
    )
    [bleu] = build(["bleu"], [reference])
    statistics = [[bleu.statistics(lines) for lines in outputs[i : i + 2]] for i in (0, 2)]
    test = SignificanceTest("ar", "stratified", 3000, 2)
    [[one]] = compare(test, [bleu], [statistics], against_first(2)).pairs
    theirs = BLEU()
    expected = stratified_p(
        lambda sums: theirs._compute_score_from_stats([*sums]).score,
        *([[tuple(row) for row in run.tolist()] for run in runs] for runs in statistics),
        n=600,
        seed=1,
    )
    assert 0.02 < expected < 0.98  # the figure says something
    assert one.p == pytest.approx(expected, abs=4 * math.sqrt(expected * (1 - expected) / 600))
