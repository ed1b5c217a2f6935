"""`synmt score`'s significance against sacreBLEU's own, in one run on the same texts.

    python benchmarks/bench_score.py [REF SYS SYS...]

Without files: 3,000 seeded random segments and three noisy copies. Each round times both
programs from lines to p values, and ours also from sentence statistics to p values (the
samples). The figures are medians over ROUNDS; the ratio is sacreBLEU's time over ours.

Then CPU seconds of the whole command, its start included: three systems with three seeds each,
BLEU and chrF, 1,000 samples; and all pairs of 5 and of 10 systems, with the time that all pairs
take beyond the comparisons with the first. Outputs are the given ones, changed a little.
"""

from __future__ import annotations

import os
import platform
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import sacrebleu
from sacrebleu import BLEU, CHRF
from sacrebleu.significance import PairedTest

from synmt_cli import __version__
from synmt_cli.core.evaluation.metrics.registry import build
from synmt_cli.core.evaluation.statistics.significance import (
    FORMULAS,
    SAMPLES,
    SignificanceTest,
    against_first,
    compare,
)

ROUNDS = int(os.environ.get("ROUNDS", "3"))
SACREBLEU = {"bleu": BLEU, "chrf": CHRF}


def texts(paths: list[str]) -> tuple[list[str], list[list[str]]]:
    """The reference and the systems, from files or by seed."""
    if paths:
        reference, *systems = (Path(path).read_bytes().decode().split("\n")[:-1] for path in paths)
        return reference, systems
    dice = random.Random(1)
    words = [f"w{int(dice.paretovariate(0.8)) % 5000}" for _ in range(100_000)]
    reference = [" ".join(dice.choices(words, k=dice.randint(5, 40))) for _ in range(3000)]

    def noisy(rate: float) -> list[str]:
        return [
            " ".join(dice.choice(words) if dice.random() < rate else word for word in line.split())
            for line in reference
        ]

    return reference, [noisy(0.30), noisy(0.32), noisy(0.34)]


def ours(kind: str, name: str, reference: list[str], systems: list[list[str]]) -> list[float]:
    """Seconds from lines to p values, and from sentence statistics to p values."""
    begin = time.perf_counter()
    metrics = build([name], [reference])
    extracted = [[[metric.statistics(lines)] for lines in systems] for metric in metrics]
    middle = time.perf_counter()
    test = SignificanceTest(kind, next(iter(FORMULAS[kind])), SAMPLES[kind], 12345)
    compare(test, metrics, extracted, against_first(len(systems)))
    end = time.perf_counter()
    return [end - begin, end - middle]


def theirs(kind: str, name: str, reference: list[str], systems: list[list[str]]) -> float:
    """sacreBLEU's seconds from lines to p values."""
    begin = time.perf_counter()
    metrics = {name: SACREBLEU[name](references=[reference])}
    named: list[tuple[str, Sequence[str]]] = [(str(i), lines) for i, lines in enumerate(systems)]
    PairedTest(named, metrics, None, test_type=kind, n_samples=SAMPLES[kind])()
    return time.perf_counter() - begin


def command(*arguments: str) -> float:
    """The least CPU seconds of ROUNDS runs of `synmt score`."""
    seconds = []
    for _ in range(ROUNDS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        run = [sys.executable, "-m", "synmt_cli", "score", *arguments, "--format", "json"]
        subprocess.run(run, check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(seconds)


def of_commands(reference: list[str], systems: list[list[str]], folder: Path) -> None:
    """Prints the CPU seconds of whole commands."""
    dice = random.Random(2)
    paths = [folder / str(i) for i in range(10)]
    for i, path in enumerate(paths):  # a tenth of the lines come from another system
        lines = zip(systems[i % len(systems)], dice.choice(systems), strict=True)
        chosen = [other if dice.random() < 0.1 else one for one, other in lines]
        path.write_text("".join(f"{line}\n" for line in chosen), encoding="utf-8")
    ref = folder / "ref"
    ref.write_text("".join(f"{line}\n" for line in reference), encoding="utf-8")
    seeds = [f"{'abc'[i // 3]}={path}" for i, path in enumerate(paths[:9])]
    print(f"3 systems x 3 seeds, BLEU and chrF: {command(str(ref), *seeds):.2f} CPU seconds")
    for n in (5, 10):
        files = [str(ref), *map(str, paths[:n])]
        with_first, all_pairs = command(*files), command(*files, "--all-pairs")
        more = f"{all_pairs - with_first:+.2f} for {n * (n - 1) // 2 - n + 1} pairs more"
        print(f"{n} systems against the first: {with_first:.2f}; all pairs: {more}")


def main() -> None:
    """Prints the machine, the versions, and one line for each test and metric."""
    reference, systems = texts(sys.argv[1:])
    cpu = platform.processor() or platform.machine()
    print(f"{cpu}, {os.cpu_count()} cores; Python {platform.python_version()}", end="; ")
    print(f"synmt {__version__}, sacrebleu {sacrebleu.__version__}, numpy {np.__version__}")
    print(f"{len(reference):,} segments, {len(systems)} systems, medians of {ROUNDS} rounds")
    print("test  samples  metric  synmt s  of it samples s  sacrebleu s  ratio")
    for kind in ("bs", "ar"):
        for name in SACREBLEU:
            rounds = [
                (*ours(kind, name, reference, systems), theirs(kind, name, reference, systems))
                for _ in range(ROUNDS)
            ]
            whole, samples, other = (
                statistics.median(column) for column in zip(*rounds, strict=True)
            )
            ratio = statistics.median(row[2] / row[0] for row in rounds)
            print(
                f"{kind:4}  {SAMPLES[kind]:7}  {name:6}  {whole:7.3f}  {samples:15.3f}"
                f"  {other:11.3f}  {ratio:5.2f}"
            )
    with tempfile.TemporaryDirectory() as folder:
        of_commands(reference, systems, Path(folder))


if __name__ == "__main__":
    main()
