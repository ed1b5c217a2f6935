"""Translation speed: synmt's engines against CTranslate2 with the same weights, in one run.

    python benchmarks/bench_translate.py RUN RECORDS [--rounds 3] [--beams 1,5] [--others RUN ...]

RUN is a plain Transformer, RECORDS have its pieces and targets. All get pieces, sort them by
length, take 64 sentences at a time and give text; lenpen 1, at most 64 pieces, done when as
many translations as the beam is wide are finished. It prints sentences per CPU second on one
thread, without loading; ratios are within a round. --others are runs of other variants, whose
records have trees: each is compared with CTranslate2 on RUN. "equal" counts the translations that
torch finds for the same run in fp32; "words" is their mean length.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import ctranslate2
import torch
from sacrebleu.metrics.bleu import BLEU

from synmt_cli.core.decoding.hypothesis import LengthLimit
from synmt_cli.core.decoding.translator import SearchSettings
from synmt_cli.core.jobs.translation.job import Models, translator
from synmt_cli.core.run.directory import Run
from synmt_cli.core.run.exported.export import export
from synmt_cli.formats import record
from synmt_cli.formats.record import Record
from synmt_cli.io import reading

System = Callable[[int], list[str]]
LONGEST = 64
TYPES = {"fp32": "float32", "int8": "int8"}


def ours(models: Models, records: list[Record]) -> System:
    """synmt's translator, which `synmt translate` calls for each window."""

    def translate(beam: int) -> list[str]:
        settings = SearchSettings(
            beam=beam, lenpen=1.0, longest=LengthLimit(0, LONGEST), patience=1, scores=False
        )
        ready = translator(models, settings)
        return [one.lines[0].text for one in ready.translate(records)]

    return translate


def theirs(folder: Path, run: Run, kind: str, records: list[Record]) -> System:
    """CTranslate2, on the same pieces."""
    model = ctranslate2.Translator(str(folder), compute_type=kind, intra_threads=1)
    target = run.vocabularies().target

    def translate(beam: int) -> list[str]:
        results = model.translate_batch(
            [one.pieces for one in records],
            beam_size=beam,
            max_batch_size=64,
            max_decoding_length=LONGEST,
            length_penalty=1,
        )
        return [target.decode(target.ids(one.hypotheses[0])) for one in results]

    return translate


def main() -> None:
    """Prints a table for each beam."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("run")
    parser.add_argument("records")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--beams", default="1,5")
    parser.add_argument("--checkpoint", default="best")
    parser.add_argument("--others", nargs="*", default=[])
    options = parser.parse_args()
    torch.set_num_threads(1)
    versions = f"torch {torch.__version__}, ctranslate2 {ctranslate2.__version__}"
    print(f"{platform.machine()}, Python {platform.python_version()}, {versions}")
    sources = reading.sources([options.records])
    records = [one for source in sources for one in record.read(source) if one.status == "ok"]
    run = Run(Path(options.run))
    with tempfile.TemporaryDirectory() as name:
        export(run, Path(name) / "ct2", options.checkpoint, None)
        systems = {
            ("CTranslate2", kind, ""): theirs(Path(name) / "ct2", run, TYPES[kind], records)
            for kind in TYPES
        }
    for folder in (options.run, *options.others):
        for engine in ("torch", "ctranslate2"):
            for kind in TYPES:
                models = Models((folder,), options.checkpoint, precision=kind, engine=engine)
                systems[engine, kind, folder] = ours(models, records)
    for beam in map(int, options.beams.split(",")):
        measure(systems, options.run, beam, [one.tgt or "" for one in records], options.rounds)


def measure(
    systems: dict[tuple[str, str, str], System],
    plain: str,
    beam: int,
    references: list[str],
    rounds: int,
) -> None:
    """Times every system once a round, and prints a table. plain: the run of CTranslate2 itself."""
    seconds: dict[tuple[str, str, str], list[float]] = {name: [] for name in systems}
    texts: dict[tuple[str, str, str], list[str]] = {}
    for i in range(rounds + 1):
        for name, system in systems.items():
            start = time.process_time()
            texts[name] = system(beam)
            if i:  # the first round warms up
                seconds[name].append(time.process_time() - start)
    print(f"\nbeam {beam}: sentences per CPU second, times CTranslate2 in this precision, BLEU,")
    print("equal to torch fp32, words")
    for system_of, times in seconds.items():
        engine, kind, folder = system_of
        found = texts[system_of]
        rate = len(references) / statistics.median(times)
        base = seconds["CTranslate2", kind, ""]
        ratio = statistics.median(a / b for a, b in zip(base, times, strict=True))
        score = BLEU().corpus_score(found, [references]).score
        wanted = texts["torch", "fp32", folder or plain]
        same = sum(a == b for a, b in zip(found, wanted, strict=True))
        words = statistics.mean(len(text.split()) for text in found)
        shown = f"{engine} {kind} {Path(folder).name}".strip()
        print(f"{shown}: {rate:.0f}, {ratio:.2f}, {score:.2f}, {same}, {words:.1f}", flush=True)


if __name__ == "__main__":
    main()
