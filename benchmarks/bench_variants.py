"""Step time and memory of every source-side variant against the plain Transformer.

    python benchmarks/bench_variants.py train.jsonl spm.model [--preset small] [--device cuda]

Records with trees, as `synmt featurize --spm spm.model --tgt FILE` makes them. Only pairs whose
source has 25 to 35 pieces (--length 30) are used. Rounds are interleaved: each system makes the
same updates, on the same batches, one after the other, and what counts is the ratio of their
times within a round. An update is all that the trainer does between two reports. Memory is the
peak of a process of its own on a CPU (with what reading the records took), the allocator's peak
on a GPU. Dropout and precision are the preset's.
"""

from __future__ import annotations

import argparse
import multiprocessing
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from synmt_cli import signals
from synmt_cli.core.data.corpus import Corpus
from synmt_cli.core.data.encoding import Encoding
from synmt_cli.core.data.labels import Labels
from synmt_cli.core.data.record_reader import CorpusReader, RecordLines, lines_of
from synmt_cli.core.data.targets import Targets
from synmt_cli.core.run.building import build, needs
from synmt_cli.core.run.config import Config, from_settings, resolve
from synmt_cli.core.run.directory import Run
from synmt_cli.core.text.vocabulary import Vocabularies, Vocabulary
from synmt_cli.core.training.loop import Trainer
from synmt_cli.formats import record

SYSTEMS = (
    "vanilla",
    "pascal",
    "gps",
    "tags",
    "struct-abs",
    "struct-rel",
    "struct-abs+struct-rel",
    "rel",
    "dep",
    "dep+rel",
    "sisa",
    "pascal+gps",
)
Step = Callable[[np.ndarray], object]


def configs(options: argparse.Namespace) -> dict[str, Config]:
    """The configuration of each system."""
    settings = [f"training.precision={options.precision}", *options.set]
    return {
        name: resolve(name, options.preset, from_settings(settings)) for name in options.systems
    }


def read(options: argparse.Namespace) -> tuple[Corpus, Vocabularies]:
    """Pairs of the wanted length, with the features of all systems."""
    vocabulary = Vocabulary.load(options.spm)
    both = Vocabularies(vocabulary, vocabulary)
    every = {name for c in configs(options).values() for name in needs(c, training=True)}
    wanted = range(options.length - 5, options.length + 6)

    def fits(line: bytes) -> bool:
        return len(record.from_bytes(line).pieces or ()) + 1 in wanted

    chosen = (
        RecordLines(some.name, some.first, [line for line in some.lines if fits(line)])
        for some in lines_of([options.records])
    )
    needed = sorted(every)
    reader = CorpusReader(both, needed, Targets(both.target), 256)
    corpus, _ = reader.corpus(map(reader.chunk, chosen), Encoding(needed, Labels(growing=True)))
    return corpus, both


def stepper(config: Config, corpus: Corpus, both: Vocabularies, device: str) -> Step:
    """One update of synmt's trainer."""
    model = build(config, both, len(corpus.encoding.labels))
    trainer = Trainer(Run(Path()), config.training, model, both, corpus, None, torch.device(device))
    model.train()
    nobody = signals.Request()
    return lambda rows: trainer._update(trainer.updates.prepared([rows]), nobody)


def seconds(work: Callable[[], None], device: str) -> float:
    """Wall time on a GPU, otherwise CPU time of this process."""
    if device == "cpu":
        start = time.process_time()
        work()
        return time.process_time() - start
    torch.cuda.synchronize()
    start = time.perf_counter()
    work()
    torch.cuda.synchronize()
    return time.perf_counter() - start


def peak(options: argparse.Namespace, name: str) -> float:
    """MB at the peak of three updates."""
    if options.device != "cpu":
        return _peak(options, name)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_peak, (options, name))


def _peak(options: argparse.Namespace, name: str) -> float:
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    corpus, both = read(options)
    step = stepper(configs(options)[name], corpus, both, options.device)
    if options.device != "cpu":
        torch.cuda.reset_peak_memory_stats()
    for rows in list(corpus.epoch(options.batch_tokens, 1, 0))[:3]:
        step(rows)
    if options.device != "cpu":
        return torch.cuda.max_memory_allocated() / 1e6
    # Not getrusage: its peak is inherited through fork and exec.
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.split("VmHWM:")[1].split()[0]) / 1e3


def main() -> None:
    """Prints each system's step time, its ratio to the first system's, and its memory."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("records")
    parser.add_argument("spm")
    parser.add_argument("--preset", default="small")
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--systems", nargs="+", default=SYSTEMS)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--precision", default="auto")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=2)
    parser.add_argument("--length", type=int, default=30)
    parser.add_argument("--batch-tokens", type=int, default=4096)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    corpus, both = read(options)
    batches = list(corpus.epoch(options.batch_tokens, 1, 0))
    steps = {
        name: stepper(config, corpus, both, options.device)
        for name, config in configs(options).items()
    }
    times: dict[str, list[float]] = {name: [] for name in steps}
    for turn in range(options.rounds + 1):
        chosen = [batches[(turn * options.steps + i) % len(batches)] for i in range(options.steps)]
        for name, step in steps.items():

            def work(step: Step = step, chosen: list[np.ndarray] = chosen) -> None:
                for rows in chosen:
                    step(rows)

            spent = seconds(work, options.device)
            if turn:  # the first round warms up
                times[name].append(spent / options.steps)
    where = (
        platform.processor() or platform.machine()
        if options.device == "cpu"
        else torch.cuda.get_device_name()
    )
    print(
        f"{where}, Python {platform.python_version()}, torch {torch.__version__}, preset "
        f"{options.preset} {' '.join(options.set)}, precision {options.precision}, "
        f"{options.threads} thread(s), {options.batch_tokens} tokens a batch, sources of about "
        f"{options.length} pieces, {options.rounds} rounds of {options.steps}"
    )
    steps.clear()
    first = next(iter(times.values()))
    for name, seconds_of in times.items():
        ratios = [a / b for a, b in zip(seconds_of, first, strict=True)]
        print(
            f"{name:24} {1000 * statistics.median(seconds_of):8.1f} ms   "
            f"{statistics.median(ratios):.2f} x ({min(ratios):.2f}-{max(ratios):.2f})   "
            f"{peak(options, name):7.0f} MB",
            flush=True,
        )


if __name__ == "__main__":
    main()
