"""Measures a GPU: one command for a fresh machine, which ends itself after ten minutes.

    python benchmarks/gpu_report.py [--output benchmarks/GPU.md] [--device cpu --quick]

The report is written anew after each part, so that one that is cut off holds what was measured
before. Rates are medians over rounds. A part that fails says so in its place, and the others go
on. --quick is the same in miniature, which the tests run on a CPU
so that this file keeps working; its figures mean nothing.
"""

from __future__ import annotations

import argparse
import os
import platform
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from bench_train import VOCABULARY, Bare
from support import launches

from synmt_cli import __version__, signals
from synmt_cli.core import variants
from synmt_cli.core.data.batch import to_device
from synmt_cli.core.data.corpus import Corpus
from synmt_cli.core.decoding.beam import search
from synmt_cli.core.decoding.hypothesis import LengthLimit, Rules
from synmt_cli.core.model.size import Size
from synmt_cli.core.model.transformer import Transformer
from synmt_cli.core.run import device as devices
from synmt_cli.core.run.config import Training, resolve
from synmt_cli.core.run.directory import WEIGHTS, Run
from synmt_cli.core.text.vocabulary import PAD, Vocabularies
from synmt_cli.core.training.loop import Trainer
from synmt_cli.core.variants.stack import StackSpec

ROOT = Path(__file__).parent.parent
TINY = Size(d_model=16, d_ff=16, n_heads=4, encoder_layers=1, decoder_layers=1)
Part = Callable[["Plan"], Iterator[str]]


class TimeUp(BaseException):
    """The limit was reached."""


class Plan:
    """How much is measured, and where."""

    def __init__(self, device: str, quick: bool, limit: float) -> None:
        self.device, self.quick = torch.device(device), quick
        self.end = time.monotonic() + limit
        self.sizes = {"tiny": TINY} if quick else {n: sized(n) for n in ("base", "big")}
        self.tokens, self.pairs, self.rounds = (256, 24, 1) if quick else (25_000, 4_000, 5)
        self.precision = devices.own_precision(self.device)
        self.variants = ("pascal", "gcn") if quick else (*launches.SETTINGS,)[1:]
        self.rate = 0.0  # operations a second in products of matrices

    @property
    def left(self) -> float:
        """Seconds until the limit."""
        return self.end - time.monotonic()

    def wait(self) -> None:
        """Returns when the device has done everything."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)


def sized(preset: str) -> Size:
    """The size of a preset; big is that of the papers."""
    if preset == "big":
        return Size(d_model=1024, d_ff=4096, n_heads=16)
    return resolve(None, preset, []).model


class Numbers:
    """A vocabulary whose pieces are numbers."""

    fingerprint = "report"

    def decode(self, ids: list[int]) -> str:
        """The numbers."""
        return " ".join(map(str, ids))


def machine(plan: Plan) -> Iterator[str]:
    """The card, its driver, and versions."""
    yield f"- synmt {__version__}, Python {platform.python_version()}, torch {torch.__version__}"
    yield f"- {os.cpu_count()} cores, {platform.processor() or platform.machine()}"
    if plan.device.type != "cuda":
        yield "- no GPU"
        return
    about = torch.cuda.get_device_properties(plan.device)
    yield f"- {about.name}, {about.total_memory / 2**30:.0f} GiB, CUDA {torch.version.cuda}"
    asked = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    driver = subprocess.run(asked, capture_output=True, text=True, check=False).stdout
    yield f"- driver {driver.strip() or 'unknown'}"


def tests(plan: Plan) -> Iterator[str]:
    """The tests that are marked gpu."""
    if plan.device.type != "cuda":
        yield "Not run: they need a GPU."
        return
    command = [sys.executable, "-m", "pytest", "-q", "-m", "gpu", "tests/core"]
    environment = {**os.environ, "SYNMT_TEST_GPU": "1"}
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True,
            timeout=plan.left / 3, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        yield f"Not finished in {plan.left / 3:.0f} s."
        return
    lines = done.stdout.strip().split("\n")
    failed = [line for line in lines if line.startswith(("FAILED", "ERROR"))]
    yield "\n".join(["```", *failed, *lines[-1:], "```"])


def matrices(plan: Plan) -> Iterator[str]:
    """The rate of products of large matrices, of which shares are reckoned."""
    n, times = (256, 2) if plan.quick else (8192, 30)
    dtype = devices.HALF.get(plan.precision, torch.float32)
    a, b = (torch.randn(n, n, device=plan.device, dtype=dtype) for _ in range(2))
    for _ in range(3):
        a @ b
    plan.wait()
    start = time.perf_counter()
    for _ in range(times):
        a @ b
    plan.wait()
    plan.rate = times * 2 * n**3 / (time.perf_counter() - start)
    yield f"{plan.rate / 1e12:.3g} Tflop/s in {plan.precision}, matrices of {n} x {n}."


def trainer(
    plan: Plan, setting: str, size: Size, data: Corpus, folder: Path, **settings: int
) -> Trainer:
    """A trainer of a row of launches.SETTINGS."""
    variant, options = launches.SETTINGS[setting]
    one = variants.plan(variant)
    spec = StackSpec(size, size.encoder_layers, len(launches.LABELS))
    rules = launches.grammar() if one.transitions else None
    n_ids = launches.N_IDS if one.transitions else VOCABULARY
    both = one.encoder(spec, options), one.decoder(spec, options)
    torch.manual_seed(1)
    model = Transformer(size, n_ids, n_ids, *both, one.rereads, rules)
    kept = {"batch_tokens": plan.tokens, "precision": plan.precision, "lr": 1e-4, **settings}
    given = Training(**kept)  # type: ignore[arg-type]
    vocabularies = Vocabularies(Numbers(), Numbers())  # type: ignore[arg-type]
    return Trainer(Run(folder), given, model, vocabularies, data, None, plan.device)


def operations(size: Size, source: int, target: int) -> float:
    """Those of an update in products of matrices; attention itself is left out."""
    d, ff = size.d_model, size.d_ff
    encoder = size.encoder_layers * (4 * d * d + 2 * d * ff)
    decoder = size.decoder_layers * (6 * d * d + 2 * d * ff) + VOCABULARY * d
    memory = size.decoder_layers * 2 * d * d
    return 6.0 * (source * (encoder + memory) + target * decoder)


def bare(plan: Plan, size: Size) -> Callable[[list[np.ndarray], Corpus], None]:
    """An update of a loop of torch's own modules, compiled where there is a compiler."""
    model = Bare(size).to(plan.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, fused=True)
    forward = model if plan.quick else torch.compile(model, dynamic=True)

    def update(rows: list[np.ndarray], data: Corpus) -> None:
        batch = data.batch(rows[0]).to(plan.device)
        with devices.precision(plan.precision, plan.device):
            logits = forward(batch.source.ids, batch.target.ids)
            loss = F.cross_entropy(
                logits.flatten(0, 1).float(),
                batch.target_out.flatten(),
                ignore_index=PAD,
                label_smoothing=0.1,
            )
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()

    return update


def training(plan: Plan) -> Iterator[str]:
    """Tokens a second of each variant and of the bare loop."""
    data = {trees: launches.corpus(plan.pairs, trees) for trees in (False, True)}
    yield f"{plan.precision}, {plan.tokens:,} tokens a batch, {plan.rounds} rounds.\n"
    yield "| size | system | target tokens/s | times vanilla's time | of the matrix rate | GiB |"
    yield "|---|---|---|---|---|---|"
    for name, size in plan.sizes.items():
        vanilla = 0.0
        for system in ("bare", "vanilla", *(plan.variants if name != "big" else ())):
            trees = variants.plan(launches.SETTINGS.get(system, ("vanilla",))[0]).transitions
            rate, share, memory = measured(plan, system, size, data[trees])
            vanilla = rate if system == "vanilla" else vanilla
            ratio = f"{vanilla / rate:.2f}" if vanilla else ""
            share = "" if trees else share  # their operations are not those of pieces
            yield f"| {name} | {system} | {rate:,.0f} | {ratio} | {share} | {memory} |"


def measured(plan: Plan, system: str, size: Size, data: Corpus) -> tuple[float, str, str]:
    """Target tokens a second of updates, their share of the matrix rate, and memory."""
    batches = list(data.epoch(plan.tokens, 1, 0))
    nobody = signals.Request()
    if system == "bare":
        work = bare(plan, size)
    else:
        one = trainer(plan, system, size, data, Path())
        one.model.train()

        def work(rows: list[np.ndarray], data: Corpus) -> None:
            one._update(one.updates.prepared(rows), nobody)

    rate, seconds, (source, target) = timed(plan, work, data, batches)
    share = operations(size, source, target) / seconds / max(plan.rate, 1.0)
    return rate, f"{100 * share:.0f} %", peak(plan)


def timed(
    plan: Plan, work: Callable[[list[np.ndarray], Corpus], None], data: Corpus, batches: list
) -> tuple[float, float, tuple[int, int]]:
    """Tokens a second, seconds of a round, and source and target tokens of it; medians."""
    few = batches[: 1 if plan.quick else 4]
    if plan.device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(plan.device)
    times = []
    for turn in range(plan.rounds + 2):  # two rounds warm up
        plan.wait()
        start = time.perf_counter()
        for rows in few:
            work([rows], data)
        plan.wait()
        times += [time.perf_counter() - start] if turn > 1 else []
    seconds = statistics.median(times)
    target = sum(map(data.n_tokens_of, few))
    source = int(sum(data.source.lengths_of(rows).sum() for rows in few))
    return target / seconds, seconds, (source, target)


def peak(plan: Plan) -> str:
    """The most memory since the last measurement began."""
    if plan.device.type != "cuda":
        return ""
    return f"{torch.cuda.max_memory_allocated(plan.device) / 2**30:.1f}"


def loader(plan: Plan) -> Iterator[str]:
    """How long updates wait for the next batch."""
    data = launches.corpus(plan.pairs)
    size = next(iter(plan.sizes.values()))
    one = trainer(plan, "vanilla", size, data, Path())
    one.model.train()
    updates, waited, n = one._updates_since(0, 0), 0.0, 3 if plan.quick else 30
    begin = time.perf_counter()
    for _ in range(n):
        start = time.perf_counter()
        update = next(updates)
        waited += time.perf_counter() - start
        one._update(update, signals.Request())
    plan.wait()
    share = waited / (time.perf_counter() - begin)
    updates.close()
    yield f"{100 * share:.1f} % of the time of {n} updates."


def translation(plan: Plan) -> Iterator[str]:
    """Sentences a second, greedy and with beam 5."""
    n, rows = (8, 4) if plan.quick else (2_000, 250)
    data = launches.corpus(n)
    size = next(iter(plan.sizes.values()))
    yield "The length of each translation is that of its source.\n"
    yield "| precision | beam | sentences/s |\n|---|---|---|"
    halves = ("bf16", "fp16") if plan.device.type == "cuda" else ("bf16",)
    for precision in ("fp32", *halves):
        devices.allow_tf32(plan.device, True)
        model = trainer(plan, "vanilla", size, data, Path()).model.eval()
        model.to(devices.HALF.get(precision, torch.float32))
        for beam in (1, 5):
            rules = Rules(beam=beam, longest=LengthLimit(1, 0))
            plan.wait()
            start = time.perf_counter()
            for some in np.array_split(np.arange(n), n // rows):
                search([model], to_device(data.sources(some), plan.device), rules)
            plan.wait()
            yield f"| {precision} | {beam} | {n / (time.perf_counter() - start):,.0f} |"


def resuming(plan: Plan) -> Iterator[str]:
    """Whether a run that was stopped has the weights of one that was not."""
    data, weights = launches.corpus(24), []
    with tempfile.TemporaryDirectory() as folder:
        for stops in ((4,), (2, 4)):
            run = Run(Path(folder) / str(len(stops)))
            run.folder.mkdir()
            for stop in stops:
                one = trainer(plan, "vanilla", TINY, data, run.folder, max_steps=stop)
                one.resume()
                list(one.events(signals.Request(), None))
            weights.append((run.checkpoint(4) / WEIGHTS).read_bytes())
    same = weights[0] == weights[1]
    yield f"A run stopped after 2 of 4 updates ends with {'the same' if same else 'other'} bits."


def counts(plan: Plan) -> Iterator[str]:
    """Launches and synchronisations, counted on the pretend device: they need no card."""
    yield "| update of | launches | times vanilla | waits |\n|---|---|---|---|"
    plain = 0
    for setting in ("vanilla",) if plan.quick else launches.SETTINGS:
        found = launches.update(setting)
        plain = plain or found.n_launches
        ratio = found.n_launches / plain
        yield f"| {setting} | {found.n_launches:,} | {ratio:.2f} | {found.n_synchronisations} |"
    yield "\n| search | steps | launches | times the model's | waits |\n|---|---|---|---|---|"
    for setting in ("vanilla",) if plan.quick else ("vanilla", "pascal", "gps", "rel", "gcn"):
        for beam in (1, 4):
            s = launches.searched(setting, beam, 4 if plan.quick else launches.N_PAIRS)
            n, waits = s.counts.n_launches, s.counts.n_synchronisations
            yield f"| {setting}, beam {beam} | {s.n_steps} | {n:,} | {s.share:.2f} | {waits} |"


PARTS: dict[str, Part] = {
    "Machine": machine,
    "Matrix products": matrices,
    "Training": training,
    "Waiting for batches": loader,
    "Translation": translation,
    "Resuming": resuming,
    "Tests": tests,
    "Counts": counts,
}
NO_CARD = ("Machine", "Counts")
BEGINNING = """# On a GPU

Written by `make gpu-report` (benchmarks/gpu_report.py), which measures in ten minutes at most.
Sentences are random, of 10 to 24 pieces with trees; an update is reckoned as 6 operations for each
weight and token, without attention itself. The bare loop is torch's nn.Transformer with Adam,
compiled. The bars: 35 % of the matrix rate at base size, no less than the bare loop, and variants
at most 1.2 times vanilla's time. Translation is not compared with other programs here.
"""
WITHOUT = """
No card could be had when this was written: nothing was timed. Counts come from the pretend device
of the tests (tests/support/pretend.py).
"""
QUICK = """
In miniature, to see that all parts work: the figures mean nothing.
"""


def report(plan: Plan, output: Path | None, names: tuple[str, ...], beginning: str) -> str:
    """Runs the parts, until the time is up; the file has what is done so far."""
    written = beginning
    try:
        for name in names:
            print(f"{name} ({plan.left:.0f} s left)", file=sys.stderr, flush=True)
            written += f"\n## {name}\n\n"
            try:
                for line in PARTS[name](plan):
                    written += line + "\n"
            except Exception as error:  # the report goes on with the next part
                written += f"\nFailed: {type(error).__name__}: {str(error).partition(chr(10))[0]}\n"
            if output is not None:
                output.write_text(written)
    except TimeUp:
        written += "\nThe time was up.\n"
        if output is not None:
            output.write_text(written)
    return written


def main() -> None:
    """Writes the report to a file or to stdout."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--output", type=Path, help="a file; else stdout")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--quick", action="store_true", help="in miniature: figures mean nothing")
    parser.add_argument("--limit", type=float, default=600.0, help="seconds")
    options = parser.parse_args()
    device = devices.choose(options.device)

    def stop(*_: object) -> None:
        raise TimeUp

    signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, options.limit)
    plan = Plan(str(device), options.quick, options.limit)
    has_card = device.type == "cuda"
    names = tuple(PARTS) if has_card or options.quick else NO_CARD
    about = QUICK if options.quick else "" if has_card else WITHOUT
    written = report(plan, options.output, names, BEGINNING + about)
    if options.output is None:
        print(written, end="")


if __name__ == "__main__":
    main()
