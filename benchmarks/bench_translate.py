"""Translation speed: synmt against CTranslate2 with the same weights, in one run.

    python benchmarks/bench_translate.py RUN RECORDS [--rounds 3] [--beams 1,5] [--others RUN ...]

RUN is a plain Transformer, RECORDS have its pieces and targets. Both get pieces, sort them by
length, take 64 sentences at a time and give text; lenpen 1, at most 64 pieces, done when as
many translations as the beam is wide are finished. Sentences per
CPU second, one thread, loading apart; ratios within a round. --others are runs of other
variants, whose records have trees: each is compared with RUN.
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
from synmt_cli.core.jobs.translate import Models, translator
from synmt_cli.core.run.directory import Run
from synmt_cli.core.run.export import export
from synmt_cli.formats import record
from synmt_cli.formats.record import Record
from synmt_cli.io import reading

System = Callable[[int], list[str]]
LONGEST = 64


def ours(folder: str, precision: str, records: list[Record]) -> System:
    """synmt's translator, which `synmt translate` calls for each window."""

    def translate(beam: int) -> list[str]:
        settings = SearchSettings(
            beam=beam, lenpen=1.0, longest=LengthLimit(0, LONGEST), patience=1
        )
        ready = translator(Models((folder,), precision=precision), settings)
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
    parser.add_argument("--others", nargs="*", default=[])
    options = parser.parse_args()
    torch.set_num_threads(1)
    versions = f"torch {torch.__version__}, ctranslate2 {ctranslate2.__version__}"
    print(f"{platform.machine()}, Python {platform.python_version()}, {versions}")
    sources = reading.sources([options.records])
    records = [one for source in sources for one in record.read(source) if one.status == "ok"]
    run = Run(Path(options.run))
    with tempfile.TemporaryDirectory() as name:
        export(run, Path(name) / "ct2", "best", None)
        systems = {
            "CTranslate2 fp32": theirs(Path(name) / "ct2", run, "float32", records),
            "synmt fp32": ours(options.run, "fp32", records),
            "CTranslate2 int8": theirs(Path(name) / "ct2", run, "int8", records),
            "synmt int8": ours(options.run, "int8", records),
        }
    systems |= {f"{other} fp32": ours(other, "fp32", records) for other in options.others}
    for beam in map(int, options.beams.split(",")):
        measure(systems, beam, [one.tgt or "" for one in records], options.rounds)


def measure(systems: dict[str, System], beam: int, references: list[str], rounds: int) -> None:
    """Every system once a round."""
    seconds: dict[str, list[float]] = {name: [] for name in systems}
    texts: dict[str, list[str]] = {}
    for i in range(rounds + 1):
        for name, system in systems.items():
            start = time.process_time()
            texts[name] = system(beam)
            if i:  # the first round warms up
                seconds[name].append(time.process_time() - start)
    print(f"\nbeam {beam}: sentences per CPU second, times CTranslate2 fp32 / int8, BLEU, equal")
    first, second = (seconds[f"CTranslate2 {kind}"] for kind in ("fp32", "int8"))
    plain = texts["CTranslate2 fp32"]
    for name, times in seconds.items():
        rate = len(references) / statistics.median(times)
        ratios = [
            statistics.median(a / b for a, b in zip(base, times, strict=True))
            for base in (first, second)
        ]
        score = BLEU().corpus_score(texts[name], [references]).score
        same = sum(a == b for a, b in zip(texts[name], plain, strict=True))
        print(f"{name}: {rate:.0f}, {ratios[0]:.2f} / {ratios[1]:.2f}, {score:.2f}, {same}")


if __name__ == "__main__":
    main()
