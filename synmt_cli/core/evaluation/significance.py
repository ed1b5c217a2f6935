"""Is a system better than the baseline, or lucky with the test set? Paired tests.

d is the difference system - baseline on the test set, d* that on a sample, n the samples.

bs, paired bootstrap (Koehn, 2004): sentences are drawn with replacement. Three definitions
of p are in use, and their figures cannot be compared with each other.
ar, approximate randomization (Riezler and Maxwell, 2005): the outputs of each sentence
change sides with probability 1/2.
sign, sign test: the exact binomial of sentences won and lost; ties are dropped.

FORMULAS defines each p. A system against itself has p = 1, but 1 / (n + 1) by sacreBLEU's
definitions. Whatever the test, the 95 % interval of d is the bootstrap's percentiles.

The samples are those that sacreBLEU draws with the same seed, the same for every metric and
system, and sentence statistics are summed over them by matrix products.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from synmt_cli.core.evaluation.formulas import Array
from synmt_cli.core.evaluation.metrics import Metric
from synmt_cli.formats.reports.scores import PairedComparison

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
TIE = 1e-9  # of a score point: equal scores whose floats were summed in another order

# Sentence statistics of one metric, (n_sentences, k) for each system, the baseline first.
Statistics = Sequence[Array]


@dataclass(frozen=True, slots=True)
class SignificanceTest:
    """A paired test. name, definition: keys of FORMULAS. n: samples, at least 1."""

    name: str
    definition: str
    n: int
    seed: int

    @property
    def formula(self) -> str:
        """How p is computed, in words."""
        return FORMULAS[self.name][self.definition]

    @property
    def interval_n(self) -> int:
        """The interval's bootstrap samples: the test's own; for ar the bootstrap's default."""
        return SAMPLES["bs"] if self.name == "ar" else self.n


def compare(
    test: SignificanceTest, metrics: Sequence[Metric], statistics: Sequence[Statistics]
) -> list[list[PairedComparison]]:
    """For each metric, the comparison of each further system with the first."""
    n_sentences = len(statistics[0][0])
    counts = bootstrap_counts(n_sentences, test.interval_n, test.seed)
    resampled = bootstrap_differences(metrics, statistics, counts)  # (metrics, systems - 1, n)
    drawn = resampled
    if test.name == "ar":
        drawn = swap_differences(metrics, statistics, swaps(n_sentences, test.n, test.seed))
    return [
        [
            _paired(test, metric, (systems[0], systems[s]), resampled[m, s - 1], drawn[m, s - 1])
            for s in range(1, len(systems))
        ]
        for m, (metric, systems) in enumerate(zip(metrics, statistics, strict=True))
    ]


def _paired(
    test: SignificanceTest,
    metric: Metric,
    statistics: tuple[Array, Array],
    resampled: Array,
    drawn: Array,
) -> PairedComparison:
    baseline, system = (metric.corpus(of_one.sum(axis=0)) for of_one in statistics)
    delta = system - baseline
    low, high = np.percentile(resampled, (2.5, 97.5)).tolist()
    n, p = test.n, 1.0
    if test.name == "sign":
        wins, losses = wins_and_losses(metric, *statistics)
        n, p = wins + losses, binomial(wins, losses)
    else:
        p = p_value(test, delta, drawn)
    return PairedComparison(test.name, test.definition, n, test.seed, delta, (low, high), p)


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
        case "ar", "two-sided":
            as_far = distance >= abs(delta) - TIE
        case "ar", "sacrebleu":
            as_far = distance > abs(delta) + TIE
        case name:
            raise ValueError(f"no such p: {name}")
    return (1 + int(np.count_nonzero(as_far))) / (n + 1)


def wins_and_losses(metric: Metric, baseline: Array, system: Array) -> tuple[int, int]:
    """On how many sentences the system scores better and worse than the baseline."""
    difference = metric.sentences(system) - metric.sentences(baseline)  # (n_sentences,)
    higher = int(np.count_nonzero(difference > TIE))
    lower = int(np.count_nonzero(difference < -TIE))
    return (higher, lower) if metric.higher_is_better else (lower, higher)


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


def bootstrap_differences(
    metrics: Sequence[Metric], statistics: Sequence[Statistics], counts: Iterable[Array]
) -> Array:
    """d*, (metrics, systems - 1, samples), where sample i holds sentence j counts[i, j] times."""

    def differences(sums: Iterator[Array]) -> list[list[Array]]:
        scores = [
            [metric.scores(next(sums)) for _ in systems]  # (samples,) each
            for metric, systems in zip(metrics, statistics, strict=True)
        ]
        return [[system - systems[0] for system in systems[1:]] for systems in scores]

    return _sampled([of_one for systems in statistics for of_one in systems], counts, differences)


def swap_differences(
    metrics: Sequence[Metric], statistics: Sequence[Statistics], kept: Iterable[Array]
) -> Array:
    """d*, (metrics, systems - 1, samples), where outputs that do not keep their side swap it."""

    def differences(sums: Iterator[Array]) -> list[list[Array]]:
        return [
            [_swapped(metric, systems[0], system, next(sums)) for system in systems[1:]]
            for metric, systems in zip(metrics, statistics, strict=True)
        ]

    changes = [system - systems[0] for systems in statistics for system in systems[1:]]
    return _sampled(changes, kept, differences)


def _swapped(metric: Metric, baseline: Array, system: Array, kept: Array) -> Array:
    """d* of one pair, (samples,). kept: (samples, k), summed system - baseline of kept sides."""
    return metric.scores(baseline.sum(axis=0) + kept) - metric.scores(system.sum(axis=0) - kept)


def _sampled(
    matrices: Sequence[Array],
    blocks: Iterable[Array],
    differences: Callable[[Iterator[Array]], list[list[Array]]],
) -> Array:
    """The differences on the samples of all blocks, (metrics, systems - 1, samples).

    matrices: (n_sentences, k) each. differences: takes their sums on the samples of a block,
    (samples, k) each, in the same order.
    """
    borders = np.cumsum([matrix.shape[1] for matrix in matrices])[:-1].tolist()
    joined = np.hstack(matrices)  # (n_sentences, sum of k)
    parts = [
        np.array(differences(iter(np.split(block @ joined, borders, axis=1)))) for block in blocks
    ]
    return np.concatenate(parts, axis=-1)
