"""Do the tests of `synmt score` hold their level? Pairs of systems that do not differ, by BLEU.

    python benchmarks/bench_calibration.py REF SYS SYS [SYS...]

Every trial draws a test set of SEGMENTS segments from the files, with replacement, and K runs of
each of two systems; with K=5,3 five of the baseline and three of the other, and then only `seeds`
is tried. A run takes the output of some file for each segment, or one that lacks every
fifth word. What it takes depends on chance; on what its system prefers for that segment
(`systems`); and on how often this run loses words (`seeds`). Both systems are drawn alike, so every
difference is chance. It prints how often each test gives p < 0.05, and how often a 95 % interval
leaves out 0, also for the percentiles of a bootstrap on two levels (seeds, then segments). The
tests of one run take the first run of each system.
"""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from synmt_cli.core.evaluation.metrics.formulas import Array
from synmt_cli.core.evaluation.metrics.registry import Metric, build
from synmt_cli.core.evaluation.parallel_lines import read
from synmt_cli.core.evaluation.statistics import significance
from synmt_cli.core.evaluation.statistics.significance import SignificanceTest

TRIALS = int(os.environ.get("TRIALS", "300"))
SEGMENTS = int(os.environ.get("SEGMENTS", "300"))
K = [*map(int, os.environ.get("K", "3").split(","))]  # runs of both systems, or of each
SAMPLES = 500
LEVEL = 0.05


@dataclass(frozen=True, slots=True)
class World:
    """How strongly systems prefer outputs segment by segment, and how much runs differ."""

    name: str
    systems: float
    seeds: float


WORLDS = (
    World("equal systems", 0, 0),
    World("own sentences", 3, 0),
    World("seeds", 0, 0.2),
    World("seeds, own sentences", 3, 0.2),
    World("strong seeds", 0, 1),
    World("strong seeds, own sentences", 3, 1),
)


def runs(
    random: np.random.Generator, files: Array, world: World, k: tuple[int, int]
) -> list[list[Array]]:
    """The statistics of the runs of two systems. k: how many runs of each.

    files: (files, segments, statistics), the first one without every fifth word.
    """
    n_files, n = files.shape[:2]
    damaged = np.arange(n_files) == 0
    systems = []
    for n_runs in k:
        own = world.systems * random.normal(size=(n_files, n))
        outputs = []
        for _ in range(n_runs):
            losses = world.seeds * random.normal() * damaged[:, None]
            chance = random.gumbel(size=(n_files, n))
            chosen = (own + losses + chance).argmax(axis=0)  # (n,)
            outputs.append(files[chosen, np.arange(n)])
        systems.append(outputs)
    return systems


def two_level(metric: Metric, systems: list[list[Array]], seed: int) -> bool:
    """Whether the percentiles of a bootstrap of seeds, then of segments, leave out 0."""
    random = np.random.default_rng(seed)
    n, k = len(systems[0][0]), len(systems[0])
    counts = significance.bootstrap_counts(n, SAMPLES, seed)
    [of_metric] = significance.bootstrap_scores([metric], [systems], counts)
    scores = np.stack(of_metric)  # (2, k, samples)
    drawn = random.integers(k, size=(2, k, SAMPLES))
    means = np.take_along_axis(scores, drawn, axis=1).mean(axis=1)  # (2, samples)
    low, high = np.percentile(means[1] - means[0], (2.5, 97.5))
    return bool(low > 0 or high < 0)


def trial(metric: Metric, systems: list[list[Array]], seed: int) -> Iterator[tuple[str, bool]]:
    """(name, whether it finds a difference) for each test and interval."""
    tests = {
        "seeds": SignificanceTest("bs", "seeds", SAMPLES, seed),
        "stratified": SignificanceTest("ar", "stratified", SAMPLES, seed),
    }
    single = {
        "centred, one run": SignificanceTest("bs", "centred", SAMPLES, seed),
        "sacrebleu, one run": SignificanceTest("bs", "sacrebleu", SAMPLES, seed),
        "koehn, one run": SignificanceTest("bs", "koehn", SAMPLES, seed),
    }
    equal = len(systems[0]) == len(systems[1])
    for name, test in (tests | single).items():
        if not equal and name != "seeds":
            continue
        one = [outputs[:1] for outputs in systems] if name in single else systems
        [[found]] = significance.compare(test, [metric], [one], [(0, 1)]).pairs
        yield name, found.p < LEVEL
        if name == "seeds":
            yield "seeds, interval", not found.ci95[0] <= 0 <= found.ci95[1]
    if equal:
        yield "two levels, percentiles", two_level(metric, systems, seed)


def main() -> None:
    """Prints a line for each world and a column for each test."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("reference", metavar="REF")
    parser.add_argument("outputs", metavar="SYS", nargs="+")
    options = parser.parse_args()
    reference, outputs = read(options.reference), [*map(read, options.outputs)]
    [metric] = build(["bleu"], [reference])
    words = [line.split() for line in outputs[0]]
    damaged = [" ".join(word for i, word in enumerate(of) if i % 5 != 4) for of in words]
    files = np.stack([metric.statistics(lines) for lines in (damaged, *outputs)])
    error = math.sqrt(LEVEL * (1 - LEVEL) / TRIALS)
    runs_of = " and ".join(map(str, K))
    print(f"{TRIALS} pairs, {SEGMENTS} segments, {runs_of} runs; below {LEVEL} (+- {error:.3f})")
    for world in WORLDS:
        random = np.random.default_rng(1)
        alarms: dict[str, int] = {}
        for number in range(TRIALS):
            chosen = random.integers(files.shape[1], size=SEGMENTS)
            systems = runs(random, files[:, chosen], world, (K[0], K[-1]))
            for name, alarm in trial(metric, systems, number):
                alarms[name] = alarms.get(name, 0) + alarm
        if world is WORLDS[0]:
            print("  ".join(["world".ljust(28), *alarms]))
        shares = (f"{n / TRIALS:.3f}".rjust(len(name)) for name, n in alarms.items())
        print("  ".join([world.name.ljust(28), *shares]))


if __name__ == "__main__":
    main()
