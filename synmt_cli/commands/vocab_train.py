"""`synmt vocab train`: a subword vocabulary from text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Annotated

import typer

from synmt_cli import console, pool
from synmt_cli.commands.manual import Files, Manual, Out, Quiet
from synmt_cli.core.text import vocabulary_training
from synmt_cli.core.text.vocabulary import Vocabulary, symbol_problem
from synmt_cli.errors import DataError, UsageError, quoted
from synmt_cli.io import reading, writing

MANUAL = Manual(
    input="One sentence a line: `The dog sleeps .`",
    output="A sentencepiece model (binary). Ids: 0 `<unk>`, 1 `<pad>`, 2 `<s>`, 3 `</s>`.",
    memory="All the text, several times.",
    examples=(
        "synmt vocab train --size 200 train.en train.de -o joint.model",
        "synmt vocab train --size 150 --type unigram train.en -o en.model",
        "synmt multitask --symbols train.jsonl | synmt vocab train --symbols - --size 300 train.en"
        " train.de -o tags.model",
    ),
    see_also=("vocab info", "vocab encode", "featurize", "multitask"),
)


class Type(StrEnum):
    """How pieces are found."""

    BPE = "bpe"
    UNIGRAM = "unigram"


class Normalization(StrEnum):
    """What is done to characters first."""

    IDENTITY = "identity"
    NFKC = "nfkc"
    NMT_NFKC = "nmt_nfkc"
    NFKC_CF = "nfkc_cf"
    NMT_NFKC_CF = "nmt_nfkc_cf"


def vocab_train(
    files: Files = None,
    size: Annotated[
        int,
        typer.Option("--size", metavar="N", min=5, help="Ids, special ones and symbols counted."),
    ] = 8000,
    type: Annotated[
        Type, typer.Option("--type", help="Byte-pair encoding, or a unigram language model.")
    ] = Type.BPE,
    character_coverage: Annotated[
        float,
        typer.Option(
            "--character-coverage",
            metavar="SHARE",
            min=0.9,
            max=1.0,
            help="Share of characters that get a piece, the rarest left out: 0.9995 for large "
            "texts and for scripts with many characters.",
        ),
    ] = 1.0,
    user_symbols: Annotated[
        str,
        typer.Option(
            "--user-symbols",
            metavar="SYMBOL,…",
            help="Strings that stay one piece wherever they are in the text.",
        ),
    ] = "",
    symbols: Annotated[
        str | None,
        typer.Option(
            "--symbols",
            metavar="FILE",
            help="Symbols, one a line: pieces that no text becomes, for tags and brackets.",
        ),
    ] = None,
    byte_fallback: Annotated[
        bool,
        typer.Option("--byte-fallback", help="Spell other characters in bytes, not as <unk>."),
    ] = False,
    normalization: Annotated[
        Normalization,
        typer.Option("--normalization", help="A rule of sentencepiece; identity changes nothing."),
    ] = Normalization.IDENTITY,
    output: Out = "-",
    quiet: Quiet = False,
) -> None:
    """Learn subword pieces from text with sentencepiece; several files make a joint vocabulary.

    The special ids are fixed: 0 unknown, 1 padding, 2 begin, 3 end of sentence. Text that
    looks like them (<s>, </s>) stays text.

    Characters are kept as they are unless --normalization says otherwise, so that
    translations have the user's characters. Spaces in a row count as one, those around a
    line as none.

    The same text and options give the same file, on any number of cores.

    --symbols takes the names of pieces that are put among the others by a tool, never found in
    text: a text that looks like one stays text. synmt multitask --symbols writes those that it
    needs. --user-symbols are the opposite: strings that are found wherever text has them.
    """
    if symbols == "-" and "-" in (files or ["-"]):
        raise UsageError("stdin cannot be both the text and --symbols")
    settings = vocabulary_training.VocabularySettings(
        size=size,
        type=type.value,
        character_coverage=character_coverage,
        user_symbols=tuple(symbol for symbol in user_symbols.split(",") if symbol),
        symbols=() if symbols is None else tuple(_symbols(symbols)),
        byte_fallback=byte_fallback,
        normalization=normalization.value,
    )

    def train(settings: vocabulary_training.VocabularySettings) -> bytes:
        return vocabulary_training.train(_sentences(files or ()), settings)

    with writing.output(output) as writer:
        # In a child process: sentencepiece hears no signal before it is done. Once: the text may
        # be stdin, which the child reads.
        once = pool.Care(tries=1)
        (model,) = pool.ordered_map(train, [settings], jobs=2, chunk=1, care=once)
        writer.write(model)
    vocabulary = Vocabulary.from_bytes(model)
    console.info(f"{vocabulary.size:,} pieces, fingerprint {vocabulary.fingerprint}")


def _sentences(files: Sequence[str]) -> Iterator[str]:
    for source in reading.sources(files):
        for _, text in reading.text_lines(source):
            yield text


def _symbols(path: str) -> Iterator[str]:
    with reading.open_source(path) as source:
        for number, symbol in reading.text_lines(source):
            if problem := symbol_problem(symbol):
                raise DataError(source.name, number, f"{quoted(symbol)} is no symbol: {problem}")
            yield symbol
