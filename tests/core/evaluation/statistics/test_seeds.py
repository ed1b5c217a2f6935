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

    of_seeds: sd of a run's mean, in units of 1 / sqrt n; of_systems: sd of what a system adds to
    a sentence.
    """
    sentences = random.normal(size=n)
    own = of_systems * random.normal(size=(2, 1, n))
    runs = of_seeds * random.normal(size=(2, k, 1)) / math.sqrt(n)
    return sentences + own + runs + random.normal(size=(2, k, n)) + [[[0.0]], [[effect]]]


def test_the_variances_are_those_of_the_analysis_of_variance():
    """For means of sentences they have a closed form: mean squares of runs, sentences and both."""
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
    """The level holds however far models are apart, and that does not change the variance of d."""
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


def half_of_two(of_seeds, rest, p):
    """Half of Banerjee's interval of confidence 1 - p, by SciPy's quantiles."""
    t, z = stats.t.ppf(1 - p / 2, 1), stats.norm.ppf(1 - p / 2)
    return math.sqrt(t * t * of_seeds + z * z * rest)


def test_two_matched_runs_and_two_runs_with_a_single_one_have_the_interval_of_banerjee():
    random = np.random.default_rng(12)
    n = 150
    counts = np.concatenate([*bootstrap_counts(n, 2000, 5)]).T / n
    scores = drawn(random, 2, n, 2.0, 1.0)
    d = (scores[1] - scores[0]).mean(axis=1)  # (2,)
    single = scores[1][:1]
    of_one = scores[0].mean(axis=1).var(ddof=1) * 1.5  # of two runs and the one that borrows it
    for found, delta, of_seeds in (
        (seeds.matched(scores.mean(axis=2), scores @ counts), d.mean(), d.var(ddof=1) / 2),
        (
            seeds.spread(
                [scores[0].mean(axis=1), single.mean(axis=1)], [scores[0] @ counts, single @ counts]
            ),
            single.mean() - scores[0].mean(),
            of_one,
        ),
    ):
        half = half_of_two(of_seeds, found.variance - of_seeds, 0.05)
        assert found.interval(delta) == pytest.approx((delta - half, delta + half))
        for value in (delta, half, 0.3 * half, 20 * half):
            p = found.p(value)
            assert half_of_two(of_seeds, found.variance - of_seeds, p) == pytest.approx(abs(value))
    assert found.p(half) == pytest.approx(0.05)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e35, 1e70])
def test_p_of_two_runs_is_that_of_banerjee_at_any_scale(scale):
    for rest in (0.0, 0.5, 1e8):
        spread = seeds.Spread(scale**2 * (1 + rest), 1.0, scale**2)
        assert spread.p(0.0) == 1
        for value in (0.01, 1.0, 12.0, 1e4, 1e6):
            p = spread.p(value * scale)
            assert half_of_two(1, rest, p) == pytest.approx(value)


@pytest.mark.parametrize("of_seeds", [0.5, 1, 3])
@pytest.mark.parametrize("kind", ["matched", "single", "alone"])
def test_two_runs_alone_never_miss_more_than_the_level(kind, of_seeds):
    """400 times; by the t of Satterthwaite's degrees of freedom it would be up to 0.13."""
    random = np.random.default_rng(9)
    n, misses = 60, []
    counts = np.concatenate([*bootstrap_counts(n, 200, 5)]).T / n
    for _ in range(400):
        if kind == "matched":
            scores = drawn(random, 2, n, of_seeds, 1.0)
            points = scores.mean(axis=2)
            found = seeds.matched(points, scores @ counts)
            low, high = found.interval(float(points[1].mean() - points[0].mean()))
        elif kind == "single":
            pair = unequal(random, (2, 1), n, (of_seeds, of_seeds))
            points = [runs.mean(axis=1) for runs in pair]
            found = seeds.spread(points, [runs @ counts for runs in pair])
            low, high = found.interval(float(points[1].mean() - points[0].mean()))
        else:
            scores = drawn(random, 2, n, of_seeds, 0.0)[:1]
            points = scores.mean(axis=2)
            low, high = seeds.spread(points, scores @ counts).interval(float(points.mean()))
        misses.append(not low <= 0 <= high)
    assert np.mean(misses) < 0.065


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


def unequal(random, k, n, of_seeds=(1.0, 1.0), of_systems=1.0, effect=0.0):
    """Like `drawn`, with k runs and of_seeds of its own for each system: two arrays (k, n)."""
    sentences = random.normal(size=n)
    scores = []
    for n_runs, sd in zip(k, of_seeds, strict=True):
        own = of_systems * random.normal(size=n)
        runs = sd * random.normal(size=(n_runs, 1)) / math.sqrt(n)
        scores.append(sentences + own + runs + random.normal(size=(n_runs, n)))
    return [scores[0], scores[1] + effect]


def mean_squares(scores):
    """(s^2 of a run's score, e^2 of a run's mean of n sentences), by plain sums of squares."""
    k, n = scores.shape
    apart = [[scores[i, j] - scores[:, j].mean() for j in range(n)] for i in range(k)]
    e2 = sum(sum((x - np.mean(row)) ** 2 for x in row) / n for row in apart) / (k - 1) / n
    means = [row.mean() for row in scores]
    return sum((one - np.mean(means)) ** 2 for one in means) / (k - 1), e2


@pytest.mark.parametrize("k", [(5, 3), (2, 4), (5, 1), (1, 3)])
def test_unequal_numbers_of_runs_have_the_variances_of_the_formula(k):
    """Welch's, by analysis of variance; a single run is given the other system's mean squares."""
    n = 150
    scores = unequal(np.random.default_rng(8), k, n, (2.0, 3.0))
    d = scores[1].mean(axis=0) - scores[0].mean(axis=0)
    squares = [mean_squares(runs) for runs in scores if len(runs) > 1]
    of_seeds, both = 0.0, 0.0
    below = []
    if 1 in k:
        [(s2, e2)], many = squares, max(k)
        of_seeds, both = s2 + s2 / many, e2 + e2 / many
        below = [of_seeds**2 / (many - 1)]
    else:
        for (s2, e2), n_runs in zip(squares, k, strict=True):
            of_seeds, both = of_seeds + s2 / n_runs, both + e2 / n_runs
            below.append((s2 / n_runs) ** 2 / (n_runs - 1))
    variance = of_seeds + d.var() / n - both
    counts = np.concatenate([*bootstrap_counts(n, 20_000, 5)])
    found = seeds.spread(
        [one.mean(axis=1) for one in scores], [one @ counts.T / n for one in scores]
    )
    assert found.variance == pytest.approx(variance, rel=0.03)
    assert found.df == pytest.approx(variance**2 / sum(below), rel=0.06)


def test_without_chance_of_sentences_it_is_the_test_of_welch_or_of_crawford_and_howell():
    """SciPy's Welch test; t = (x - mean) / (s sqrt(1 + 1/k)) with k - 1 degrees of freedom."""
    points = np.array([30.1, 30.9, 29.8, 30.4, 30.6]), np.array([31.0, 31.9, 30.7])
    constant = [np.repeat(one[:, None], 9, axis=1) for one in points]  # (k, samples)
    d = points[1].mean() - points[0].mean()
    welch = stats.ttest_ind(points[1], points[0], equal_var=False)
    found = seeds.spread(points, constant)
    assert found.p(d) == pytest.approx(welch.pvalue)
    assert found.interval(d) == pytest.approx(tuple(welch.confidence_interval()))
    single = np.array([31.5])
    for order in ((0, 1), (1, 0)):
        pair = [(points[0], constant[0]), (single, np.full((1, 9), 31.5))]
        found = seeds.spread(*zip(*(pair[i] for i in order), strict=True))
        t = (31.5 - points[0].mean()) / (points[0].std(ddof=1) * math.sqrt(1 + 1 / 5))
        assert found.df == pytest.approx(4)
        assert found.p(31.5 - points[0].mean()) == pytest.approx(2 * stats.t.sf(abs(t), 4))


def test_runs_that_score_alike_by_chance_do_not_vouch_for_a_single_one():
    """Runs differ sentence by sentence and have equal means: V is at least that of sentences."""
    random = np.random.default_rng(2)
    scores = unequal(random, (3, 1), 150)
    scores[0] -= scores[0].mean(axis=1, keepdims=True)
    counts = np.concatenate([*bootstrap_counts(150, 20_000, 5)]).T / 150
    found = seeds.spread([one.mean(axis=1) for one in scores], [one @ counts for one in scores])
    d = scores[1].mean(axis=0) - scores[0].mean(axis=0)
    assert found.variance == pytest.approx(d.var() / 150, rel=0.03)


@pytest.mark.parametrize(
    ("k", "of_seeds"), [((5, 3), (0, 0)), ((5, 3), (3, 3)), ((3, 5), (1, 3)), ((5, 1), (3, 3))]
)
def test_the_level_holds_and_intervals_cover_where_numbers_differ(k, of_seeds):
    """300 pairs with a difference of 0.3, which p and the interval must not exclude too often."""
    random = np.random.default_rng(7)
    n, alarms, covers = 60, [], []
    counts = np.concatenate([*bootstrap_counts(n, 200, 5)]).T / n
    for _ in range(300):
        scores = unequal(random, k, n, of_seeds, effect=0.3)
        points = [runs.mean(axis=1) for runs in scores]
        d = float(points[1].mean() - points[0].mean())
        found = seeds.spread(points, [runs @ counts for runs in scores])
        low, high = found.interval(d)
        alarms.append(found.p(d - 0.3) < 0.05)
        covers.append(low <= 0.3 <= high)
    assert 0.02 < np.mean(alarms) < 0.08
    assert 0.92 < np.mean(covers) < 0.98


def test_an_interval_stays_within_the_bounds_of_its_metric():
    """Two runs at 0 and 60 BLEU: without bounds, their mean is known to hundreds of points."""
    reference = ["a b c d e f", "g h i j k l"] * 10
    [bleu], [ter] = build(["bleu"], [reference]), build(["ter"], [reference])
    half = ["a b c d x y", "g h i j x y"] * 10
    for metric, expected in ((bleu, (0.0, 100.0)), (ter, (0.0, math.inf))):
        runs = [metric.statistics(lines) for lines in (half, ["z"] * 20)]
        [[(low, high)]] = compare(TEST, [metric], [[runs]], []).alone
        assert low == expected[0]
        assert 100 <= high <= expected[1]
    scores = np.array([[[-9.0] * 20, [9.0] * 20]])  # by another program
    [[(low, high)]] = compare(TEST, [MEAN], [rows(scores)], []).alone
    assert low == pytest.approx(-high) == pytest.approx(-9 * stats.t.ppf(0.975, 1))


def test_runs_of_other_systems_change_nothing_and_a_single_one_says_what_it_assumes():
    """Systems have 3, 3, 5 and 1 runs: the pair with equal numbers gives what it gives alone."""
    random = np.random.default_rng(4)
    scores = [*drawn(random, 3, 90, 1.0, 1.0)]
    scores += [random.normal(size=(5, 90)), random.normal(size=(1, 90))]
    pairs = [(0, 1), (0, 2), (0, 3), (2, 3)]
    together = compare(TEST, [MEAN], [rows(scores)], pairs)
    alone = compare(TEST, [MEAN], [rows(scores[:2])], [(0, 1)])
    assert together.pairs[0][0] == alone.pairs[0][0]
    assert together.alone[0][:2] == alone.alone[0]
    definitions = [one.definition for one in together.pairs[0]]
    assert definitions == ["seeds", "seeds", "equal-variance", "equal-variance"]
    assert together.alone[0][3] is None


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
    """The baseline's better run has more words: d is negative, the difference of means positive."""
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
    assert 0.02 < expected < 0.98  # far from 0 and 1, where agreement would say little
    assert one.p == pytest.approx(expected, abs=4 * math.sqrt(expected * (1 - expected) / 600))
