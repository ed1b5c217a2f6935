"""How filters grow with their input: CPU time and memory at several sizes.

    python benchmarks/bench_scaling.py TREES SPM TARGETS [--sizes 20000,100000,500000,2000000]

TREES (CoNLL-U, a sentence for each line of TARGETS) are repeated up to each number of sentences.
Each filter is a process of its own, timed from its start to its end; memory is its peak.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

FILTERS = {
    "check": ["check", "{trees}"],
    "featurize": ["featurize", "--spm", "{spm}", "--tgt", "{targets}", "{trees}"],
    "linearize": ["linearize", "--on-nonprojective", "keep", "{trees}"],
    "vocab encode": ["vocab", "encode", "-m", "{spm}", "{targets}"],
}


def grow(source: str, n: int, out: Path, separator: bytes) -> None:
    """Writes n records, those of `source` again and again."""
    data = Path(source).read_bytes().strip(b"\n") + separator
    records = data.split(separator)[:-1]
    with open(out, "wb") as file:
        for begin in range(0, n, len(records)):
            part = records[: n - begin]
            file.write(separator.join(part) + separator)


def measure(arguments: list[str]) -> tuple[float, float]:
    """CPU seconds and peak MB of a command, its output thrown away."""
    command = [sys.executable, "-m", "synmt_cli", *arguments]
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"{' '.join(command)}: status {child.returncode}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main() -> None:
    """Prints a line for each filter and size."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("trees")
    parser.add_argument("spm")
    parser.add_argument("targets")
    parser.add_argument("--sizes", default="20000,100000,500000,2000000")
    options = parser.parse_args()
    print(f"{platform.machine()}, Python {platform.python_version()}")
    for n in map(int, options.sizes.split(",")):
        with tempfile.TemporaryDirectory() as name:
            places = {"trees": f"{name}/t.conllu", "targets": f"{name}/t.txt", "spm": options.spm}
            works = [(options.trees, n, Path(places["trees"]), b"\n\n")]
            works.append((options.targets, n, Path(places["targets"]), b"\n"))
            # In another process: a child's peak would include that of this process.
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                pool.starmap(grow, works)
            for filter, arguments in FILTERS.items():
                seconds, peak = measure([one.format(**places) for one in arguments])
                rate = f"{n / seconds:,.0f} a CPU second"
                print(f"{filter}: {n:,}: {seconds:.1f} s, {rate}, {peak:.0f} MB", flush=True)


if __name__ == "__main__":
    main()
