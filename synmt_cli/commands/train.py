"""synmt train: records to a run directory."""

from __future__ import annotations

import contextlib
import dataclasses
import re
import sys
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from synmt_cli import console, signals
from synmt_cli.commands import Manual, completion, options
from synmt_cli.commands.options import option
from synmt_cli.core.distributed.launch import end_with_launcher, launch, without
from synmt_cli.core.options import SEED
from synmt_cli.errors import Stopped, UsageError, quoted

if TYPE_CHECKING:
    from synmt_cli.core.distributed.ranks import Ranks
    from synmt_cli.core.run.config import Config
    from synmt_cli.core.training.events import Event, Validated
    from synmt_cli.core.training.session import Session

MANUAL = Manual(
    input="JSONL records with pieces and target pieces: `synmt featurize --spm MODEL --tgt FILE`. "
    "Records that are not `ok` are left out and counted.",
    output=(
        "A run directory: config.toml, spm.model, labels.json, model.safetensors (the best on "
        "dev), checkpoints/step-N/, metrics.jsonl, env.json, cache/. Only the figures of "
        "--dry-run go to stdout."
    ),
    memory="The model four times, and a batch; not the records (with --dry-run, their numbers).",
    examples=(
        "synmt train --preset tiny --train train.jsonl --dev dev.jsonl --run runs/v --max-steps 4",
        "synmt train --variant pascal --preset tiny --set pascal.heads=1 --train train.jsonl "
        "--dev dev.jsonl --run runs/p --max-steps 4",
        "synmt train --variant gps+dep --preset tiny --set gps.layer=all --train train.jsonl "
        "--run runs/g --max-steps 4",
        "synmt train --variant gcn --preset tiny --set training.prefix_share=0.1 "
        "--train de.trees.jsonl --run runs/gcn --max-steps 2",
        "synmt train --preset paper-pascal-nc11-en-de --train train.jsonl --dry-run",
    ),
    see_also=("featurize", "variants", "multitask", "translate"),
)
METRICS = {"bleu": "BLEU", "accuracy": "accuracy"}
UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}


def train(
    train: Annotated[list[str], option("--train FILE", "Training records; repeatable.")],
    dev: Annotated[str, option("--dev FILE", "Validation records; none means no validation.")] = "",
    run: Annotated[str, option("--run DIR", "Run directory, created or resumed.")] = "",
    variant: Annotated[
        str,
        option(
            "--variant NAME[+NAME]",
            "Model variant; names combine.",
            autocompletion=completion.variant,
        ),
    ] = "",
    preset: Annotated[
        str,
        option(
            "--preset NAME", "Sizes and settings to start from.", autocompletion=completion.preset
        ),
    ] = "",
    config: Annotated[
        str, option("--config TOML", "File of settings that override the preset.")
    ] = "",
    settings: Annotated[
        list[str] | None,
        option(
            "--set KEY=VALUE",
            "One setting, such as pascal.heads=2; repeatable.",
            autocompletion=completion.setting,
        ),
    ] = None,
    spm: Annotated[
        str,
        option("--spm MODEL", "Vocabulary; the default is found next to the records by digest."),
    ] = "",
    tgt_spm: Annotated[
        str, option("--tgt-spm MODEL", "Vocabulary of the target, if it has its own.")
    ] = "",
    parser: Annotated[str, option("--parser MODEL", "Parser for translate to use on text.")] = "",
    max_steps: Annotated[int | None, option("--max-steps N", "Updates in all.", min=1)] = None,
    time_limit: Annotated[
        str, option("--time-limit TIME", "Save and exit 75 after 90s, 30m, 2h.")
    ] = "",
    seed: Annotated[
        int | None,
        option("--seed N", "Seed of weights, order and dropout.", str(SEED), min=0),
    ] = None,
    device: options.Device = "auto",
    precision: Annotated[
        str | None,
        option(
            "--precision NAME",
            "auto (bf16 on a GPU), fp32 or bf16.",
            autocompletion=completion.precision,
        ),
    ] = None,
    threads: options.Threads = 0,
    num_workers: Annotated[
        int,
        option(
            "--num-workers N",
            "Processes that turn records into numbers at the first start; 0 uses every core.",
            min=0,
        ),
    ] = 1,
    nproc: Annotated[int, option("--nproc N", "Processes that train, on this machine.", min=1)] = 1,
    dry_run: Annotated[
        bool, option("--dry-run", "Print parameters, updates and memory, and exit.")
    ] = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> int:
    """Train a model, or resume its training.

    The run directory holds everything that `synmt translate` needs. The same command again
    resumes where the run stopped, bit for bit as if it had not stopped (on a CPU with the same
    number of threads); another configuration in the same directory is refused with the option
    that differs. SIGINT and SIGTERM finish the update, save, and exit with 75; a second one ends
    at once. A loss that is not a number ends the run and names its step; saved files stay whole.

    Records need not fit into memory: the first start turns them into numbers in cache/, with
    --num-workers processes. More than a million pairs are shuffled in windows of blocks from the
    whole corpus.

    --nproc 2 trains with two processes that share each batch, and torchrun does so over
    machines: torchrun --nnodes 2 --nproc-per-node 4 ... -m -- synmt_cli train ... (the -- keeps
    torchrun from reading --run). The run directory and the records must be on a disk that all
    of them see. The same batches give the same losses, up to rounding, with any number of
    processes; with the same number a run resumes bit for bit. If one process ends, all do.
    --nproc connects over loopback alone. torchrun listens on every interface, and whoever reaches
    its rendezvous port can run code as you: use it in a network that you trust (docs/scaling.md).
    --set training.shard=true: each of N processes keeps 1/N of the layers' weights, gradients and
    moments, for a model too large for one card; with one process it changes nothing, and bitran,
    parent and gcn refuse it.

    Settings come from the preset, then --config, then --set and the other options. A setting
    is `section.key=value`, where the section is model, training, or a variant's name:
    model.norm=pre, training.batch_tokens=8192, pascal.variance=4. `synmt variants` lists the
    variants and their options. Names joined by + are combined.

    Presets are tiny, small, base, and rows of the papers' tables. CORPUS is nc11-en-de,
    nc11-de-en, wmt18-en-tr, wmt16-en-de, wmt17-en-de or wat-en-ja.

    paper-{pascal,vanilla,tags,sisa,multitask}-CORPUS: Bugliarello and Okazaki (2020), Tables 2-4.
    paper-gps-CORPUS: Xie et al. (2021), Table 2; the corpora of nc11, wmt16-en-de, wmt17-en-de.
    paper-structural-1 to -9, paper-structural-big{,-structural,-relative,-both}: Wang et al.
    (2019), Tables 1 and 2. paper-dep-{abs,rel,dep,both}, paper-dep-ablation-{kv,k,v,none}:
    Omote et al. (2019), Tables 2 and 3; translate with --beam 1 as they did.
    paper-trees-{vanilla,bitran,linearized,parent,gcn,gcn-labels,gcn-gates} and
    paper-trees-large-{vanilla,parent}: Choshen and Abend (2021), Tables 1 and 4-9.

    linearized, parent and gcn learn to write transitions, which build a tree with its words:
    their records are those of `featurize --tgt-conllu FILE`, and their vocabulary has the
    symbols that `linearize --format symbols` writes. bitran, parent and gcn reread the whole prefix
    for each token, so an update costs the decoder more by a factor of about half the target's
    length; training.prefix_share=0.25 trains on a random quarter of the prefixes, which count
    four times, so that the gradient is the same on average. training.transition_weight and
    training.transition_smoothing say what arcs weigh in the loss, and how their labels are
    smoothed. Batches count pieces, not arcs, so that models with and without trees see the same
    sentences in an update. On dev perplexity is shown for words and arcs apart, and metrics.jsonl
    has their nats per token and per sentence, and the percentage guessed right; with metric=bleu
    it also counts the trees that had to be closed (see translate).
    """
    limit = seconds(time_limit)
    if not run and not dry_run:
        raise UsageError("--run DIR is missing (or --dry-run)")
    flags = {"max_steps": max_steps, "seed": seed, "precision": precision}
    resolved = resolve(variant, preset, config, settings or (), flags)  # refused once, not by each
    if nproc > 1 and not dry_run:
        return launch(without("--nproc", sys.argv[1:]), nproc)
    end_with_launcher()
    with signals.requested() as request:
        from synmt_cli.core.distributed import ranks
        from synmt_cli.core.run.device import choose, set_threads
        from synmt_cli.core.training.session import Inputs, open_session

        set_threads(threads)
        inputs = Inputs(train, dev, spm, tgt_spm, parser, num_workers)
        open_it = partial(open_session, resolved, inputs, device, request)
        if dry_run:
            with console.progress("reading", unit="records") as bar:
                session = open_it(watch=bar.advance)
            show_estimate(session)
            return 0
        with ranks.joined(ranks.local_device(choose(device))) as together:
            return run_training(open_it, Path(run), request, limit, together)


def run_training(
    open_it: Callable[..., Session],
    path: Path,
    request: signals.Request,
    limit: float | None,
    ranks: Ranks,
) -> int:
    """Trains; the first of several processes writes and reports. Returns the exit status."""
    from synmt_cli.core.run.directory import Run
    from synmt_cli.core.training import run_folder

    place = Run(path)
    with run_folder.locked(path) if ranks.is_first else contextlib.nullcontext():
        with console.progress("reading", unit="records") as bar:
            session = open_it(place.cache, ranks, bar.advance)
        if ranks.is_first:
            report_left_out(session)
        trainer = session.trainer(place, ranks)
        is_resumed, first_step = trainer.resume(), trainer.state.step
        events = trainer.events(request, limit)
        if not ranks.is_first:
            *_, end = events
            return 0 if getattr(end, "finished", False) else Stopped.exit_code
        if is_resumed:
            console.info(f"resuming {path} at step {first_step:,}")
        follow(events, place, first_step, session.config)
    return 0


def resolve(
    variant: str, preset: str, config: str, settings: Iterable[str], flags: dict[str, Any]
) -> Config:
    """Joins the layers; flags stand for training.NAME where they are given."""
    from synmt_cli.core.run import config as configs

    layers = [configs.from_file(config)] if config else []
    for layer in layers:
        preset = preset or layer.text_of("preset")
    layers += configs.from_settings(list(settings))
    for name, value in flags.items():
        if value is not None:
            tables = {"training": {name: value}}
            layers.append(configs.SettingsLayer(tables, f"--{name.replace('_', '-')}"))
    return configs.resolve(variant or None, preset or "base", layers)


def seconds(text: str) -> float | None:
    """`90`, `90s`, `30m`, `2h`, `1d` in seconds; None for "". Raises UsageError.

    >>> seconds("1.5h")
    5400.0
    """
    if not text:
        return None
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)([smhd]?)", text)
    if not match or not float(match[1]):
        problem = "expected a time above 0, such as 90s, 30m or 2h"
        raise UsageError(f"--time-limit {quoted(text)}: {problem}")
    return float(match[1]) * UNITS[match[2]]


def report_left_out(session: Session) -> None:
    """Says how many pairs are trained on, and how many records are left out."""
    for name, corpus in (("training", session.train), ("dev", session.dev)):
        if corpus is None:
            continue
        console.info(f"{len(corpus):,} {name} pairs, {corpus.n_tokens:,} target tokens")
        for reason, n in sorted(corpus.left_out.items()):
            console.warn(f"{n:,} {name} records left out: {reason}")


def show_estimate(session: Session) -> None:
    """Prints the figures of --dry-run."""
    from synmt_cli.core.run.building import build
    from synmt_cli.core.training.memory_estimate import estimate

    report_left_out(session)
    model = build(session.config, session.vocabularies, len(session.train.encoding.labels))
    figures = estimate(model, session.train, session.config.training)
    memory = figures.pop("memory")
    for name, value in figures.items():
        typer.echo(f"{name}\t{value}")
    typer.echo(f"memory (about)\t{memory / 2**20:.0f} MiB")


def follow(events: Iterable[Event], place: Any, step: int, config: Config) -> None:
    """Shows and records every event. Raises Stopped where the run can be resumed."""
    from synmt_cli.core.training.events import Ended, Report, Restored, Saved, Validated
    from synmt_cli.core.training.run_folder import Metrics

    metrics = Metrics(place, step)
    with console.progress("training", config.training.max_steps, "steps") as bar:
        bar.done = step
        for event in events:
            match event:
                case Report():
                    rate = f"{event.tokens_per_second:,.0f} tokens/s"
                    others = "".join(f", {n} {loss:.3f}" for n, loss in event.losses.items())
                    note = f"epoch {event.epoch}, loss {event.loss:.3f}{others}, {rate}"
                    bar.advance(event.step - bar.done, note)
                    metrics.add({"event": "train", **dataclasses.asdict(event)})
                case Validated():
                    console.info(validation(event))
                    fields = dataclasses.asdict(event)
                    known = {name: value for name, value in fields.items() if value is not None}
                    metrics.add({"event": "dev", **known})
                case Saved():
                    console.debug(f"saved step {event.step:,}")
                case Restored():
                    console.warn(
                        f"model.safetensors was missing: written again from step {event.step:,}"
                    )
                case Ended():
                    if not event.finished:
                        raise Stopped(
                            f"stopped at step {event.step:,} ({event.reason}) and saved; "
                            "the same command resumes"
                        )
                    console.info(f"done at step {event.step:,} ({event.reason}): {place.folder}")


def validation(event: Validated) -> str:
    """The line that shows a validation."""
    figures = f"perplexity {event.perplexity:.2f}"
    if event.words and event.arcs:
        figures += f" (words {event.words.perplexity:.2f}, arcs {event.arcs.perplexity:.2f})"
    if event.metric != "loss":
        figures += f", {METRICS[event.metric]} {event.value:.2f}"
    if event.closed is not None:
        figures += f" ({event.closed:,} trees closed)"
    better = ", best" if event.best else ""
    return f"step {event.step:,} (epoch {event.epoch}): dev {figures}{better}"
