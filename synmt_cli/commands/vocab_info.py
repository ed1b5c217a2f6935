"""`synmt vocab info`: what a vocabulary holds."""

from typing import Annotated

from synmt_cli.commands import Manual, options
from synmt_cli.commands.options import argument
from synmt_cli.core.text.vocabulary import BOS, EOS, PAD, UNK, Vocabulary
from synmt_cli.formats.reports import properties
from synmt_cli.io import writing

MANUAL = Manual(
    input="A sentencepiece model.",
    output="A property a line, `fingerprint<TAB>65c3206a9b53e163`; with --format json one object.",
    memory="The model.",
    examples=(
        "synmt vocab info spm.model",
        "synmt vocab info --format json spm.model > spm.json",
    ),
    see_also=("vocab train",),
)


def vocab_info(
    model: Annotated[str, argument("MODEL", "The vocabulary.")],
    form: options.PropertyFormat = "tsv",
    output: options.Output = "-",
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Say what a vocabulary holds: its size, type, special ids, symbols and fingerprint.

    The fingerprint is the first 16 hexadecimal digits of the file's SHA-256. Records carry
    it, and commands refuse records of another vocabulary.
    """
    options.refuse_clashes([model], output)
    vocabulary = Vocabulary.load(model)
    facts = {
        "size": vocabulary.size,
        "type": vocabulary.making.type,
        "normalization": vocabulary.making.normalization,
        "byte_fallback": vocabulary.making.byte_fallback,
        "unk": UNK,
        "pad": PAD,
        "bos": BOS,
        "eos": EOS,
        "symbols": vocabulary.symbols,
        "fingerprint": vocabulary.fingerprint,
    }
    with writing.output(output) as writer:
        if form == "json":
            writer.write(properties.as_object(facts, ascii_only=True))
        else:
            writer.write(properties.as_lines(facts))
