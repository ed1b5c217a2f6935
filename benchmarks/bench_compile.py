"""Training with compiled layers against training without, on real records, in turns.

    python benchmarks/bench_compile.py RECORDS SPM [--size tiny] [--variants vanilla,pascal,dep]

RECORDS: JSONL as `synmt featurize` writes it. SPM: its vocabulary. Both trainers get the same
batches. The first dozen is for compiling: its extra time is what compiling took, and programs
that are made after it are recompilations. Then rounds take turns; a rate is target tokens per CPU
second of this process, and the ratio is the median of those within a round.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from synmt_cli import signals
from synmt_cli.core.run.building import build
from synmt_cli.core.run.config import from_settings, resolve
from synmt_cli.core.run.directory import Run
from synmt_cli.core.training.loop import Trainer
from synmt_cli.core.training.session import Inputs, Session, open_session

FIRST = 12  # updates in which programs may be made


def n_programs() -> int:
    """How many programs torch has made so far."""
    made: int = torch._dynamo.utils.counters["stats"]["unique_graphs"]
    return made


def trainer(session: Session, is_compiled: bool) -> Trainer:
    """A trainer that writes nothing."""
    torch.manual_seed(1)
    model = build(session.config, session.vocabularies, len(session.train.encoding.labels))
    settings = replace(session.config.training, compile=is_compiled, precision="fp32")
    given = model, session.vocabularies, session.train, None, session.device
    made = Trainer(Run(Path()), settings, *given)
    model.train()
    return made


def seconds(one: Trainer, batches: Sequence[np.ndarray], clock: Callable[[], float]) -> float:
    """The time of an update with each of these batches."""
    start = clock()
    for rows in batches:
        one._update(one.updates.prepared([rows]), signals.Request())
    return clock() - start


def measure(session: Session, rounds: int, steps: int) -> str:
    """A row of the table."""
    settings = session.config.training
    batches = [*session.train.epoch(settings.batch_tokens, 1, 0)]
    first, rest = batches[:FIRST], batches[FIRST:]
    eager, other = trainer(session, False), trainer(session, True)
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    plain = seconds(eager, first, time.perf_counter)
    compiling = seconds(other, first, time.perf_counter) - plain
    n_first, ratios, rates = n_programs(), [], []
    for number in range(rounds):
        some = [rest[(number * steps + i) % len(rest)] for i in range(steps)]
        own = seconds(eager, some, time.process_time)
        then = seconds(other, some, time.process_time)
        rates.append(sum(map(session.train.n_tokens_of, some)) / own)
        ratios.append(own / then)
    faster = f"{statistics.median(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f})"
    made = f"{compiling:.0f} s | {n_first} | {n_programs() - n_first}"
    return f"| {session.config.variant} | {made} | {statistics.median(rates):,.0f} | {faster} |"


def main() -> None:
    """Prints a row of Markdown for each variant."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("records")
    parser.add_argument("spm")
    parser.add_argument("--size", default="tiny", help="a preset")
    parser.add_argument("--variants", default="vanilla,pascal,dep")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=8, help="updates in a round")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    options = parser.parse_args()
    torch.set_num_threads(1)
    print("| variant | compiling | programs | made later | tokens/CPU s as it is | times as fast |")
    print("|---|---|---|---|---|---|")
    for variant in options.variants.split(","):
        config = resolve(variant, options.size, from_settings(options.set))
        inputs = Inputs([options.records], "", options.spm)
        session = open_session(config, inputs, "cpu", signals.Request())
        print(measure(session, options.rounds, options.steps), flush=True)


if __name__ == "__main__":
    main()
