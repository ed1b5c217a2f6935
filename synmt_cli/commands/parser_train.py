"""`synmt parser train`: CoNLL-U to a UDPipe model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Annotated

import typer

from synmt_cli import console
from synmt_cli.commands.manual import Manual, Quiet, Verbose
from synmt_cli.core.text import parser_training
from synmt_cli.errors import DataError
from synmt_cli.formats import conllu
from synmt_cli.io import reading, writing

MANUAL = Manual(
    input="Treebanks in CoNLL-U: `2\tdog\tdog\tNOUN\t_\t_\t3\tnsubj\t_\t_`",
    output="A UDPipe 1 model file, which parse and other programs of UDPipe 1 load.",
    memory="Both treebanks, and about ten times their size for the trainer.",
    examples=(
        "synmt parser train train.en.conllu --dev dev.en.conllu -o my.udpipe",
        "synmt parser train train.de.conllu --dev dev.de.conllu -o de.udpipe "
        "--tokenizer none --parser 'iterations=1;transition_system=swap'",
    ),
    see_also=("parse", "synth"),
)


class Preset(StrEnum):
    """How long to train."""

    FAST = "fast"
    ACCURATE = "accurate"


def parser_train(
    files: Annotated[
        list[str], typer.Argument(metavar="TRAIN...", help="Treebanks to train on; - is stdin.")
    ],
    output: Annotated[
        str, typer.Option("-o", "--output", metavar="MODEL", help="Write the model here.")
    ],
    dev: Annotated[
        list[str] | None,
        typer.Option("--dev", metavar="FILE", help="Treebank to choose by and to measure with."),
    ] = None,
    preset: Annotated[
        Preset,
        typer.Option(
            "--preset",
            help="fast: small and soon done. accurate: UDPipe's own defaults, hours for a "
            "large treebank.",
        ),
    ] = Preset.FAST,
    tokenizer: Annotated[
        str, typer.Option(metavar="OPTIONS", help="UDPipe's name=value;..., or none.")
    ] = "",
    tagger: Annotated[str, typer.Option(metavar="OPTIONS", help="UDPipe's name=value;...")] = "",
    parser: Annotated[str, typer.Option(metavar="OPTIONS", help="UDPipe's name=value;...")] = "",
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Train a tokenizer, tagger and parser for parse on treebanks.

    The options of a preset are overridden one by one by --tokenizer, --tagger and --parser,
    which take what UDPipe 1's own trainer takes, such as epochs=20 for the tokenizer,
    iterations=10 for the tagger, hidden_layer=200;transition_system=swap for the parser.
    The preset fast is dimension=16;epochs=3, iterations=2, and iterations=2;hidden_layer=64;
    structured_interval=0 with embeddings of 32 and 12.

    Training makes no random choice: the same files and options give the same model. The model
    is written when it is complete, loads, and was measured on the --dev treebank.
    """
    given = {"tokenizer": tokenizer, "tagger": tagger, "parser": parser}
    options = parser_training.merged(preset, given)
    with writing.output(output) as writer:
        training = _treebank(files, "training")
        if not training.blocks:
            raise DataError("training data", None, "no sentence to train on")
        development = _treebank(dev, "dev") if dev else parser_training.Treebank()
        trained = parser_training.train(training, development, options, _log)
        writer.write(trained.model)
    for line in filter(None, trained.evaluation.split("\n")):
        console.info(line)


def _treebank(paths: Sequence[str], name: str) -> parser_training.Treebank:
    result = parser_training.treebank(_sentences(paths))
    for reason, n in result.left_out.items():
        console.warn(f"{n:,} {name} sentences {reason} are left out")
    if result.n_lemmas:
        console.warn(
            f"{result.n_lemmas:,} lemmas in the {name} data have over "
            f"{parser_training.MAX_FORMS} forms, which UDPipe cannot hold: they become _"
        )
    console.info(f"{len(result.blocks):,} {name} sentences")
    return result


def _sentences(paths: Sequence[str]) -> Iterator[conllu.Sentence]:
    for source in reading.sources(paths):
        yield from conllu.read(source)


def _log(line: str) -> None:
    rounds = line.startswith(("Epoch", "Iteration", "Training", "Parser transition"))
    (console.info if rounds else console.debug)(line)
