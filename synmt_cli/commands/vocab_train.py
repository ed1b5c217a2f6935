"""`synmt vocab train`: a subword vocabulary from text."""

import re
from collections.abc import Iterator
from typing import Annotated

from synmt_cli import console, pool
from synmt_cli.commands import Manual, options
from synmt_cli.commands.options import option
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
        "synmt multitask --format symbols train.jsonl | synmt vocab train --symbols - --size 300"
        " train.en train.de -o tags.model",
    ),
    see_also=("vocab info", "vocab encode", "featurize", "multitask"),
)


def vocab_train(
    files: options.Files = None,
    size: Annotated[
        str,
        option("--size N", "Ids in all, with the special ones and symbols; auto: by the text."),
    ] = "auto",
    type: Annotated[
        vocabulary_training.Type,
        option(
            "--type",
            "BPE, a unigram language model, or the most frequent words.",
        ),
    ] = "bpe",
    character_coverage: Annotated[
        float,
        option(
            "--character-coverage SHARE",
            "Share of characters that get a piece; the rarest go without: 0.9995 for large texts "
            "and for scripts with many characters.",
            min=0.98,  # sentencepiece's limit
            max=1.0,
        ),
    ] = 1.0,
    user_symbols: Annotated[
        str,
        option("--user-symbols SYMBOL,…", "Strings that are one piece wherever the text has them."),
    ] = "",
    symbols: Annotated[
        str | None,
        option(
            "--symbols FILE",
            "Symbols, one a line: pieces that text is never split into, for tags and brackets.",
        ),
    ] = None,
    byte_fallback: Annotated[
        bool, option("--byte-fallback", "Spell other characters in bytes instead of <unk>.")
    ] = False,
    normalization: Annotated[
        vocabulary_training.Normalization,
        option("--normalization", "A rule of sentencepiece; identity changes no character."),
    ] = "identity",
    output: options.Output = "-",
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Learn subword pieces from text with sentencepiece; several files make a joint vocabulary.

    The special ids are fixed: 0 unknown, 1 padding, 2 begin, 3 end of sentence. Text that
    looks like them (<s>, </s>) stays text.

    Characters are kept as they are unless --normalization says otherwise, so that
    translations have the user's characters. A run of spaces counts as one; spaces at either
    end of a line do not count, and ▁ is a space.

    --size auto takes 500 ids for fewer than 1,000 lines, 1,000 from there on, 2,000 from 4,000
    lines, 4,000 from 20,000, 8,000 from 50,000 and 32,000 from two million, plus the --symbols;
    fewer if the text has no more, and more if its single characters need more. Lines of all FILEs
    count, so two languages count twice.

    --type word takes the most frequent words between spaces, and other words are unknown: split
    punctuation off before.

    The same text and options give the same file, on any number of cores.

    --symbols lists pieces that only tools insert among the others: text that looks like one stays
    text. synmt multitask and synmt linearize write those that they need with --format symbols.
    --user-symbols are the opposite: strings that are found wherever text has them.
    """
    options.refuse_clashes([*(files or ["-"]), symbols], output)
    options.refuse_compressed(output)
    settings = vocabulary_training.VocabularySettings(
        size=_size(size),
        type=type,
        character_coverage=character_coverage,
        user_symbols=tuple(symbol for symbol in user_symbols.split(",") if symbol),
        symbols=() if symbols is None else tuple(_symbols(symbols)),
        byte_fallback=byte_fallback,
        normalization=normalization,
    )

    def train(settings: vocabulary_training.VocabularySettings) -> bytes:
        sources = reading.sources(files or ())
        sentences = (text for source in sources for _, text in reading.text_lines(source))
        where = ", ".join(map(reading.source_name, files or ("-",)))
        return vocabulary_training.train(sentences, settings, where)

    with writing.output(output) as writer:
        # In a child process, because sentencepiece answers no signal before it is done. Only
        # once, because the text may be stdin, which the child reads.
        once = pool.Care(tries=1)
        (model,) = pool.ordered_map(train, [settings], jobs=2, chunk=1, care=once)
        writer.write(model)
    vocabulary = Vocabulary(model)
    console.info(f"{vocabulary.size:,} pieces, fingerprint {vocabulary.fingerprint}")


def _size(size: str) -> int | None:
    if size == "auto":
        return None
    if not re.fullmatch("[0-9]{1,9}", size) or int(size) < 5:
        raise UsageError(f"--size is auto, or a number of 5 to 999999999, not {quoted(size)}")
    return int(size)


def _symbols(path: str) -> Iterator[str]:
    with reading.open_source(path) as source:
        for number, symbol in reading.text_lines(source):
            if problem := symbol_problem(symbol):
                raise DataError(source.name, number, f"{quoted(symbol)} is not a symbol: {problem}")
            yield symbol
