"""Reading speed: our CoNLL-U and JSONL readers against others, in one run.

    python benchmarks/bench_conllu.py TREEBANK.conllu[.gz] [--mb 20] [--rounds 3]

The treebank is repeated up to --mb. Every reader runs in its own process, once per round,
and gives CPU seconds; ratios are medians over the rounds, each within one round. `lines` is
the floor: the bytes as lines, nothing done to them. `columns` splits those into ten columns
and checks nothing. Ours checks every line and every tree. `featurize` is `synmt featurize`
without a vocabulary, its start included. JSONL is what it writes: `orjson` parses the lines,
ours checks every field.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from synmt_cli.io import reading

CONLLU = ("lines", "columns", "synmt", "pyconll", "conllu", "featurize")
JSONL = ("orjson", "synmt jsonl")


def lines(path: str) -> int:
    """Sentences, by blank lines."""
    with open(path, "rb") as file:
        return sum(1 for line in file if line == b"\n")


def columns(path: str) -> int:
    """Sentences, with every line split at TABs."""
    n = 0
    with open(path, encoding="utf-8", newline="\n") as file:
        for line in file:
            line.split("\t")
            n += line == "\n"
    return n


def synmt(path: str) -> int:
    """Sentences by our reader."""
    from synmt_cli.formats import conllu

    with reading.open_source(path) as source:
        return sum(1 for _ in conllu.read(source))


def synmt_jsonl(path: str) -> int:
    """Records by our reader."""
    from synmt_cli.formats import record

    with reading.open_source(path) as source:
        return sum(1 for _ in record.read(source))


def orjson_(path: str) -> int:
    """Lines parsed as JSON."""
    import orjson

    n = 0
    with open(path, "rb") as file:
        for line in file:
            orjson.loads(line)
            n += 1
    return n


def pyconll_(path: str) -> int:
    """Sentences by pyconll."""
    from pyconll import load

    return sum(1 for _ in load.iter_from_file(path))


def conllu_(path: str) -> int:
    """Sentences by conllu."""
    import conllu

    with open(path, encoding="utf-8") as file:
        return sum(1 for _ in conllu.parse_incr(file))


def featurize(path: str) -> int:
    """Records that `synmt featurize` writes."""
    command = [sys.executable, "-m", "synmt_cli", "featurize", path]
    return subprocess.run(command, capture_output=True, check=True).stdout.count(b"\n")


READERS: dict[str, Callable[[str], int]] = {
    "lines": lines,
    "columns": columns,
    "synmt": synmt,
    "pyconll": pyconll_,
    "conllu": conllu_,
    "featurize": featurize,
    "orjson": orjson_,
    "synmt jsonl": synmt_jsonl,
}


def one(reader: str, path: str) -> None:
    """Prints the sentences read and the CPU seconds, those of children included."""
    start = cpu_seconds()
    n = READERS[reader](path)
    print(n, cpu_seconds() - start)


def cpu_seconds() -> float:
    """CPU seconds of this process and of its children that have ended."""
    usages = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def measure(reader: str, path: str) -> tuple[int, float]:
    """(Sentences, CPU seconds) of a reader in its own process."""
    command = [sys.executable, __file__, path, "--reader", reader]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return int(found[0]), float(found[1])


def compare(path: str, readers: tuple[str, ...], rounds: int) -> None:
    """Prints the rate of each reader, and its ratio to the first one."""
    size = os.path.getsize(path) / 1e6
    seconds: dict[str, list[float]] = {reader: [] for reader in readers}
    counts: dict[str, int] = {}
    for _ in range(rounds):
        for reader in readers:
            counts[reader], cpu = measure(reader, path)
            seconds[reader].append(cpu)
    assert len(set(counts.values())) == 1, counts
    print(f"{size:.1f} MB, {counts[readers[0]]:,} sentences")
    for reader in readers:
        cpu = statistics.median(seconds[reader])
        pairs = zip(seconds[readers[0]], seconds[reader], strict=True)
        ratio = statistics.median(first / own for first, own in pairs)
        print(
            f"{reader:12}{size / cpu:8.1f} MB/s {counts[reader] / cpu:10,.0f} sentences/s "
            f"{ratio:8.3f} of {readers[0]}"
        )


def about() -> str:
    """Machine, load, versions and date."""
    names = ("conllu", "pyconll", "orjson")
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in names)
    cpuinfo = Path("/proc/cpuinfo")
    text = cpuinfo.read_text() if cpuinfo.exists() else ""
    models = [line.split(":")[1].strip() for line in text.splitlines() if "model name" in line]
    machine = models[0] if models else platform.processor() or platform.machine()
    return (
        f"{machine}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, "
        f"Python {platform.python_version()}, {versions}, {time.strftime('%Y-%m-%d')}"
    )


def main() -> None:
    """Measures as the options say."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("treebank", type=Path)
    options.add_argument("--mb", type=float, default=20)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--reader", choices=READERS)
    given = options.parse_args()
    if given.reader:
        one(given.reader, str(given.treebank))
        return
    with reading.open_source(str(given.treebank)) as source:
        data = source.file.read()
    print(about())
    with tempfile.TemporaryDirectory() as folder:
        trees, records = f"{folder}/trees.conllu", f"{folder}/records.jsonl"
        Path(trees).write_bytes(data * max(1, round(given.mb * 1e6 / len(data))))
        compare(trees, CONLLU, given.rounds)
        command = [sys.executable, "-m", "synmt_cli", "featurize", trees, "-o", records]
        subprocess.run(command, check=True)
        compare(records, JSONL, given.rounds)


if __name__ == "__main__":
    main()
