"""Training records larger than memory: reading them first, starting again, one epoch's batches.

    python benchmarks/bench_corpus.py RECORDS SPM [--pairs N] [--variant pascal] [--folder DIR]

RECORDS are repeated until there are --pairs of them, each time in another order and with ids of
their own. Each step is a process of its own. Its figures are seconds of CPU and of the clock, the
peak of all memory, and at the end the memory that is not a mapped file (which the system may take
back at any time).
"""

from __future__ import annotations

import argparse
import multiprocessing
import platform
import random
import tempfile
import time
from pathlib import Path

import orjson
import torch

from synmt_cli import signals
from synmt_cli.core.run.config import resolve
from synmt_cli.core.run.directory import Run
from synmt_cli.core.training.session import Inputs, open_session


def grow(records: str, n: int, out: Path) -> int:
    """Writes n records. Returns bytes."""
    lines = [orjson.loads(line) for line in Path(records).read_bytes().splitlines()]
    dice = random.Random(1)
    with open(out, "wb") as file:
        for i in range(n):
            if i % len(lines) == 0:
                dice.shuffle(lines)
            file.write(orjson.dumps({**lines[i % len(lines)], "id": str(i + 1)}) + b"\n")
    return out.stat().st_size


def start(options: argparse.Namespace, train: Path, folder: Path, epoch: bool) -> dict[str, float]:
    """Opens the session as `train` does. epoch: whether it then makes the batches of an epoch."""
    torch.set_num_threads(1)
    config = resolve(options.variant, "small", [])
    inputs = Inputs([str(train)], "", options.spm)
    began, cpu = time.perf_counter(), time.process_time()
    corpus = open_session(config, inputs, "cpu", signals.Request(), Run(folder)).train
    found = {"s": time.perf_counter() - began, "CPU s": time.process_time() - cpu}
    if epoch:
        cpu = time.process_time()
        n = sum(1 for _ in map(corpus.batch, corpus.epoch(4096, 1, 0)))
        found["ms a batch of 4,096 tokens"] = 1e3 * (time.process_time() - cpu) / n
    status = Path("/proc/self/status").read_text()
    memory = dict(line.split(":") for line in status.splitlines())
    found["peak MB"] = int(memory["VmHWM"].split()[0]) / 1024
    found["anonymous MB at the end"] = int(memory["RssAnon"].split()[0]) / 1024
    return found


def main() -> None:
    """Prints a line for each step."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("records")
    parser.add_argument("spm")
    parser.add_argument("--pairs", type=int, default=2_000_000)
    parser.add_argument("--variant", default="vanilla")
    parser.add_argument("--folder", default=None)
    options = parser.parse_args()
    print(f"{platform.machine()}, Python {platform.python_version()}, torch {torch.__version__}")
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        size = grow(options.records, options.pairs, folder / "train.jsonl")
        print(f"{options.pairs:,} records, {size / 1e9:.2f} GB, variant {options.variant}")
        show("first start", options, folder, False)
        show("start again", options, folder, False)
        show("with an epoch's batches", options, folder, True)
        files = sum(path.stat().st_size for path in (folder / "cache").iterdir())
        print(f"cache: {files / 1e6:.0f} MB, {files / options.pairs:.0f} bytes a pair")


def show(what: str, options: argparse.Namespace, folder: Path, epoch: bool) -> None:
    """Prints what one process needed."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        found = pool.apply(start, (options, folder / "train.jsonl", folder, epoch))
    print(f"{what}: " + ", ".join(f"{key} {value:.1f}" for key, value in found.items()), flush=True)


if __name__ == "__main__":
    main()
