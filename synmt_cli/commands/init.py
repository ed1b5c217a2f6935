"""`synmt init`: a folder that compares models on one's own text."""

import os
import shlex
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from synmt_cli import console
from synmt_cli.commands import Manual, completion, options
from synmt_cli.commands.options import argument, option
from synmt_cli.errors import CreateError, UsageError, counted

if TYPE_CHECKING:
    from synmt_cli.core.experiment.design import Design
    from synmt_cli.core.experiment.folder import Texts, TextSizes
    from synmt_cli.core.experiment.pretrained import PretrainedModels

MANUAL = Manual(
    input="Parallel text, one segment a line, compressed or not; UDPipe models.",
    output="A folder with a Makefile, config.toml, and links to the input.",
    memory="One line, a parser, and with --src-trees or --tgt-trees the trees of a file.",
    examples=(
        "synmt init experiment --src train.en --tgt train.de --parser en.udpipe"
        " --variants rel,dep+rel && make -n -C experiment",
        "synmt init plain --src train.en --tgt train.de --dev-src dev.en --dev-tgt dev.de"
        " --test-src test.en --test-tgt test.de --variants vanilla,rel --seeds 5",
    ),
    see_also=("split", "train", "score"),
)
Given = str | None
ENOUGH_SEEDS = 3
FEW = 500  # test pairs; with that many, ours showed no difference below 0.8 BLEU
FEW_TO_TRAIN = 10_000  # pairs; with 5,000, ours reached 7 BLEU (docs/results/europarl-5000)


def init(
    experiment: Annotated[str, argument("EXPERIMENT", "The folder to write.")],
    src: Annotated[str, option("--src FILE", "Source side of the text to train on.")],
    tgt: Annotated[str, option("--tgt FILE", "Its target side.")],
    dev_src: Annotated[Given, option("--dev-src FILE", "Source side of the dev set.")] = None,
    dev_tgt: Annotated[Given, option("--dev-tgt FILE", "Its target side.")] = None,
    test_src: Annotated[Given, option("--test-src FILE", "Source side of the test set.")] = None,
    test_tgt: Annotated[Given, option("--test-tgt FILE", "Its target side.")] = None,
    parser: Annotated[
        Given, option("--parser MODEL", "UDPipe model of the source language.")
    ] = None,
    tgt_parser: Annotated[
        Given, option("--tgt-parser MODEL", "UDPipe model of the target language.")
    ] = None,
    src_trees: Annotated[
        Given,
        option("--src-trees FILE", "CoNLL-U: trees that lines of the source already have."),
    ] = None,
    tgt_trees: Annotated[Given, option("--tgt-trees FILE", "The same for the target.")] = None,
    variants: Annotated[
        str,
        option(
            "--variants LIST",
            "Models to compare; the first is the baseline.",
            autocompletion=completion.variants,
        ),
    ] = "vanilla,pascal,rel,dep+rel",
    pretrained: Annotated[
        Given,
        option(
            "--pretrained RUN",
            "Trained models whose weights trainings begin with; {variant} and {seed} in RUN stand "
            "for those of each.",
        ),
    ] = None,
    seeds: Annotated[
        int,
        option(
            "--seeds N",
            "Training runs of each variant; one alone does not show how runs vary, and two leave "
            "intervals too wide to decide anything.",
            min=1,
            max=100,
        ),
    ] = ENOUGH_SEEDS,
    preset: Annotated[
        str,
        option(
            "--preset NAME",
            "Sizes and settings, as for synmt train.",
            autocompletion=completion.preset,
        ),
    ] = "auto",
    tokenize: Annotated[
        Given,
        option(
            "--tokenize NAME",
            "A tokenizer of sacreBLEU, for BLEU in training, tuning and scores.",
            "by the target text",
            autocompletion=completion.tokenizer,
        ),
    ] = None,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Write a folder in which `make` answers whether syntax helps on your text.

    Its Makefile runs plain synmt commands: check, split, filter, parse, vocab train, featurize;
    train and average for every variant and seed; tune for the length penalty; translate; score over
    the seeds; and report. The results are scores.txt and, with the packages that synmt report
    needs, report.html; where variants write trees, and with --tgt-parser, also trees.txt, the UAS
    and LAS of their trees against a parse of the same text. Such variants learn projective trees in
    which a multiword token is one word: trees of the target are changed accordingly (linearize says
    how). Read the Makefile, change it, or run its commands one by one. `make -j2` trains two models
    at a time, which is for two cores, not for one GPU; `make forecast` says beforehand how long
    the remaining trainings will take. An interrupted make resumes where it stopped, and what
    depends on a changed file is made again. One vocabulary serves both languages.

    Variants that read trees of the source (such as pascal) need --parser or --src-trees, those that
    write trees (linearized, parent, gcn) --tgt-parser or --tgt-trees; others skip parsing. `synmt
    variants` lists them. Not every gain comes from the tree: dep+rel also reads distances in the
    sentence, as rel does without a tree, so list rel if you list dep+rel. The folder keeps
    a copy of variants of your own (SYNMT_VARIANTS), which its Makefile uses.

    --src-trees and --tgt-trees are for gold trees, or those of another parser: a tree for each line
    of all sets in one file, with the line in its comment text; the target of the test set needs
    none. Lines without one are parsed, or an error where there is no parser of that side.

    Use --pretrained when you have little text but models that were trained on more: it compares
    variants that are trained further on your text (see `train --pretrained`). All of the models
    have one vocabulary, which the experiment takes. --pretrained 'general/models/{variant}.{seed}'
    takes those of another experiment, so each variant and seed begins with its own; without
    {variant}, all variants begin with the same model and are added to it. With --pretrained,
    config.toml has a third of the preset's learning rate, a warm-up of 50 updates, and a validation
    every 100 updates instead of 250. Keep your dev and test sets out of the text of those models.

    A dev or test set that is not given is split off: a tenth of the pairs, at most 1,000, at
    random, by a hash of their lines; pairs that share a line stay in the same set, and none shares
    one with a set that is given. Training text that shares a line with the dev or test set is left
    out, too, as are repeated pairs, and pairs with a side that has over 100 words or is over 9
    times as long as the other.

    Chinese, Japanese, Thai and others have no spaces between words. init knows them by their
    letters. Lengths are then in characters, with other limits (LIMITS in the Makefile); TER is not
    computed for such a target; and unless you name one, --tokenize is zh for Chinese (Han
    characters without kana) and char for others, 13a for targets with spaces.

    Where a variant writes trees, search stops early for all systems (tune --patience 1), since an
    exact search can take more than ten times as long there, and gave no better BLEU in our trials.
    For an exact search, leave PATIENCE empty in the Makefile.

    init chooses the precision, and the preset unless you name one, for the machine on which it
    runs: run it where you train, or check precision in config.toml and PRESET in the Makefile.

    The files are linked into the folder, not copied. All of them are read and checked first;
    nothing is written if one is bad.
    """
    options.refuse_no_folder("EXPERIMENT", experiment)

    from synmt_cli.core.experiment.design import Design, TreesFrom
    from synmt_cli.core.experiment.design import variants as named
    from synmt_cli.core.experiment.folder import Settings, Texts, Trees, write
    from synmt_cli.core.run.presets import AUTO, by_data

    dev = _pair("--dev-src", dev_src, "--dev-tgt", dev_tgt)
    test = _pair("--test-src", test_src, "--test-tgt", test_tgt)
    texts = Texts((src, tgt), dev, test)
    split_off = tuple(name for name, sides in (("dev", dev), ("test", test)) if sides is None)
    trees = Trees(TreesFrom(parser, src_trees), TreesFrom(tgt_parser, tgt_trees))
    design = Design(
        named(variants),
        seeds,
        preset,
        split_off,
        trees.src,
        trees.tgt,
        pretrained=pretrained is not None,
    )
    design.check()
    _check(experiment, preset, tokenize)
    _ = trees.parsers  # before the text is read, which takes longer
    sizes = texts.sizes()
    n_pairs = sizes.n_pairs["train"]
    about_trees = *trees.check_known(texts), *trees.language_problems(sizes)

    from synmt_cli.core.experiment.pretrained import read
    from synmt_cli.core.run import device as devices
    from synmt_cli.core.training.device import precision

    device = devices.choose("auto")  # torch is loaded here, once little is left to refuse
    notes = [f"{experiment}: {_summary(design, sizes.n_pairs)}"]
    models = None if pretrained is None else read(pretrained, design)
    if models:
        notes.append(f"trainings begin with the weights of {pretrained}")
    elif preset == AUTO:
        about = round(sizes.n_tokens, 2 - len(str(sizes.n_tokens)))
        taken, why = by_data(about, device.type)
        design = replace(design, preset=taken)
        notes.append(f"preset {taken}: about {why}; --preset NAME chooses another")
    design, about_words = _for_writing(design, sizes, tokenize)
    notes += [*about_words, *_about_search(design)]
    chosen, why = precision.for_all(device)
    notes.append(f"precision {chosen}: {why}; for another machine, change it in config.toml")
    links = trees.links | (models.links if models else {})
    settings = Settings(chosen, why, models.lr if models else None)
    write(Path(experiment), design, n_pairs, texts, links, settings)
    _tell(notes, (*about_trees, *_warnings(design, texts, sizes.n_pairs, models)))
    _advise(experiment, device.type, (("source", parser, src), ("target", tgt_parser, tgt)))


def _tell(notes: Iterable[str], warnings: Iterable[str]) -> None:
    for note in notes:
        console.info(note)
    for warning in filter(None, warnings):
        console.warn(warning)


def _advise(experiment: str, device: str, sides: Iterable[tuple[str, str | None, str]]) -> None:
    """Says what to do next. sides: the name of each, its parser, if there is one, and its text."""
    for side, parser, text in sides:
        if parser is not None:  # a parser of another language gives nonsense without an error
            file = f"./{text}" if text.startswith("-") else text  # or it would be an option
            parse = shlex.join(("synmt", "parse", "-m", parser, file))
            view = f"{parse} | synmt view | head -n 30"
            console.info(f"look at trees of the {side} before you train: {view}")
    two_at_a_time = "-j2 " if device == "cpu" else ""
    console.info(f"next: make {two_at_a_time}-C {shlex.quote(experiment)}")


def _check(experiment: str, preset: str, tokenize: str | None) -> None:
    """Raises UsageError for an unknown name, Unavailable, and CreateError if the folder exists."""
    from synmt_cli.core.run.config import resolve
    from synmt_cli.core.run.presets import AUTO
    from synmt_cli.core.text import tokenizers

    if preset != AUTO:
        resolve(None, preset, [])
    if tokenize is not None:
        tokenizers.bleu(tokenize)
    if os.path.lexists(experiment):
        raise CreateError(
            f"cannot create {experiment}: it already exists; name another folder, or "
            "see in its Makefile how to add a variant"
        )


def _pair(src: str, of_src: str | None, tgt: str, of_tgt: str | None) -> tuple[str, str] | None:
    """Both sides of a set, or None without it. Raises UsageError where one is missing."""
    if of_src is not None and of_tgt is not None:
        return of_src, of_tgt
    if of_src is None and of_tgt is None:
        return None
    there, missing = (src, tgt) if of_tgt is None else (tgt, src)
    raise UsageError(f"{there} needs {missing}, the other side of its set")


def _for_writing(
    design: "Design", sizes: "TextSizes", tokenize: str | None
) -> tuple["Design", list[str]]:
    """The design, fitted to how both sides are written, and notes on what was chosen.

    tokenize: the tokenizer, if one is given.
    """
    from synmt_cli.core.experiment.design import have
    from synmt_cli.core.text.tokenizers import DEFAULT

    notes = []
    if tokenize is None:
        tokenize = sizes.tgt.tokenize if sizes.tgt else DEFAULT
        has = f"{sizes.tgt.name} without spaces" if sizes.tgt else "spaces between words"
        notes.append(f"tokenizer {tokenize}: the target has {has}; --tokenize NAME chooses another")
    design = replace(design, tokenize=tokenize, src_writing=sizes.src, tgt_writing=sizes.tgt)
    if sides := design.sides_without_spaces:
        notes.append(f"lengths are in characters, not words: {have(sides)} no spaces between words")
    return design, notes


def _about_search(design: "Design") -> Iterator[str]:
    """Says where search is not exact, and why."""
    if writers := design.writers:
        have = f"{', '.join(writers)} write{'s' if len(writers) == 1 else ''} trees"
        yield f"patience 1: {have}; for an exact search, leave PATIENCE empty in the Makefile"


def _warnings(
    design: "Design", texts: "Texts", n_of: dict[str, int], models: "PretrainedModels | None"
) -> Iterator[str]:
    """Yields what is likely to go wrong, show little, or mislead. n_of: pairs in each set given."""
    from synmt_cli.core.run import building
    from synmt_cli.core.run.config import resolve
    from synmt_cli.core.text.tokenizers import BY_SPACES

    for name in design.variants:
        try:
            config = models.first_config(name) if models else resolve(name, design.preset, [])
            building.outlines(config)
        except UsageError as error:
            yield f"{name} needs other settings, OPTIONS_{name} in the Makefile: {error}"
    if design.tgt_writing and design.tokenize in BY_SPACES:
        yield f"the target has {design.tgt_writing.advice(design.tokenize, '--tokenize ')}"
    yield from texts.unlike_text()
    if models:
        yield from models.warnings()
    yield from _shows_little(design, texts, n_of)
    if not models and (n_pairs := n_of["train"]) < FEW_TO_TRAIN:
        yield (
            f"{n_pairs:,} training pairs are few: translations will be poor, and their differences "
            "say little about models trained on more; --pretrained begins with such models"
        )
    if shutil.which("synmt") is None:
        yield "make will not find synmt: activate its environment, or add it to PATH"


def _shows_little(design: "Design", texts: "Texts", n_of: dict[str, int]) -> Iterator[str]:
    """Yields the reasons why the answer will be weak."""
    if len(design.variants) == 1:
        yield f"{design.variants[0]} alone is compared with nothing: name another variant first"
    if design.n_seeds < ENOUGH_SEEDS:
        few = f"{counted(design.n_seeds, 'seed')} can hardly show how training runs vary"
        yield f"{few}: take --seeds {ENOUGH_SEEDS}, or better 5"
    if texts.tunes_on_test:
        shared = "a file of the dev set is in the test set, too"
        yield f"{shared}: settings chosen on it look better than they are"
    n_test = n_of.get("test") or design.n_held_out(n_of["train"])
    if n_test < FEW:
        advice = "" if "test" in n_of else "; --test-src and --test-tgt take a larger set"
        few = f"{n_test:,} test pairs are" if n_test != 1 else "1 test pair is"
        yield f"{few} few: small differences will not show{advice}"


def _summary(design: "Design", n_of: dict[str, int]) -> str:
    """The experiment in a line. n_of: pairs in each set given."""
    n_pairs = n_of["train"]
    n = len(design.variants) * design.n_seeds
    first, *others = design.variants
    systems = f"{', '.join(others)} against {first}" if others else first
    summary = f"{n_pairs:,} pairs, {counted(n, 'training run')} ({systems})"
    if design.split_off:
        each = " each" if len(design.split_off) > 1 else ""
        sets = " and ".join(design.split_off)
        held_out = f"{counted(design.n_held_out(n_pairs), 'pair')}{each} for {sets}"
        summary += f"; {held_out}, chosen by a hash of their lines"
    given = [
        f"{counted(n_of[name], 'pair')} for {name}" for name in ("dev", "test") if name in n_of
    ]
    return f"{summary}; {', '.join(given)}" if given else summary
