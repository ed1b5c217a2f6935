"""Parsing speed: `synmt parse` against a bare loop over the binding, in one run.

    python benchmarks/bench_parse.py MODEL TEXT [--lines 2000] [--rounds 3]

The bare loop is the least that gives CoNLL-U with offsets: tokenise, tag, parse, write, line
by line in one process. Each program runs on the text and on nothing; the difference is its
work without start and loading. CPU seconds are of all its processes; wall seconds are what
-j 2 is about, and need two idle cores. Ratios are the medians over the rounds.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import time
from itertools import islice

from synmt_cli.io.reading import lines, open_source

BARE = """
import sys
from ufal.udpipe import Model, OutputFormat, ProcessingError, Sentence
model = Model.load(sys.argv[1])
writer = OutputFormat.newOutputFormat("conllu")
for line in open(0, encoding="utf-8", newline="\\n"):
    tokenizer = model.newTokenizer("presegmented;ranges")
    tokenizer.setText(line)
    sentence, error = Sentence(), ProcessingError()
    while tokenizer.nextSentence(sentence, error):
        model.tag(sentence, "", error)
        model.parse(sentence, "", error)
        sys.stdout.write(writer.writeSentence(sentence))
"""


def seconds(command: list[str], text: bytes) -> tuple[float, float]:
    """(CPU, wall) seconds of a command that reads `text`."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, input=text, stdout=subprocess.DEVNULL, check=True)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return cpu, wall


def main() -> None:
    """Prints the rates of each round and the ratios."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("model")
    options.add_argument("text")
    options.add_argument("--lines", type=int, default=2000)
    options.add_argument("--rounds", type=int, default=3)
    given = options.parse_args()
    with open_source(given.text) as source:
        text = b"".join(line + b"\n" for line in islice(lines(source), given.lines))
    parse = [sys.executable, "-m", "synmt_cli", "parse", "-m", given.model]
    programs = {
        "bare": [sys.executable, "-c", BARE, given.model],
        "-j 1": parse,
        "-j 2": [*parse, "-j", "2"],
    }
    rounds = []
    for _ in range(given.rounds):
        row = {}
        for name, command in programs.items():
            empty, full = seconds(command, b""), seconds(command, text)
            row[name] = [b - a for a, b in zip(empty, full, strict=True)]
            cpu, wall = row[name]
            rates = f"{given.lines / cpu:6.0f} lines/CPU s, {given.lines / wall:6.0f} lines/s"
            print(f"{name:6}{rates}, load {os.getloadavg()[0]:.1f}", flush=True)
        rounds.append(row)
    ratios = {
        "rate of -j 1 to the bare loop (CPU)": [row["bare"][0] / row["-j 1"][0] for row in rounds],
        "rate of -j 2 to -j 1 (wall)": [row["-j 1"][1] / row["-j 2"][1] for row in rounds],
        "CPU of -j 2 to -j 1": [row["-j 2"][0] / row["-j 1"][0] for row in rounds],
    }
    for name, values in ratios.items():
        print(f"{name}: {statistics.median(values):.2f}")


if __name__ == "__main__":
    main()
