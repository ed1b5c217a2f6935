"""Measures a GPU: one command for a fresh machine, which ends itself after ten minutes.

    python benchmarks/gpu_report.py [--output FILE] [--sizes base] [--parts Tests,Training]
        [--device cpu --quick]

The report is written anew after each line, so that a report that is cut off holds what was measured
before. Systems that are compared take turns (A B A B), so that a card that gets slower or faster
changes both, and ratios are medians of those within a round. A part that fails, or whose share of
the time is up, says so in its place, and the others go on; the last part says whether each bar is
met. A batch that does not fit the card passes through the model in smaller parts.
--quick is the same in miniature, which the tests run on a CPU so that this file keeps working; its
figures mean nothing.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import gc
import os
import platform
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.profiler import ProfilerActivity, profile

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from bench_train import VOCABULARY, Bare
from support import launches

from synmt_cli import __version__, signals
from synmt_cli.core import variants
from synmt_cli.core.data.batch import Batch, to_device
from synmt_cli.core.data.corpus import Corpus
from synmt_cli.core.decoding.hypothesis import LengthLimit, Rules
from synmt_cli.core.decoding.search import search
from synmt_cli.core.model.size import Size
from synmt_cli.core.model.transformer import Transformer
from synmt_cli.core.run import device as devices
from synmt_cli.core.run.config import Training, resolve
from synmt_cli.core.run.directory import WEIGHTS, Run
from synmt_cli.core.run.exported import ctranslate2_model
from synmt_cli.core.text.vocabulary import BOS, PAD, Vocabularies
from synmt_cli.core.training.loop import Trainer
from synmt_cli.core.variants.stack import StackSpec
from synmt_cli.errors import SynmtError

ROOT = Path(__file__).parent.parent
LONGEST = 24  # pieces of a translation
TINY = Size(d_model=64, d_ff=16, n_heads=4, encoder_layers=1, decoder_layers=1)
Part = Callable[["Plan"], Iterator[str]]


class TimeUp(BaseException):
    """The time for a part is up."""


@contextlib.contextmanager
def ends_after(seconds: float) -> Iterator[None]:
    """Raises TimeUp inside the block after so many seconds."""

    def stop(*_: object) -> None:
        raise TimeUp

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, max(seconds, 0.001))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


class Plan:
    """How much is measured, and where."""

    def __init__(
        self, device: str, quick: bool, limit: float, sizes: Sequence[str] = ("base", "big")
    ) -> None:
        self.device, self.quick = torch.device(device), quick
        self.end, self.limit = time.monotonic() + limit, limit
        self.micro = 0  # tokens that pass through the model at a time; 0 is a batch
        self.sizes = {"tiny": TINY} if quick else {n: sized(n) for n in sizes}
        self.tokens, self.pairs, self.rounds = (256, 24, 1) if quick else (25_000, 20_000, 5)
        self.precision = devices.own_precision(self.device)
        self.variants = ("pascal", "gcn") if quick else (*launches.SETTINGS,)[1:]
        self.rate = 0.0  # operations per second in products of matrices
        self.figures: dict[str, float] = {}  # for the bars

    @property
    def left(self) -> float:
        """Seconds until the limit."""
        return self.end - time.monotonic()

    def wait(self) -> None:
        """Returns when the device has done everything."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def free(self) -> None:
        """Gives back the memory of what was measured before."""
        gc.collect()
        if self.device.type == "cuda":
            torch.cuda.empty_cache()


@functools.cache
def pairs(n: int, trees: bool = False) -> Corpus:
    """Random pairs, made once: thousands take seconds."""
    return launches.corpus(n, trees)


def sized(preset: str) -> Size:
    """The size of a preset; big is the big one of the papers."""
    if preset == "big":
        return Size(d_model=1024, d_ff=4096, n_heads=16)
    return resolve(None, preset, []).model


class Numbers:
    """A vocabulary whose pieces are numbers."""

    fingerprint = "report"
    size = VOCABULARY

    def names(self, ids: Iterable[int]) -> list[str]:
        """The numbers."""
        return [*map(str, ids)]

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
    except subprocess.TimeoutExpired as error:
        yield f"Not finished in {error.timeout:.0f} s."
        return
    plan.figures["tests"] = float(done.returncode == 0)
    lines = done.stdout.strip().split("\n")
    failed = [line for line in lines if line.startswith(("FAILED", "ERROR"))]
    yield "\n".join(["```", *failed, *lines[-1:], "```"])


def matrices(plan: Plan) -> Iterator[str]:
    """The rate of products of large matrices, of which other parts give their shares."""
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
    """A trainer for a row of launches.SETTINGS."""
    variant, options = launches.SETTINGS[setting]
    one = variants.plan(variant)
    spec = StackSpec(size, size.encoder_layers, len(launches.LABELS))
    rules = launches.grammar() if one.transitions else None
    n_ids = launches.N_IDS if one.transitions else VOCABULARY
    both = one.encoder(spec, options), one.decoder(spec, options)
    torch.manual_seed(1)
    model = Transformer(size, n_ids, n_ids, *both, one.rereads, rules)
    own: dict[str, Any] = {"batch_tokens": plan.tokens, "micro_tokens": plan.micro, "lr": 1e-4}
    given = Training(**{**own, **settings, "precision": plan.precision})
    vocabularies = Vocabularies(Numbers(), Numbers())  # type: ignore[arg-type]
    return Trainer(Run(folder), given, model, vocabularies, data, None, plan.device)


def operations(size: Size, source: int, target: int) -> float:
    """The operations of an update in products of matrices; attention itself is left out."""
    d, ff = size.d_model, size.d_ff
    encoder = size.encoder_layers * (4 * d * d + 2 * d * ff)
    decoder = size.decoder_layers * (6 * d * d + 2 * d * ff) + VOCABULARY * d
    memory = size.decoder_layers * 2 * d * d
    return 6.0 * (source * (encoder + memory) + target * decoder)


def bare(plan: Plan, size: Size, is_compiled: bool) -> Callable[[Batch], None]:
    """An update of a loop with torch's own modules, for a batch that is on the device."""
    model = Bare(size).to(plan.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, fused=True)
    forward = torch.compile(model, dynamic=True) if is_compiled else model

    def update(batch: Batch) -> None:
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


class System:
    """A system that makes updates with its own batches, which are on the device beforehand.

    In training, a thread brings them there while updates are made. They are the four with most
    tokens: the last batch of an epoch is a rest. name: a row of launches.SETTINGS, or `bare`;
    `, compiled` may follow.
    """

    def __init__(self, plan: Plan, name: str, size: Size) -> None:
        self.name, self._plan = name, plan
        setting = name.removesuffix(", compiled")
        self.has_trees = variants.plan(launches.SETTINGS.get(setting, ("vanilla",))[0]).transitions
        self._before = self._memory()
        data = pairs(plan.pairs, self.has_trees)
        largest = sorted(data.epoch(plan.tokens, 1, 0), key=data.n_tokens_of, reverse=True)
        chosen = largest[: 1 if plan.quick else 4]
        self._updates: list[Callable[[], object]]
        if setting == "bare":
            work = bare(plan, size, setting != name)
            batches = [data.batch(rows).to(plan.device) for rows in chosen]
            self._updates = [partial(work, batch) for batch in batches]
        else:
            one = trainer(plan, setting, size, data, Path(), compile=setting != name)
            one.model.train()
            nobody = signals.Request()
            ready = [one._transfer.send(one.updates.prepared([rows])) for rows in chosen]
            self._updates = [partial(one._update, update, nobody) for update in ready]
        self.n_updates = len(chosen)
        self.n_target = sum(map(data.n_tokens_of, chosen))
        self.n_source = sum(int(data.source.lengths_of(rows).sum()) for rows in chosen)

    def round(self) -> None:
        """Makes an update with each batch."""
        for update in self._updates:
            update()

    def host_share(self) -> float:
        """The share of a round's time after which the host has given the device all its work.

        Near 1, the host limits the rate.
        """
        self._plan.wait()
        start = time.perf_counter()
        self.round()
        issued = time.perf_counter() - start
        self._plan.wait()
        return issued / (time.perf_counter() - start)

    def warm_up(self) -> str:
        """Makes two rounds. Returns their peak memory in GiB, "" without a GPU."""
        if self._plan.device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(self._plan.device)
        self.round()
        self.round()
        self._plan.wait()
        if self._plan.device.type != "cuda":
            return ""
        peak = torch.cuda.max_memory_allocated(self._plan.device) - self._before
        return f"{peak / 2**30:.1f}"

    def _memory(self) -> int:
        is_card = self._plan.device.type == "cuda"
        return torch.cuda.memory_allocated(self._plan.device) if is_card else 0


def in_turns(plan: Plan, works: Sequence[Callable[[], object]], rounds: int) -> list[list[float]]:
    """The seconds that each work took in each round."""
    times: list[list[float]] = [[] for _ in works]
    for _ in range(rounds):
        for work, own in zip(works, times, strict=True):
            plan.wait()
            start = time.perf_counter()
            work()
            plan.wait()
            own.append(time.perf_counter() - start)
    return times


def ratio(times: Sequence[float], others: Sequence[float]) -> float:
    """The median of the ratios within a round."""
    return statistics.median(a / b for a, b in zip(times, others, strict=True))


def training(plan: Plan) -> Iterator[str]:
    """Tokens a second of each variant and of the bare loop, each in turns with vanilla."""
    rounds = "1 round" if plan.rounds == 1 else f"{plan.rounds} rounds"
    yield f"{plan.precision}, {plan.tokens:,} tokens a batch, {rounds}. Compiling is not timed."
    yield "host: how much of the time the host took to give the device its work.\n"
    heads = "size,system,target tokens/s,times vanilla's time,of the matrix rate,host,GiB"
    yield f"| {heads.replace(',', ' | ')} |"
    yield "|---|---|---|---|---|---|---|"
    compiled = () if plan.quick else ("vanilla, compiled", "bare, compiled")
    for name, size in plan.sizes.items():
        try:
            vanilla, memory = fitting(plan, size)
        except Exception as error:
            yield f"| {name} | vanilla | failed: {in_short(error)} | | | | |"
            continue
        if plan.micro:
            yield f"| {name} | | {plan.micro:,} tokens pass through the model at a time | | | | |"
        for system in ("vanilla", "bare", *compiled, *(plan.variants if name != "big" else ())):
            try:
                yield row(plan, name, size, vanilla, system, memory)
            except Exception as error:
                yield f"| {name} | {system} | failed: {in_short(error)} | | | | |"


def fitting(plan: Plan, size: Size) -> tuple[System, str]:
    """Vanilla after its first rounds, and its memory, with as many tokens at a time as fit."""
    for micro in (0, *(plan.tokens // parts for parts in (2, 4, 8))):
        plan.micro = micro
        plan.free()
        try:
            vanilla = System(plan, "vanilla", size)
            return vanilla, vanilla.warm_up()
        except torch.OutOfMemoryError as error:
            reason = in_short(error)
    raise MemoryError(f"an eighth of {plan.tokens:,} tokens does not fit: {reason}")


def row(plan: Plan, name: str, size: Size, vanilla: System, system: str, memory: str) -> str:
    """A line of the table. memory: vanilla's."""
    if system == "vanilla":
        one, works = vanilla, [vanilla.round]
    else:
        plan.free()
        one = System(plan, system, size)
        works, memory = [one.round, vanilla.round], one.warm_up()
    own, *others = in_turns(plan, works, plan.rounds)
    seconds = statistics.median(own)
    times = ratio(own, others[0]) if others else 1.0
    # Targets that are trees are longer than pieces, so the times of a token are compared.
    times *= vanilla.n_target / one.n_target
    share = operations(size, one.n_source, one.n_target) / seconds / max(plan.rate, 1.0)
    plan.figures |= {f"{name} {system} times": times, f"{name} {system} share": share}
    shown = "" if one.has_trees else f"{100 * share:.0f} %"  # trees have another vocabulary
    rate = one.n_target / seconds
    host = f"{100 * one.host_share():.0f} %"
    return f"| {name} | {system} | {rate:,.0f} | {times:.2f} | {shown} | {host} | {memory} |"


def kernels(plan: Plan) -> Iterator[str]:
    """The kernels that took most of the device's time in updates of vanilla."""
    name, size = next(iter(plan.sizes.items()))
    one = System(plan, "vanilla", size)
    one.warm_up()
    is_card = plan.device.type == "cuda"
    with profile(activities=[ProfilerActivity.CUDA if is_card else ProfilerActivity.CPU]) as seen:
        one.round()
        plan.wait()
    found = [
        (row.self_device_time_total if is_card else row.self_cpu_time_total, row.count, row.key)
        for row in seen.key_averages()
    ]
    whole = sum(time for time, *_ in found) or 1.0
    yield f"Updates of vanilla, {name}: {whole / one.n_updates / 1e3:.1f} ms each of all kernels.\n"
    yield "| kernel | ms | times | of the time |\n|---|---|---|---|"
    for time_taken, n, kernel in sorted(found, reverse=True)[: 5 if plan.quick else 25]:
        share, ms = 100 * time_taken / whole, time_taken / one.n_updates / 1e3
        shown = kernel.replace("|", "/")[:100]
        yield f"| {shown} | {ms:.2f} | {n / one.n_updates:.0f} | {share:.1f} % |"


def in_short(error: Exception) -> str:
    """The kind of an error, and the first line of its message."""
    return f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"


def loader(plan: Plan) -> Iterator[str]:
    """How long updates wait for the next batch."""
    data = pairs(plan.pairs)
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
    """Sentences a second, greedy and with beam 5, of synmt, a bare loop and CTranslate2."""
    n, rows = (8, 4) if plan.quick else (2_000, 250)
    size = next(iter(plan.sizes.values()))
    yield f"{n:,} sentences, {rows} at a time, translations of {LONGEST} pieces. The bare loop"
    yield "reads its prefixes anew in each step. Ratios are to synmt's time in the same round.\n"
    yield "| precision | beam | system | sentences/s | times synmt's time |\n|---|---|---|---|---|"
    halves = ("bf16", "fp16") if plan.device.type == "cuda" else ()
    for precision in ("fp32", *halves):
        systems, missing = translators(plan, size, precision, n, rows)
        yield from (f"| {precision} | | {what} | | |" for what in missing)
        for beam in (1, 5):
            works = [partial(work, beam) for work in systems.values()]
            in_turns(plan, works, 1)  # warms up
            times = in_turns(plan, works, 1 if plan.quick else 3)
            for name, own in zip(systems, times, strict=True):
                rate, times_ours = n / statistics.median(own), ratio(own, times[0])
                plan.figures[f"{name} beam {beam} {precision}"] = times_ours
                yield f"| {precision} | {beam} | {name} | {rate:,.0f} | {times_ours:.2f} |"


def translators(
    plan: Plan, size: Size, precision: str, n: int, rows: int
) -> tuple[Mapping[str, Callable[[int], object]], list[str]]:
    """Functions that translate n sentences with a beam, synmt's first; why others are missing."""
    data = pairs(n)
    devices.allow_tf32(plan.device, True)
    model = trainer(plan, "vanilla", size, data, Path()).model.eval()
    windows = np.array_split(np.arange(n), n // rows)
    systems: dict[str, Callable[[int], object]] = {}
    missing = []
    try:
        theirs = of_ctranslate2(plan, model, precision, data, rows)
    except Exception as error:  # its wheel may know nothing of this card
        missing.append(f"CTranslate2: {in_short(error)}")
    dtype = devices.HALF.get(precision, torch.float32)
    model.to(dtype)
    loop = Bare(size).to(plan.device, dtype).eval()

    def ours(beam: int) -> None:
        rules = Rules(beam=beam, longest=LengthLimit(0, LONGEST))
        for some in windows:
            search([model], to_device(data.sources(some), plan.device), rules)

    def bare_loop(beam: int) -> None:
        for some in windows:
            bare_search(loop, data.sources(some).ids.to(plan.device), beam)

    systems |= {"synmt": ours, "bare loop": bare_loop}
    return systems | ({} if missing else {"CTranslate2": theirs}), missing


@torch.inference_mode()
def bare_search(model: Bare, source: Tensor, beam: int) -> Tensor:
    """Beam search in its simplest form: the ids of the best prefixes, (B, beam, LONGEST + 1)."""
    pad = (source == PAD).repeat_interleave(beam, 0)  # (B * beam, S)
    memory = model.encoder(model.embed(source), src_key_padding_mask=source == PAD)
    memory = memory.repeat_interleave(beam, 0)
    n, device = source.size(0), source.device
    ids = torch.full((n * beam, 1), BOS, device=device)
    scores = torch.full((n, beam), -torch.inf, device=device)
    scores[:, 0] = 0.0
    first = torch.arange(n, device=device)[:, None] * beam  # (B, 1), each source's first row
    for length in range(1, LONGEST + 1):
        future = torch.ones(length, length, dtype=torch.bool, device=device).triu(1)
        states = model.decoder(
            model.embed(ids), memory, tgt_mask=future, tgt_is_causal=True,
            memory_key_padding_mask=pad,
        )  # fmt: skip
        logits = F.linear(states[:, -1], model.table.weight).float()
        total = scores[..., None] + logits.log_softmax(-1).unflatten(0, (n, beam))  # (B, beam, V)
        scores, places = total.flatten(1).topk(beam)
        rows = (first + places // VOCABULARY).flatten()
        ids = torch.cat((ids[rows], (places % VOCABULARY).view(-1, 1)), dim=1)
    return ids.unflatten(0, (n, beam))


def of_ctranslate2(
    plan: Plan, model: Transformer, precision: str, data: Corpus, rows: int
) -> Callable[[int], object]:
    """CTranslate2 with the same weights."""
    library = ctranslate2_model.library()
    both = Vocabularies(Numbers(), Numbers())  # type: ignore[arg-type]
    made = ctranslate2_model.of(model.cpu(), both, precision, torch.device("cpu"))
    model.to(plan.device)
    kind = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}[precision]
    with tempfile.TemporaryDirectory() as folder:
        for name, content in made.files.items():
            (Path(folder) / name).write_bytes(content)
        one = library.Translator(folder, device=plan.device.type, compute_type=kind)
    sources = data.sources(np.arange(len(data)))
    lengths = [int(n) for n in data.source.lengths_of(np.arange(len(data)))]
    texts = [
        [*map(str, ids[: n - 1])] for ids, n in zip(sources.ids.tolist(), lengths, strict=True)
    ]  # it adds the end of sentence itself

    def translate(beam: int) -> object:
        return some(texts, beam)

    def some(which: list[list[str]], beam: int) -> object:
        return one.translate_batch(
            which,
            beam_size=beam,
            max_batch_size=rows,
            max_decoding_length=LONGEST,
            min_decoding_length=LONGEST,
        )

    some(texts[:1], 1)  # it looks for its libraries only now, and they may be missing
    return translate


def resuming(plan: Plan) -> Iterator[str]:
    """Whether a run that was stopped ends with the weights of one that was not."""
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
    plan.figures["resumes"] = float(same)
    yield f"A run stopped after 2 of 4 updates ends with {'the same' if same else 'other'} bits."


def counts(plan: Plan) -> Iterator[str]:
    """Launches and synchronisations, counted on the pretend device: they need no card."""
    if plan.device.type == "cuda":  # the pretend device cannot be next to a card
        yield counted_elsewhere(plan.left)
        return
    yield f"Updates: forward and backward of {launches.N_PAIRS} pairs, 6 + 6 layers, fp32, without"
    yield "the optimizer. Search: of their sources; the model's launches are those of one pass of"
    yield "the encoder, and of the decoder's layers and output in each step. Fused attention is"
    yield "one.\n"
    yield "| update of | launches | times vanilla | waits |\n|---|---|---|---|"
    plain = 0
    for setting in ("vanilla",) if plan.quick else launches.SETTINGS:
        found = launches.update(setting)
        plain = plain or found.n_launches
        ratio = found.n_launches / plain
        yield f"| {setting} | {found.n_launches:,} | {ratio:.2f} | {found.n_synchronisations} |"
    yield "\n| search | steps | launches | times the model's | copies to it | waits |"
    yield "|---|---|---|---|---|---|"
    for setting in ("vanilla",) if plan.quick else ("vanilla", "pascal", "gps", "rel", "gcn"):
        for beam in (1, 4):
            s = launches.searched(setting, beam, 4 if plan.quick else launches.N_PAIRS)
            n, waits = s.counts.n_launches, s.counts.n_synchronisations
            some = f"{n:,} | {s.share:.2f} | {s.counts.to_device:,} | {waits}"
            yield f"| {setting}, beam {beam} | {s.n_steps} | {some} |"


def counted_elsewhere(limit: float) -> str:
    """The counts of a process that sees no card."""
    command = [sys.executable, __file__, "--device", "cpu", "--parts", "Counts"]
    done = subprocess.run(
        command, env={**os.environ, "CUDA_VISIBLE_DEVICES": ""}, capture_output=True, text=True,
        timeout=limit, check=True,
    )  # fmt: skip
    return done.stdout.partition("## Counts\n\n")[2].rstrip()


def bars(plan: Plan) -> Iterator[str]:
    """Whether each bar is met."""
    yield "| bar | found | |\n|---|---|---|"
    base = next(iter(plan.sizes))
    shares = [plan.figures.get(f"{base} {name} share") for name in ("vanilla", "vanilla, compiled")]
    yield verdict("35 % of the matrix rate at base size", best(shares, max), lambda x: x >= 0.35)
    times = [plan.figures.get(f"{base} {n} times") for n in ("vanilla", "vanilla, compiled")]
    loop = plan.figures.get(f"{base} bare, compiled times")
    found = None if loop is None else loop / (best(times, min) or 1.0)
    yield verdict("as fast as the bare loop, compiled", found, lambda x: x >= 1)
    for name in plan.variants:
        found = plan.figures.get(f"{base} {name} times")
        yield verdict(f"{name}: 1.2 times vanilla's time", found, lambda x: x <= 1.2)
    for name, what in (("tests", "tests pass"), ("resumes", "resumes with the same bits")):
        yield verdict(what, plan.figures.get(name), lambda x: x == 1)


def best(found: Sequence[float | None], which: Callable[[list[float]], float]) -> float | None:
    """The best of the figures that were measured; None if none was."""
    known = [x for x in found if x is not None]
    return which(known) if known else None


def verdict(bar: str, found: float | None, is_met: Callable[[float], bool]) -> str:
    """A line of the table."""
    if found is None:
        return f"| {bar} | | not measured |"
    return f"| {bar} | {found:.2f} | {'met' if is_met(found) else 'not met'} |"


PARTS: dict[str, Part] = {
    "Machine": machine,
    "Tests": tests,
    "Matrix products": matrices,
    "Training": training,
    "Kernels": kernels,
    "Waiting for batches": loader,
    "Translation": translation,
    "Resuming": resuming,
    "Counts": counts,
    "Bars": bars,
}
# For each part, the share of the time that is kept for the parts after it.
AFTERWARDS = {
    "Tests": 0.66,
    "Matrix products": 0.6,
    "Training": 0.4,
    "Kernels": 0.35,
    "Waiting for batches": 0.3,
    "Translation": 0.12,
    "Resuming": 0.1,
}
NO_CARD = ("Machine", "Counts")
BEGINNING = """# On a GPU

Written by `make gpu-report` (benchmarks/gpu_report.py), which measures in ten minutes at most, once
everything is installed.
Sentences are random, of 10 to 24 pieces with trees; an update is reckoned as 6 operations for each
weight and token, without attention itself. The bare loop is torch's nn.Transformer with Adam,
also compiled. Systems take turns with vanilla, and ratios are medians of those within a round. The
bars, whose verdicts are at the end: 35 % of the matrix rate at base size, no less than the compiled
bare loop, and variants at most 1.2 times vanilla's time for a target token.
"""
WITHOUT = """
**No card could be had so far: nothing was timed on one.** What follows is counted, on the pretend
device of the tests (tests/support/pretend.py): operations that a GPU would start (launches), and
how often the host would wait for it. The bars need a card.
"""
QUICK = """
In miniature, to see that all parts work: the figures mean nothing.
"""


def report(plan: Plan, output: Path | None, names: tuple[str, ...], beginning: str) -> str:
    """Runs the parts, each as long as it may; the file always has what is done so far."""
    written = beginning

    def write(text: str) -> None:
        nonlocal written
        written += text
        if output is not None:
            output.write_text(written)

    for name in names:
        print(f"{name} ({plan.left:.0f} s left)", file=sys.stderr, flush=True)
        write(f"\n## {name}\n\n")
        own = plan.left - plan.limit * AFTERWARDS.get(name, 0.0)
        try:
            with ends_after(10.0 if name == "Bars" else own):
                for line in PARTS[name](plan):
                    write(line + "\n")
        except TimeUp:
            write("\nThe time for this was up.\n")
        except Exception as error:  # the report goes on with the next part
            write(f"\nFailed: {in_short(error)}\n")
        plan.free()
    return written


def unused_card() -> str:
    """The cards that the driver knows but torch cannot compute on, and why; or ""."""
    try:
        done = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=False)
    except OSError:
        return ""
    if done.returncode or not done.stdout.strip():
        return ""
    built = f"CUDA {torch.version.cuda}" if torch.version.cuda else "CPUs alone"
    return f"{done.stdout.strip()}; torch {torch.__version__} is built for {built}"


def main() -> None:
    """Writes the report to a file or to stdout."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--output", type=Path, help="a file; else stdout")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--quick", action="store_true", help="in miniature: figures mean nothing")
    parser.add_argument("--limit", type=float, default=600.0, help="seconds")
    parser.add_argument("--sizes", default="base,big", help="presets to train")
    parser.add_argument("--parts", help="headings of the report, with commas; default: all")
    options = parser.parse_args()
    device = devices.choose(options.device)
    if options.device == "auto" and device.type != "cuda" and (card := unused_card()):
        sys.exit(
            f"gpu_report: torch cannot use the card here ({card}): install another torch or driver"
        )
    try:
        plan = Plan(str(device), options.quick, options.limit, options.sizes.split(","))
    except SynmtError as error:
        parser.error(f"--sizes: {error}")
    has_card = device.type == "cuda"
    names = tuple(PARTS) if has_card or options.quick else NO_CARD
    if options.parts:
        names = tuple(options.parts.split(","))
        if unknown := [name for name in names if name not in PARTS]:
            parser.error(f"--parts: no {unknown[0]!r}; there are {', '.join(PARTS)}")
    about = QUICK if options.quick else "" if has_card else WITHOUT
    written = report(plan, options.output, names, BEGINNING + about)
    if options.output is None:
        print(written, end="")


if __name__ == "__main__":
    main()
