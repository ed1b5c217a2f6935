"""`synmt translate`: records, trees or text to translations."""

from __future__ import annotations

import math
import os
from collections import Counter
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from synmt_cli import console, pool
from synmt_cli.commands.manual import (
    Checkpoint,
    Device,
    Files,
    Jobs,
    Kind,
    LineBuffered,
    Manual,
    Out,
    Quiet,
    RunParser,
    Strict,
    Threads,
    Verbose,
)
from synmt_cli.errors import ConfigError, UsageError, printable
from synmt_cli.io import writing

if TYPE_CHECKING:
    from synmt_cli.core.decoding.translator import Translator

MANUAL = Manual(
    input="JSONL records of `synmt featurize`, CoNLL-U, or text, one segment a line.",
    output=(
        "text: one line for each segment, `Der Hund schläft .` tsv: `1<TAB>-0.3192<TAB>Der Hund "
        "schläft .`, n-best below each other. jsonl: the input's record with hyp, score and nbest, "
        "with hyp_transitions where models write trees. conllu: a parsed sentence for each segment."
    ),
    memory="The models and --window segments; one batch of search on top.",
    examples=(
        "synmt translate -m runs/pascal test.jsonl > hyp.de",
        "synmt translate -m runs/pascal < test.en | head -3",
        "synmt translate -m runs/pascal -m runs/base --beam 2 test.en.conllu -o ensemble.de",
        "synmt translate -j 2 -m runs/base --beam 2 test.jsonl > hyp.de",
        "synmt translate --precision int8 --patience 1 -m runs/base test.jsonl > fast.de",
        "synmt translate -m runs/trees --format conllu --max-len 20 test.en > hyp.conllu",
        "synmt translate -m runs/base --format tsv --beam 4 --nbest 4 test.jsonl > nbest.tsv",
    ),
    see_also=("train", "featurize", "score"),
)


class Format(StrEnum):
    """What comes out."""

    TEXT = "text"
    TSV = "tsv"
    JSONL = "jsonl"
    CONLLU = "conllu"


class Precision(StrEnum):
    """Of matrix products."""

    FP32 = "fp32"
    INT8 = "int8"


def translate(
    model: Annotated[
        list[str],
        typer.Option("-m", "--model", metavar="RUN", help="Run directory; several: an ensemble."),
    ],
    files: Files = None,
    kind: Kind = "auto",
    parser: RunParser = "",
    beam: Annotated[
        int,
        typer.Option("--beam", metavar="K", min=1, max=1000, help="Prefixes kept; 1 is greedy."),
    ] = 4,
    lenpen: Annotated[
        float,
        typer.Option("--lenpen", metavar="A", min=0, max=10, help="Divide log P by length^A."),
    ] = 0.6,
    nbest: Annotated[
        int,
        typer.Option(
            "--nbest", metavar="N", min=1, max=1000, help="Translations for each segment."
        ),
    ] = 1,
    patience: Annotated[
        float | None,
        typer.Option(
            "--patience", metavar="P", help="Enough are P * beam finished ones.", min=0.01
        ),
    ] = None,
    max_len: Annotated[
        int | None,
        typer.Option(
            "--max-len",
            metavar="N",
            min=1,
            max=100_000,
            help="Longest translation in pieces, its end counted; else 2 * source + 20.",
        ),
    ] = None,
    max_source: Annotated[
        int,
        typer.Option("--max-source", metavar="N", min=1, help="Translate longer sources in parts."),
    ] = 1000,
    format: Annotated[Format, typer.Option("--format", help="What comes out.")] = Format.TEXT,
    unconstrained: Annotated[
        bool,
        typer.Option("--unconstrained", help="Let models of trees write what makes no tree."),
    ] = False,
    batch_size: Annotated[
        int, typer.Option("--batch-size", metavar="N", min=1, help="Segments searched together.")
    ] = 64,
    batch_tokens: Annotated[
        int,
        typer.Option("--batch-tokens", metavar="N", min=1, help="Padded source pieces at most."),
    ] = 4096,
    window: Annotated[
        int,
        typer.Option("--window", metavar="N", min=1, help="Segments sorted by length at a time."),
    ] = 1000,
    checkpoint: Checkpoint = "best",
    precision: Annotated[
        Precision, typer.Option("--precision", help="int8 is faster, on a CPU.")
    ] = Precision.FP32,
    device: Device = "auto",
    threads: Threads = 0,
    jobs: Jobs = 1,
    output: Out = "-",
    line_buffered: LineBuffered = False,
    strict: Strict = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Translate records, trees or text with trained models: one line for each segment, in order.

    The run directory is all that is needed. Text is parsed by the parser that the run names
    (train --parser) or --parser, and split into pieces; models without syntax need no parser.
    A segment whose parse failed, or that has no tree, is translated with each piece standing
    for itself, and counted. An empty line stays empty and never reaches the model. A source of
    more than --max-source pieces is translated in parts without its tree, which are joined.

    The score of a translation is log P / length^A, the end of sentence counted, as in fairseq
    (not GNMT's). Search ends when no prefix can still enter the n-best by that score, with
    --patience 1 when K translations are finished, as in fairseq and CTranslate2: faster. The
    unknown piece is never written. A translation that reaches the limit of --max-len is cut
    there and counted. Several models average their probabilities; they must share a vocabulary.

    Models of linearized, parent and gcn write a tree with its words. Search gives them only
    continuations that can still become one tree, so that each translation is one; the length
    is in pieces, transitions do not count; at the limit a tree has to end, and is counted as
    cut. text has the words alone, conllu the parsed sentence; translations of an n-best list
    may differ in the tree alone. --unconstrained allows everything, as the paper's code did:
    transitions that draw nothing are passed over, no more than four tokens are written for
    each piece of the limit, and conllu repairs what is no tree and counts it.

    --precision int8 multiplies in 8-bit integers, with a scale for each token and each output, and
    may change a translation here and there. Modifiers and attention keep their precision.

    Segments are sorted by length inside a --window; --line-buffered, or text typed at a
    terminal, sets it to 1. With -j each process takes a part of every window, one thread each
    unless --threads says otherwise; text is still parsed by one process, so put
    `synmt parse -j` before it where that is much of the work.
    """
    if nbest > beam:
        raise UsageError(f"--nbest {nbest} needs --beam {nbest} or more, not {beam}")
    if nbest > 1 and format in (Format.TEXT, Format.CONLLU):
        raise UsageError("--nbest gives several lines for a segment: --format tsv or jsonl")
    paths = files or ["-"]
    if line_buffered or ("-" in paths and os.isatty(0)):
        window = 1
    with writing.output(output, line_buffered) as writer, console.progress("translated") as bar:
        from synmt_cli.core.decoding.hypothesis import LengthLimit
        from synmt_cli.core.decoding.translator import SearchSettings, windows
        from synmt_cli.core.jobs import translate as translating
        from synmt_cli.core.jobs.translation_input import Reader
        from synmt_cli.core.jobs.translation_output import remarks, written
        from synmt_cli.core.run import device as devices

        n_processes = pool.n_workers(jobs)
        is_alone = n_processes == 1 and pool.here()
        # A process that has used several threads cannot be forked.
        devices.set_threads(threads if is_alone else 1)
        chosen = devices.choose(device)
        if not is_alone and chosen.type != "cpu":
            raise UsageError(f"-j {jobs} is for --device cpu, not {chosen}")
        named = translating.named(model, checkpoint)
        models = translating.Models(tuple(model), named, str(chosen), precision.value)
        loaded = translating.opened(models)
        settings = SearchSettings(
            beam=beam,
            lenpen=lenpen,
            nbest=nbest,
            longest=LengthLimit() if max_len is None else LengthLimit(0, max_len),
            constrained=not unconstrained,
            patience=patience or math.inf,
            max_pieces=max_source,
            batch_size=batch_size,
            batch_pieces=batch_tokens,
        )
        source, target = loaded.vocabularies.source, loaded.vocabularies.target
        translator = translating.translator(models, settings)
        reader = Reader(source, target, loaded.parser(parser))
        found = translating.placed(reader.read(paths, kind), strict)
        counts: Counter[str] = Counter()
        refuse_without_trees(translator, model, format, unconstrained)
        as_bytes = written(format.value, target, counts)
        own = 0 if is_alone else threads or 1
        recipe = pool.Recipe(
            partial(translating.translating, models, settings, own),
            tuple(models.files()),
            pool.Care(where=translating.where, warn=console.warn),
        )
        # Of many processes none gets less of a window than a batch.
        share = min(window, max(-(-window // n_processes), batch_size))
        for translated in pool.mapped(recipe, windows(found, share), jobs, chunk=1):
            for one in translated:
                writer.write(as_bytes(one, nbest))
                counts.update(remarks(one, settings, bool(loaded.encoding.needs)))
            bar.advance(len(translated))
        for remark, n in counts.items():
            console.warn(f"{n:,} of {bar.done:,} segments {remark}")


def refuse_without_trees(
    translator: Translator, models: list[str], format: Format, unconstrained: bool
) -> None:
    """Raises ConfigError where the models write no trees but are asked for them."""
    asked = {"--format conllu": format is Format.CONLLU, "--unconstrained": unconstrained}
    for option, is_set in asked.items():
        if is_set and not translator.writes_trees:
            raise ConfigError(f"{printable(models[0])} writes no trees, which {option} needs")
