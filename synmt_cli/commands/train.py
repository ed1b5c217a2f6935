"""synmt train: records to a run directory."""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from synmt_cli import console, signals
from synmt_cli.commands import (
    Manual,
    completion,
    options,
    train_estimate,
    train_notes,
    train_progress,
)
from synmt_cli.commands.options import option
from synmt_cli.core.distributed.launch import (
    PeerLost,
    end_with_launcher,
    errors_file,
    is_launched,
    is_one_of_several,
    launch,
    refuse_one_card,
    without,
)
from synmt_cli.core.options import SEED
from synmt_cli.core.run.presets import AUTO
from synmt_cli.core.variants import own_file
from synmt_cli.errors import Stopped, UsageError, quoted
from synmt_cli.io import memory

if TYPE_CHECKING:
    from synmt_cli.core.distributed.ranks import Ranks
    from synmt_cli.core.run.config import Choice, Config
    from synmt_cli.core.training.loop import Trainer
    from synmt_cli.core.training.pretrained import Pretrained
    from synmt_cli.core.training.session import Session

MANUAL = Manual(
    input="JSONL records with pieces and target pieces: `synmt featurize --spm MODEL --tgt FILE`. "
    "Records that are not `ok` are left out and counted.",
    output=(
        "A run directory: config.toml, spm.model, parser.udpipe (if --parser names one), "
        "labels.json, variants.py (if the variant is your own), model.safetensors (the best on "
        "dev), checkpoints/step-N/, metrics.jsonl, env.json, cache/. Only the figures of --dry-run "
        "go to stdout."
    ),
    memory="The model four times, and a batch; not the records (with --dry-run, their numbers), "
    "but with gps each different path of labels.",
    examples=(
        "synmt train --preset tiny --train train.jsonl --dev dev.jsonl --run runs/v --max-steps 4",
        "synmt train --variant pascal --preset tiny --set pascal.heads=1 --train train.jsonl "
        "--dev dev.jsonl --run runs/p --max-steps 4",
        "synmt train --variant gps+dep --preset tiny --set gps.layer=all --train train.jsonl "
        "--run runs/g --max-steps 4",
        "synmt train --variant gcn --preset tiny --set training.prefix_share=0.1 "
        "--train de.trees.jsonl --run runs/gcn --max-steps 2",
        "synmt train --pretrained runs/base --set lr=0.001 --set warmup=50 --train train.jsonl "
        "--dev dev.jsonl --run runs/fine --max-steps 4",
        "synmt train --preset paper-pascal-nc11-en-de --set precision=fp32 --train train.jsonl "
        "--dry-run",
    ),
    see_also=(
        *("featurize", "variants", "settings", "config", "multitask", "translate", "average"),
    ),
)
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
            shown_default="vanilla",
            autocompletion=completion.variant,
        ),
    ] = "",
    preset: Annotated[
        str,
        option(
            "--preset NAME",
            "Sizes and settings to start from.",
            shown_default="auto",
            autocompletion=completion.preset,
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
        option(
            "--spm MODEL",
            "Vocabulary; by default that of the records, found among *.model and *.spm files next"
            " to them or here.",
        ),
    ] = "",
    tgt_spm: Annotated[
        str, option("--tgt-spm MODEL", "Vocabulary of the target, if it has its own.")
    ] = "",
    parser: Annotated[
        str, option("--parser MODEL", "Parser for translate to use on text; the run keeps a copy.")
    ] = "",
    parser_link: Annotated[
        bool, option("--parser-link", "Keep the parser's path in the run, not a copy.")
    ] = False,
    pretrained: Annotated[
        str, option("--pretrained RUN", "Trained model whose weights the training begins with.")
    ] = "",
    checkpoint: Annotated[
        str,
        option(
            "--checkpoint NAME",
            "best, last or step-N of --pretrained.",
            autocompletion=completion.checkpoint,
        ),
    ] = "best",
    max_steps: Annotated[int | None, option("--max-steps N", "Updates in all.", min=1)] = None,
    time_limit: Annotated[
        str, option("--time-limit TIME", "Save and exit with 75 after this time: 90s, 30m, 2h, 1d.")
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
            "auto, fp32, bf16 or fp16.",
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
    tensorboard: Annotated[
        str, option("--tensorboard DIR", "Also write the metrics for TensorBoard.")
    ] = "",
    dry_run: Annotated[
        bool,
        option(
            "--dry-run",
            "Make a few updates, print sizes, memory and time, write nothing, and exit.",
        ),
    ] = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> int:
    """Train a model, or resume its training.

    The run directory holds everything that `synmt translate` needs, works from any folder, and may
    be moved. The same command again resumes where the run stopped, bit for bit as if it had not
    stopped (on a CPU with the same number of threads). Other settings in the same directory are
    refused, and the first that differs is named; only max_steps, max_epochs, patience,
    validate_every, save_every, keep, micro_tokens, shard and compile of training may change.
    SIGINT, SIGTERM and SIGHUP (a closed terminal, unless under nohup) finish the update, save, and
    exit with 75; a second signal ends at once. --time-limit, too, finishes the update, saves, and
    exits with 75. It counts from the first update: leave time for reading and for one validation. A
    loss that is not a number ends the run with 78 and names its step; saved files stay whole.

    Records need not fit into memory: the first start turns them into numbers in cache/, with
    --num-workers processes. More than a million pairs are shuffled in windows of blocks from the
    whole corpus.

    --nproc 2 trains with two processes that share the batches of each update, and the pairs of
    batches that are left over; torchrun does so over machines: torchrun --nnodes 2 --nproc-per-node
    4 ... -m -- synmt_cli train ... (the -- keeps torchrun from reading --run). The run directory
    and the records must be on a disk that all of them see. The same batches give the same losses,
    up to rounding and to dropout, which each process draws for itself, with any number of
    processes; with the same number a run on CPUs resumes bit for bit. If one ends, all do. --nproc
    connects over loopback alone. torchrun listens on every interface, and whoever reaches its
    rendezvous port can run code as you: use it in a network that you trust (docs/scaling.md). --set
    training.shard=true: each of N processes keeps 1/N of the layers' weights, gradients and
    moments, for a model too large for one GPU; with one process it changes nothing, and bitran,
    parent and gcn refuse it. --set training.compile=true: torch compiles the layers. This is meant
    for GPUs, but has not been tried on one yet; on a CPU training gets a tenth slower. Compiling
    takes a minute or two at the start and needs a C++ compiler (on a GPU Triton, which comes with
    torch, and gcc). Compiled code is cached in $TORCHINDUCTOR_CACHE_DIR, by default a folder among
    the temporary files. Weights and files are the same, losses up to rounding; on a GPU dropout
    masks differ. A run may go on with or without it. It cannot be combined with training.shard.

    Settings come from the preset, then --config, then --set and the other options. A setting is
    `section.key=value`, where the section is model, training, or a variant's name (without one,
    model or training): model.norm=pre, training.batch_tokens=8192, pascal.variance=4. `synmt
    settings` lists all, with their defaults, bounds and values in the presets; `synmt variants`
    lists the variants. Names joined by + are combined.

    --pretrained RUN begins with the weights of a trained model instead of random ones: to adapt it
    to other text (fine-tuning), to learn from better trees, or to add a variant to a plain model.
    RUN is a run directory or an average; --checkpoint selects a checkpoint other than the best. The
    new model has RUN's vocabulary, sizes and variant. --variant may add to the variant; parameters
    that this brings are random, and counted. Other differences in the model are refused (78),
    except for dropout. The preset is RUN's by default; the [model] of another is ignored. Only
    weights are taken: updates count from 0, and optimizer, order of the data and learning rate
    start anew. A preset's learning rate is for random weights. With a lower one the model keeps
    more of what it knew; with a short warm-up it learns the new records sooner: try a third of the
    preset's, as in --set lr=0.001 --set warmup=50 --set validate_every=50 --set patience=5. Labels
    that RUN does not know get vectors of their own; all others keep theirs. config.toml records RUN
    and the SHA-256 of its weights. Once the new run has a checkpoint, it resumes without RUN, also
    if --pretrained is left out. docs/pretrained.md has an example with figures.

    --tensorboard DIR gets the figures of metrics.jsonl, from the first update on, also for a
    resumed run. Give each run its own folder, and point tensorboard --logdir at their parent. It
    needs tensorboardX: pip install 'synmt-cli[tensorboard]'.

    --preset auto, the default, is tiny for fewer than 1,000,000 target tokens (pieces), or fewer
    than 2,000,000 without a GPU; small below 5,000,000, and without a GPU above that, too;
    otherwise base. tiny and small end after 100 epochs at most. --precision auto is bf16 on a GPU
    that supports it, and on a CPU that does if a few timed batches are faster (runs under 1,000
    updates are not timed), else fp32. A run keeps what it began with.

    The best model is that of the validation with the best training.metric, BLEU by default; if
    several are exactly equal, the one with the lowest perplexity.

    metrics.jsonl has a line for every 50 updates ("event": "train") with means since the last such
    line: loss, and nll without label smoothing, which the progress shows, in nats per target token;
    gradient_norm before clipping; and tokens_per_second. It has another one for each validation
    ("event": "dev"): nll and perplexity, metric and its value, whether it is the best, and the
    figures of all tokens. seconds is the time that the run has taken so far.

    Presets are tiny, small, base, and the following rows of the papers' tables. CORPUS in their
    names is nc11-en-de, nc11-de-en, wmt18-en-tr, wmt16-en-de, wmt17-en-de or wat-en-ja.

    paper-{pascal,vanilla,tags,sisa,multitask}-CORPUS: Bugliarello and Okazaki (2020), Tables 2-4.
    paper-pascal-layer-{2,...,6}-CORPUS, paper-pascal-variance-{parent-only,4,9,16,25}-CORPUS: its
    Table 7, on the corpora of nc11; layer 1 and variance 1 are those of Table 2. paper-gps-CORPUS:
    Xie et al. (2021), Table 2; the corpora of nc11, wmt16-en-de, wmt17-en-de.
    paper-gps-layer-{1,...,5,all}: its Table 3, on nc11-de-en; layer 0 is that of Table 2. These
    papers print no settings for the mixed encoder (Currey and Heafield, 2019). paper-structural-1
    to -9, paper-structural-big{,-structural,-relative,-both}: Wang et al. (2019), Tables 1 and 2.
    paper-dep-{abs,rel,dep,both}, paper-dep-ablation-{kv,k,v,none}: Omote et al. (2019), Tables 2
    and 3; translate with --beam 1 as they did.
    paper-trees-{vanilla,bitran,linearized,parent,gcn,gcn-labels,gcn-gates} and
    paper-trees-large-{vanilla,parent}: Choshen and Abend (2021), Tables 1 and 4-9.

    linearized, parent and gcn learn to write transitions, which build a tree with its words: their
    records are those of `featurize --tgt-conllu FILE`, and their vocabulary has the symbols that
    `linearize --format symbols` writes. bitran, parent and gcn reread the whole prefix for each
    token, so for a target of n tokens the decoder's share of an update takes about n/2 times as
    long. training.prefix_share=0.25 trains on a random quarter of the prefixes and weights them by
    four. That leaves the expected gradient unchanged but makes it noisier: in our one trial, with
    tiny, such an update brought about a quarter of the progress, at a quarter of the cost. Whether
    it saves time with large batches was not tried. training.transition_weight and
    training.transition_smoothing are the weight of arcs in the loss and their label smoothing.
    Batches count pieces, not arcs, so that models with and without trees see the same sentences in
    an update. On dev, perplexity is shown separately for words and arcs, and metrics.jsonl has
    their nats per token and per sentence, and their accuracy; with metric=bleu it also counts the
    trees that had to be closed (see translate).
    """
    console.share_errors(errors_file())
    limit = seconds(time_limit)
    if not run and not dry_run:
        raise UsageError("--run DIR is missing (or --dry-run)")
    if run:
        options.refuse_no_folder("--run", run)
    options.refuse(
        {
            "--parser-link is for --parser": parser_link and not parser,
            "--checkpoint is for --pretrained": checkpoint != "best" and not pretrained,
            "--nproc starts processes, and torchrun has started them already: leave it out": (
                nproc > 1 and is_one_of_several()
            ),
        }
    )
    flags = {"max_steps": max_steps, "seed": seed, "precision": precision}
    choice = resolve(variant, preset, config, settings or (), flags)
    if tensorboard:
        from synmt_cli.core.training.saving.tensorboard import require

        require()
    memory.bound_caches(memory.KERNELS_IN_TRAINING)
    first_model = opened_pretrained(pretrained, checkpoint, run)
    choice = over(choice, first_model)
    resolved = choice.provisional()  # refused here once, not by each process
    if not is_launched():
        try_variants(resolved)
    if nproc > 1 and not dry_run:
        refuse_one_card(device, nproc)
        return launch(without("--nproc", sys.argv[1:]), nproc)
    end_with_launcher()
    # A dry run has nothing to save: a signal ends it at once.
    listening = (
        contextlib.nullcontext(signals.Request())
        if dry_run
        else signals.requested(is_one_of_several=is_one_of_several())
    )
    with listening as request:
        from synmt_cli.core.distributed import ranks
        from synmt_cli.core.run.device import set_threads
        from synmt_cli.core.training.session import Inputs, open_session

        set_threads(threads)
        inputs = Inputs(train, dev, spm, tgt_spm, parser, parser_link, num_workers, first_model)
        open_it = partial(open_session, resolved, inputs, device, request)
        if dry_run:
            if nproc > 1:
                console.warn("these figures are for one process: --dry-run does not count --nproc")
            with console.progress("reading", unit="records") as bar:
                session = open_it(watch=bar.advance)
            train_estimate.show(session, choice, run)
            return 0
        joined = ranks.joined(ranks.own_device(device), request)
        with left_to_launcher(), joined as together:
            return run_training(open_it, choice, Path(run), tensorboard, request, limit, together)


@contextlib.contextmanager
def left_to_launcher() -> Iterator[None]:
    """Ends silently if another process is gone and there is a launcher to say so."""
    try:
        yield
    except PeerLost as error:
        if errors_file() is None:
            raise
        console.debug(f"{error} ({error.__cause__})")
        raise SystemExit(error.exit_code) from error


def opened_pretrained(name: str, checkpoint: str, folder: str) -> Pretrained | None:
    """The model that the run in `folder` begins with, or began with, if any. Raises SynmtError."""
    from synmt_cli.core.run.directory import Run
    from synmt_cli.core.training.saving.run_folder import begun_with

    run = Run(Path(folder)) if folder else None
    if not name and not (run and "pretrained" in (begun_with(run) or {})):
        return None
    from synmt_cli.core.training import pretrained  # loads torch

    return pretrained.find(name, checkpoint, run)


def over(choice: Choice, pretrained: Pretrained | None) -> Choice:
    """The choice, on top of the architecture of the model that a run begins with, if any.

    Raises SynmtError if the two do not fit.
    """
    if pretrained is None:
        return choice
    choice = pretrained.choice(choice)
    pretrained.refuse_another(choice.provisional())
    return choice


def run_training(
    open_it: Callable[..., Session],
    choice: Choice,
    path: Path,
    tensorboard: str,
    request: signals.Request,
    limit: float | None,
    ranks: Ranks,
) -> int:
    """Trains; the first of several processes writes and reports. Returns the exit status."""
    from synmt_cli.core.run.directory import Run
    from synmt_cli.core.training.saving import run_folder
    from synmt_cli.core.training.saving.tensorboard import refuse_unwritable

    if not ranks.is_first:
        console.set_level(console.QUIET)
    place = Run(path)
    lock = run_folder.locked(path) if ranks.is_first else contextlib.nullcontext(lambda: None)
    with lock as refuse_moved:
        if tensorboard and ranks.is_first:
            refuse_unwritable(Path(tensorboard))
        with console.progress("reading", unit="records") as bar:
            session = open_it(place, ranks, bar.advance)
        session = train_notes.settled(session, choice, place)
        trainer = session.trainer(place, ranks, request)
        trainer.guard = refuse_moved
        is_resumed, first_step = trainer.resume(), trainer.state.step
        events = trainer.events(request, limit)
        if not ranks.is_first:
            (end,) = deque(events, maxlen=1)
            return 0 if getattr(end, "finished", False) else Stopped.exit_code
        if is_resumed:
            console.info(f"resuming {path} at step {first_step:,}")
            if passed := passed_limit(trainer):
                console.warn(
                    f"{path} is past training.{passed}: no update is made, and it does "
                    "not compare with runs that end there"
                )
        length = train_notes.announce(session, trainer, is_new=not is_resumed)
        train_progress.follow(trainer, events, place, tensorboard, length)
    return 0


def passed_limit(trainer: Trainer) -> str:
    """The limit, name and value, that a resumed run had already passed, or ""."""
    state, settings = trainer.state, trainer.settings
    if state.step > settings.max_steps:
        return f"max_steps = {settings.max_steps}"
    if 0 < settings.max_epochs <= state.epoch:  # epochs before that of the last update
        return f"max_epochs = {settings.max_epochs}"
    return ""


def resolve(
    variant: str, preset: str, config: str, settings: Iterable[str], flags: dict[str, Any]
) -> Choice:
    """Joins the layers of settings. A flag that is given sets training.NAME."""
    from synmt_cli.core.run import config as configs

    layers = [configs.from_file(config)] if config else []
    for layer in layers:
        preset = preset or layer.text_of("preset")
    layers += configs.from_settings(list(settings))
    for name, value in flags.items():
        if value is not None:
            tables = {"training": {name: value}}
            layers.append(configs.SettingsLayer(tables, f"--{name.replace('_', '-')}"))
    return configs.Choice(variant or None, preset or AUTO, layers)


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


def try_variants(config: Config) -> None:
    """Tries the variants in the user's own file. Raises ConfigError; says once what is doubtful.

    The records have not been read yet, so the sizes do not depend on their number.
    """
    if not own_file.path():
        return
    from synmt_cli.core.training import trial  # loads torch

    for line in trial.of(config):
        if os.environ.get("RANK", "0") == "0":
            console.warn(line)
