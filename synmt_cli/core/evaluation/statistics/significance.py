"""Is a system better than the baseline, or lucky with the test set and its seeds? Paired tests.

d is the difference system - baseline on the test set, d* the same on a sample, n the samples.

bs, paired bootstrap (Koehn, 2004): sentences are drawn with replacement. Three definitions
of p are in use, and their figures cannot be compared with each other.
ar, approximate randomization (Riezler and Maxwell, 2005): the outputs of each sentence
change sides with probability 1/2.
sign, sign test: the exact binomial of sentences won and lost; ties are dropped.

FORMULAS defines each p. A system against itself has p = 1, but 1 / (n + 1) by sacreBLEU's
definitions. Whatever the test, the 95 % interval of d is the bootstrap's percentiles, if
systems have one seed.

A system with k training seeds has the mean of their scores, and d has two sources of chance: the
seeds and the sentences. SEED_FORMULAS defines its p. The default, `seeds`, and `matched` are in
seeds.py. For `seeds`, k may differ between systems; where one of two has a single output, the
definition is EQUAL_VARIANCE. `stratified` is MultEval's (Clark et al., 2011): the outputs of run i
change sides sentence by sentence with those of run i of the other system. It takes the runs as they
are: where seeds differ, it calls chance a difference far too often.

The samples are those that sacreBLEU draws with the same seed, the same for every metric and
system, and sentence statistics are summed over them by matrix products.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from synmt_cli.core.evaluation.metrics.formulas import Array
from synmt_cli.core.evaluation.metrics.registry import Metric
from synmt_cli.core.evaluation.statistics import seeds
from synmt_cli.formats.reports.score.systems import EQUAL_VARIANCE, Interval, PairedComparison

CELLS = 2**22  # of a (samples, sentences) matrix in memory at a time: 32 MiB
SAMPLES = {"bs": 1000, "ar": 10000, "sign": 1000}  # defaults; sign draws them for its interval
# test: definition of p: formula. The first definition is the test's default.
FORMULAS = {
    "bs": {
        "centred": "(1 + #{|d* - mean d*| >= |d|}) / (n + 1), two-sided",
        "koehn": "the share of samples in which the better system does not win, one-sided",
        "sacrebleu": "(1 + #{|d*| - mean |d*| > |d|}) / (n + 1), two-sided",
    },
    "ar": {
        "two-sided": "(1 + #{|d*| >= |d|}) / (n + 1)",
        "sacrebleu": "(1 + #{|d*| > |d|}) / (n + 1), two-sided",
    },
    "sign": {"binomial": "exact binomial over the n sentences that are not ties, two-sided"},
}
# FORMULAS for systems with several seeds.
SEED_FORMULAS = {
    "bs": {"seeds": seeds.FORMULA, "matched": seeds.MATCHED},
    "ar": {
        "stratified": "(1 + #{|d*| >= |d|}) / (n + 1), d of all runs together; "
        "takes the seeds as they are, so that p is too small where they differ"
    },
}
SMALLEST = 20  # segments: with fewer, the bootstrap calls chance a difference too often
TIE = 1e-9  # of a score point: equal scores whose floats were summed in another order

Runs = Sequence[Array]  # sentence statistics of a system, (n_sentences, k) for each seed
Statistics = Sequence[Runs]  # of one metric, for each system
Pair = tuple[int, int]  # baseline and system, as indices


@dataclass(frozen=True, slots=True)
class SignificanceTest:
    """A paired test. name, definition: keys of FORMULAS or SEED_FORMULAS. n: samples, from 1."""

    name: str
    definition: str
    n: int
    seed: int

    @property
    def formula(self) -> str:
        """How p is computed, in words."""
        return {**FORMULAS[self.name], **SEED_FORMULAS.get(self.name, {})}[self.definition]

    def interval(self, n_runs: Sequence[int]) -> str:
        """How 95 % intervals are computed, in words: of differences, or of one system's score.

        n_runs: of each system.
        """
        if self.definition not in SEED_FORMULAS.get(self.name, {}):
            return "percentile bootstrap"
        if len(n_runs) > 1:
            return seeds.INTERVALS[self.name]
        return f"{seeds.ALONE}; {seeds.OF_TWO}" if n_runs[0] == 2 else seeds.ALONE

    @property
    def interval_n(self) -> int:
        """The interval's bootstrap samples: the test's own; for ar the bootstrap's default."""
        return SAMPLES["bs"] if self.name == "ar" else self.n


@dataclass(frozen=True, slots=True)
class Findings:
    """Results of tests. pairs: for each metric, the comparison of each pair. alone: for each
    metric, the 95 % interval of each system's score; None for a single output among systems with
    several, as it would cover sentences only, and theirs cover seeds and sentences.
    """

    pairs: list[list[PairedComparison]]
    alone: list[list[Interval | None]]


def against_first(n_systems: int) -> list[Pair]:
    """Each further system with the first."""
    return [(0, system) for system in range(1, n_systems)]


def all_pairs(n_systems: int) -> list[Pair]:
    """Each system with every one before it."""
    return [(one, other) for one in range(n_systems) for other in range(one + 1, n_systems)]


def doubt(test: SignificanceTest, n: int, units: str) -> str:
    """Why a test over n `units` is not to be relied on, "" if nothing speaks against it."""
    if test.name != "bs" or n >= SMALLEST:
        return ""
    few = f"with fewer than {SMALLEST} {units}, here {n},"
    return f"{few} the bootstrap calls chance a difference too often"


def compare(
    test: SignificanceTest,
    metrics: Sequence[Metric],
    statistics: Sequence[Statistics],
    pairs: Sequence[Pair],
) -> Findings:
    """The comparisons of these pairs by every metric, and the interval of each system alone."""
    n_sentences = len(statistics[0][0][0])
    counts = bootstrap_counts(n_sentences, test.interval_n, test.seed)
    resampled = bootstrap_scores(metrics, statistics, counts)
    swapped = None
    if test.name == "ar":
        stacked = [[np.vstack(runs) for runs in systems] for systems in statistics]
        kept = swaps(len(stacked[0][0]), test.n, test.seed)
        swapped = swap_differences(metrics, stacked, kept, pairs)  # (metrics, pairs, n)
    found: list[list[PairedComparison]] = []
    alone: list[list[Interval | None]] = []
    for m, (metric, systems) in enumerate(zip(metrics, statistics, strict=True)):
        points = [np.array([metric.corpus(run.sum(axis=0)) for run in runs]) for runs in systems]
        of_metric = resampled[m]  # (seeds, samples) of each system
        several = max(map(len, points)) > 1
        each = zip(points, of_metric, strict=True)
        alone.append([_alone(own, sampled, several, metric.bounds) for own, sampled in each])
        found.append([])
        for i, (b, s) in enumerate(pairs):
            pair = _Pair(metric, (systems[b], systems[s]), (points[b], points[s]))
            drawn = None if swapped is None else swapped[m, i]
            found[-1].append(_paired(test, pair, (of_metric[b], of_metric[s]), drawn))
    return Findings(found, alone)


def _alone(points: Array, resampled: Array, several: bool, bounds: Interval) -> Interval | None:
    """The interval of a score. points: (seeds,). resampled: (seeds, samples). several: whether
    some system has several seeds. bounds: of scores, beyond which no interval goes.
    """
    if len(points) == 1:
        return None if several else _percentiles(resampled[0])
    low, high = seeds.spread([points], [resampled]).interval(float(points.mean()))
    return max(low, bounds[0]), min(high, bounds[1])


def _percentiles(sampled: Array) -> Interval:
    low, high = np.percentile(sampled, (2.5, 97.5)).tolist()
    return low, high


@dataclass(frozen=True, slots=True)
class _Pair:
    """A baseline and a system: the statistics of their runs and their scores, (seeds,) each."""

    metric: Metric
    runs: tuple[Runs, Runs]
    points: tuple[Array, Array]

    @property
    def delta(self) -> float:
        baseline, system = (float(points.mean()) for points in self.points)
        return system - baseline

    @property
    def pooled(self) -> float:
        """d of all runs together."""
        sums = (sum(run.sum(axis=0) for run in runs) for runs in self.runs)
        baseline, system = map(self.metric.corpus, sums)
        return system - baseline


def _paired(
    test: SignificanceTest, pair: _Pair, resampled: tuple[Array, Array], swapped: Array | None
) -> PairedComparison:
    """The comparison of a pair. resampled: (seeds, samples) of both. swapped: (n,), for ar."""
    delta, n = pair.delta, test.n
    fewest, most = sorted(map(len, pair.points))
    definition = EQUAL_VARIANCE if fewest == 1 < most else test.definition
    build = partial(PairedComparison, test.name, definition, seed=test.seed, delta=delta)
    if most > 1:
        of_pair = seeds.matched if test.definition == "matched" else seeds.spread
        spread = of_pair(pair.points, resampled)
        ci95 = spread.interval(delta)
        if swapped is None:
            return build(n=n, ci95=ci95, p=spread.p(delta))
        p = p_value(test, pair.pooled, swapped)
        return build(n=n, ci95=ci95, p=p, contradicts=pair.pooled * delta < 0)
    differences = resampled[1][0] - resampled[0][0]  # (samples,)
    ci95 = _percentiles(differences)
    if test.name == "sign":
        wins, losses, ties = wins_losses_ties(pair.metric, pair.runs[0][0], pair.runs[1][0])
        better = delta if pair.metric.higher_is_better else -delta
        return build(
            n=wins + losses,
            ci95=ci95,
            p=binomial(wins, losses),
            counts=(wins, losses, ties),
            contradicts=better * (wins - losses) < 0,
        )
    if test.name == "bs" and len(pair.runs[0][0]) == 1:  # all samples are that segment
        return build(n=n, ci95=ci95, p=1.0)
    p = p_value(test, delta, differences if swapped is None else swapped)
    return build(n=n, ci95=ci95, p=p)


def p_value(test: SignificanceTest, delta: float, sampled: Array) -> float:
    """p of the difference `delta`, given the differences on the test's samples (n,)."""
    n, distance = len(sampled), np.abs(sampled)
    match test.name, test.definition:
        case "bs", "centred":
            as_far = np.abs(sampled - sampled.mean()) >= abs(delta) - TIE
        case "bs", "koehn":
            won = sampled * np.sign(delta) > TIE
            return float(n - np.count_nonzero(won)) / n
        case "bs", "sacrebleu":
            as_far = distance - distance.mean() > abs(delta)
        case "ar", "two-sided" | "stratified":
            as_far = distance >= abs(delta) - TIE
        case "ar", "sacrebleu":
            as_far = distance > abs(delta) + TIE
        case name:
            raise ValueError(f"no such p: {name}")
    return (1 + int(np.count_nonzero(as_far))) / (n + 1)


def wins_losses_ties(metric: Metric, baseline: Array, system: Array) -> tuple[int, int, int]:
    """On how many sentences the system scores better, worse, and the same as the baseline."""
    difference = metric.sentences(system) - metric.sentences(baseline)  # (n_sentences,)
    higher = int(np.count_nonzero(difference > TIE))
    lower = int(np.count_nonzero(difference < -TIE))
    wins, losses = (higher, lower) if metric.higher_is_better else (lower, higher)
    return wins, losses, len(difference) - wins - losses


def binomial(wins: int, losses: int) -> float:
    """The chance of a split at least as uneven when each side wins with probability 1/2.

    >>> binomial(9, 1)  # 2 * (1 + 10) / 1024
    0.021484375
    """
    n, fewer = wins + losses, min(wins, losses)
    if 2 * fewer >= n - 1:  # the two tails are everything
        return 1.0
    ways, tail = 1, 1
    for k in range(1, fewer + 1):
        ways = ways * (n - k + 1) // k
        tail += ways
    return float(2 * tail / 2**n)


def bootstrap_counts(n_sentences: int, n: int, seed: int) -> Iterator[Array]:
    """Yields blocks (samples, n_sentences): how often each sample holds each sentence."""
    random = np.random.default_rng(seed)
    rows = max(1, CELLS // n_sentences)
    for start in range(0, n, rows):
        size = min(rows, n - start)
        drawn = random.integers(n_sentences, size=(size, n_sentences))  # (size, n_sentences)
        drawn += np.arange(size)[:, None] * n_sentences
        counts = np.bincount(drawn.ravel(), minlength=size * n_sentences)
        yield counts.reshape(size, n_sentences).astype(np.float64)  # (size, n_sentences)


def swaps(n_sentences: int, n: int, seed: int) -> Iterator[Array]:
    """Yields blocks (samples, n_sentences): 1 where a sentence keeps its side, else 0."""
    random = np.random.default_rng(seed)
    # NumPy takes 32 truth values from each random number and drops the rest of the last one.
    # With a multiple of 32 rows in each block, the blocks equal all samples drawn at once.
    rows = max(32, CELLS // n_sentences // 32 * 32)
    for start in range(0, n, rows):
        size = (min(rows, n - start), n_sentences)
        yield random.integers(2, size=size, dtype=np.bool_).astype(np.float64)


def bootstrap_scores(
    metrics: Sequence[Metric], statistics: Sequence[Statistics], counts: Iterable[Array]
) -> list[list[Array]]:
    """Scores, for each metric and system (seeds, samples), where sample i holds sentence j
    counts[i, j] times.
    """
    n_seeds = [len(runs) for runs in statistics[0]]

    def scores(sums: Iterator[Array]) -> list[list[Array]]:
        return [[metric.scores(next(sums)) for _ in range(sum(n_seeds))] for metric in metrics]

    runs = [run for systems in statistics for of_one in systems for run in of_one]
    sampled = _sampled(runs, counts, scores)  # (metrics, seeds of all systems, samples)
    borders = np.cumsum(n_seeds)[:-1].tolist()
    return [np.split(of_metric, borders) for of_metric in sampled]


def swap_differences(
    metrics: Sequence[Metric],
    statistics: Sequence[Sequence[Array]],
    kept: Iterable[Array],
    pairs: Sequence[Pair],
) -> Array:
    """d*, (metrics, pairs, samples), where outputs that do not keep their side swap it.

    statistics: for each metric and system, (n_outputs, k).
    """

    def differences(sums: Iterator[Array]) -> list[list[Array]]:
        return [
            [_swapped(metric, systems[b], systems[s], next(sums)) for b, s in pairs]
            for metric, systems in zip(metrics, statistics, strict=True)
        ]

    changes = [systems[s] - systems[b] for systems in statistics for b, s in pairs]
    return _sampled(changes, kept, differences)


def _swapped(metric: Metric, baseline: Array, system: Array, kept: Array) -> Array:
    """d* of one pair, (samples,). kept: (samples, k), summed system - baseline of kept sides."""
    return metric.scores(baseline.sum(axis=0) + kept) - metric.scores(system.sum(axis=0) - kept)


def _sampled(
    matrices: Sequence[Array],
    blocks: Iterable[Array],
    scores: Callable[[Iterator[Array]], list[list[Array]]],
) -> Array:
    """The scores of all blocks, with the samples of all of them on the last axis.

    matrices: (n_sentences, k) each. scores: takes their sums on the samples of a block,
    (samples, k) each, in the same order.
    """
    borders = np.cumsum([matrix.shape[1] for matrix in matrices])[:-1].tolist()
    joined = np.hstack(matrices)  # (n_sentences, sum of k)
    parts = [np.array(scores(iter(np.split(block @ joined, borders, axis=1)))) for block in blocks]
    return np.concatenate(parts, axis=-1)
