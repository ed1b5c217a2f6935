"""Differences of systems that were trained several times: chance of seeds and of sentences.

Each of the k runs of a system translates the same n sentences; k may differ between systems. Runs
are nested in systems, and sentences are crossed with them, as subjects and items are in an
experiment: the quasi F of Clark (1973), "The language-as-fixed-effect fallacy", is the test of such
a design, with the degrees of freedom of Satterthwaite (1946). For the difference d of two means
over runs it is

    V = V_seeds + max(0, V_sentences - V_both)
    V_seeds      the sum over both systems of s^2 / k, s^2 the variance of its runs' scores
    V_sentences  the variance of d over bootstrap samples of sentences, the same for all runs
    V_both       the sum over both systems of e^2 / k, e^2 the variance over the same samples
                 of what sets a run apart from its system's mean
    df = V^2 / sum of (s^2 / k)^2 / (k - 1)
    p = P(|t| >= |d| / sqrt V), t with df degrees of freedom; d +- t(0.975) sqrt V

V_both is in V_seeds as well as in V_sentences, because runs that differ sentence by sentence also
differ in their scores; it must count once. Runs that are all the same leave V_sentences, the
bootstrap's. Metrics need not be means of sentences: their scores on samples give every variance.
A single output says nothing about its system's s^2 and e^2. If the other system has k >= 2 runs,
both are taken to be that system's (as in the t test of Crawford and Howell, 1998): V_seeds is
s^2 (1 + 1/k), V_both is e^2 (1 + 1/k), and df = V^2 / (V_seeds^2 / (k - 1)). If V_seeds is smaller
than V_both, which is only so by chance, V has V_both in its place: a few runs that happen to
score alike would otherwise speak for the single one, too, and too many small p would be wrong.
Runs may also be matched: run i of both systems is the same model, which translates with other trees
or another search. Then what sets models apart is in both scores alike, and `matched` is V of the
runs' differences, as of a single system.

Where V_seeds comes from two runs alone (two matched models, two runs and a single output, or the
score of one system with two runs), it has one degree of freedom. It is often far too small by
chance, and then makes df too large as well. There p and the interval are those of Banerjee (1960),
"Approximate confidence interval for linear functions of means of k populations when the population
variances are not equal", which miss at most 5 %: half of the interval is
sqrt(t^2 V_seeds + z^2 (V - V_seeds)), t with one degree of freedom, z of the normal distribution.

Neither of the usual tests holds its level with few seeds: see docs/decisions and
benchmarks/bench_calibration.py, which also measures the percentiles of a bootstrap on two levels.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from synmt_cli.core.evaluation.metrics.formulas import Array
from synmt_cli.core.evaluation.statistics.student import quantile, two_sided_p

VARIANCE = (
    "V = variance of d over seeds + over sentences (bootstrap), "
    "less what is in both; Satterthwaite's degrees of freedom (quasi F, Clark 1973)"
)
FORMULA = f"P(|t| >= |d| / sqrt V), two-sided; {VARIANCE}"
MATCHED = (
    "P(|t| >= |d| / sqrt V), two-sided; V = variance over the same models of their differences + "
    "over sentences (bootstrap), less what is in both; Satterthwaite's degrees of freedom"
)
ALONE = (  # the interval of one system's score
    "score +- t sqrt V; V = its variance over seeds + over sentences (bootstrap), "
    "less what is in both; Satterthwaite's degrees of freedom"
)
OF_TWO = (  # added where `is_of_two`
    "with V_seeds of two runs alone, t with 1 degree of freedom for V_seeds, and the normal "
    "distribution for the rest of V (Banerjee 1960)"
)
INTERVALS = {  # by the test
    "bs": "d +- t sqrt V over seeds and sentences, with the V of p (sentences by bootstrap)",
    "ar": f"d +- t sqrt V; {VARIANCE}",
}
CONFIDENCE = 0.95
NOTHING = 1e-20  # a variance of score points that is only rounding
LEAST_P = 1e-150  # of two runs; score points differ by less


@dataclass(frozen=True, slots=True)
class Spread:
    """The variance V of a difference, or of a score, and its degrees of freedom.

    of_two: V_seeds where it comes from two runs alone, elsewhere 0. The rest of V is then taken as
    known, and df is not used.
    """

    variance: float
    df: float
    of_two: float = 0.0

    def p(self, delta: float) -> float:
        """The chance of a difference as great, two-sided; 1 where nothing varies."""
        if self.variance < NOTHING:
            return 1.0
        if self.of_two:
            return self._p_of_two(delta)
        return two_sided_p(delta / math.sqrt(self.variance), self.df)

    def interval(self, value: float) -> tuple[float, float]:
        """The 95 % interval around a value."""
        if self.of_two:
            half = math.sqrt(self._squared(1 - CONFIDENCE))
        else:
            half = quantile(CONFIDENCE, self.df) * math.sqrt(self.variance)
        return value - half, value + half

    def _squared(self, p: float) -> float:
        """Half of the interval of the confidence 1 - p, squared."""
        t = 1 / math.tan(math.pi * p / 2)  # of Student's distribution with one df, Cauchy's
        z = NormalDist().inv_cdf(p / 2)
        return t * t * self.of_two + z * z * max(0.0, self.variance - self.of_two)

    def _p_of_two(self, delta: float) -> float:
        """1 - the confidence of the interval that ends at 0, by bisection of its logarithm."""
        low, high = math.log(LEAST_P), 0.0
        for _ in range(64):
            middle = (low + high) / 2
            if self._squared(math.exp(middle)) < delta * delta:
                high = middle
            else:
                low = middle
        return math.exp(high)


def is_of_two(definition: str, *n_runs: int) -> bool:
    """Whether V_seeds of a difference comes from two runs alone. n_runs: of both systems.

    That of one system's score does where the system has two runs.
    """
    return 2 in n_runs and (definition == "matched" or 1 in n_runs)


def spread(points: Sequence[Array], resampled: Sequence[Array]) -> Spread:
    """V of the mean score of one system, or of the difference of two.

    points: for each system the scores of its runs, (k,); k is at least 2, but one of two systems
    may have a single run. resampled: for each system its runs' scores on bootstrap samples of
    sentences, (k, samples).
    """
    several = [i for i, runs in enumerate(points) if len(runs) > 1]
    lent = len(several) < len(points)  # the variances of one system are also the other's
    shares = [len(points[i]) / (len(points[i]) + 1) if lent else len(points[i]) for i in several]
    of_seeds = [
        float(points[i].var(ddof=1)) / share for i, share in zip(several, shares, strict=True)
    ]
    both = sum(_both(resampled[i], share) for i, share in zip(several, shares, strict=True))
    means = [runs.mean(axis=0) for runs in resampled]  # (samples,) each
    sentences = float(_variance(means[0] - means[1] if len(means) == 2 else means[0]))
    seeds = max(sum(of_seeds), both) if lent else sum(of_seeds)
    variance = seeds + max(0.0, sentences - both)
    below = sum(one**2 / (len(points[i]) - 1) for one, i in zip(of_seeds, several, strict=True))
    if below <= NOTHING**2:
        return Spread(variance, math.inf)
    of_two = of_seeds[0] if [len(points[i]) for i in several] == [2] else 0.0
    return Spread(variance, variance**2 / below, of_two)


def matched(points: Sequence[Array], resampled: Sequence[Array]) -> Spread:
    """V of the difference of two systems whose runs are the same models, as in `spread`."""
    baseline, system = points
    return spread([system - baseline], [resampled[1] - resampled[0]])


def _both(runs: Array, share: float) -> float:
    """e^2 / share. runs: (k, samples)."""
    apart = runs - runs.mean(axis=0)  # (k, samples)
    return float(_variance(apart).sum()) / (len(runs) - 1) / share


def _variance(sampled: Array) -> Array:
    """The variance over the samples, the last axis; 0 for a single sample."""
    return np.asarray(sampled.var(axis=-1, ddof=min(1, sampled.shape[-1] - 1)))
