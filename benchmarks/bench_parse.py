"""Parsing speed: `synmt parse` against a bare loop over the binding, in one run.

    python benchmarks/bench_parse.py MODEL TEXT [--lines 2000] [--rounds 3] [--from conllu]
        [--with "-m light.udpipe"] [--with "--no-lemmas --beam 2"] [--gold GOLD]

The bare loop is the least that gives CoNLL-U with offsets: tokenise, tag, parse, write, line
by line in one process; with --from conllu it reads the sentences of TEXT instead. Each program
runs on the text and on nothing; the difference is its work without start and loading. CPU
seconds include all its processes; wall seconds show what -j 2 gains, and need two idle cores.
Ratios are the medians over the rounds. --with measures `synmt parse -j 1` with other options, or
another model, in the same rounds; --gold CONLLU parses the texts of its sentences once with
each of them and gives LAS (F1 of CoNLL 2018).
"""

from __future__ import annotations

import argparse
import os
import resource
import shlex
import statistics
import subprocess
import sys
import time
from itertools import islice

from synmt_cli.formats import conllu
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


BARE_CONLLU = """
import sys
from ufal.udpipe import InputFormat, Model, OutputFormat, ProcessingError, Sentence
model = Model.load(sys.argv[1])
writer, reader = OutputFormat.newOutputFormat("conllu"), InputFormat.newInputFormat("conllu")
reader.setText(sys.stdin.read())
sentence, error = Sentence(), ProcessingError()
while reader.nextSentence(sentence, error):
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


def las(parse: list[str], gold: str) -> float:
    """LAS of a command that parses, from the texts of a treebank."""
    with open_source(gold) as source:
        texts = [sentence.comment("text") or "" for sentence in conllu.read(source)]
    text = "".join(f"{one}\n" for one in texts).encode()
    parsed = subprocess.run(parse, input=text, stdout=subprocess.PIPE, check=True).stdout
    compare = [sys.executable, "-m", "synmt_cli", "evaltree", "--format", "tsv", gold, "-"]
    scores = subprocess.run(compare, input=parsed, stdout=subprocess.PIPE, check=True).stdout
    rows = [line.split("\t") for line in scores.decode().splitlines()]
    f1 = rows[0].index("f1")
    return next(float(row[f1]) for row in rows if row[:2] == ["all", "las"])


def beginning(path: str, kind: str, n: int) -> bytes:
    """The first lines of a text, or the first sentences of CoNLL-U."""
    with open_source(path) as source:
        if kind == "conllu":
            return b"".join(map(conllu.to_bytes, islice(conllu.read(source), n)))
        return b"".join(line + b"\n" for line in islice(lines(source), n))


def main() -> None:
    """Prints the rates of each round and the ratios."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("model")
    options.add_argument("text")
    options.add_argument("--lines", type=int, default=2000)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--from", dest="kind", choices=("text", "conllu"), default="text")
    options.add_argument("--with", dest="others", action="append", default=[])
    options.add_argument("--gold")
    given = options.parse_args()
    text = beginning(given.text, given.kind, given.lines)
    parse = [sys.executable, "-m", "synmt_cli", "parse", "--from", given.kind, "-m", given.model]
    bare = BARE if given.kind == "text" else BARE_CONLLU
    programs = {
        "bare": [sys.executable, "-c", bare, given.model],
        "-j 1": parse,
        "-j 2": [*parse, "-j", "2"],
    }
    others = {other: [*parse, *shlex.split(other)] for other in given.others}
    rounds = []
    for _ in range(given.rounds):
        row = {}
        for name, command in (programs | others).items():
            empty, full = seconds(command, b""), seconds(command, text)
            row[name] = [b - a for a, b in zip(empty, full, strict=True)]
            cpu, wall = row[name]
            rates = f"{given.lines / cpu:6.0f} lines/CPU s, {given.lines / wall:6.0f} lines/s"
            print(f"{name:6} {rates}, load {os.getloadavg()[0]:.1f}", flush=True)
        rounds.append(row)
    ratios = {
        "rate of -j 1 to the bare loop (CPU)": [row["bare"][0] / row["-j 1"][0] for row in rounds],
        "rate of -j 2 to -j 1 (wall)": [row["-j 1"][1] / row["-j 2"][1] for row in rounds],
        "CPU of -j 2 to -j 1": [row["-j 2"][0] / row["-j 1"][0] for row in rounds],
    }
    for other in others:
        ratios[f"rate of {other} to -j 1 (CPU)"] = [
            row["-j 1"][0] / row[other][0] for row in rounds
        ]
    for name, values in ratios.items():
        print(f"{name}: {statistics.median(values):.2f}")
    if given.gold:
        for name, command in {"-j 1": parse, **others}.items():
            score = las([*command, "--from", "text"], given.gold)
            print(f"LAS of {name}: {score:.2f}", flush=True)


if __name__ == "__main__":
    main()
