"""`synmt vocab convert`: a sentencepiece model of another program for synmt."""

from typing import Annotated

from synmt_cli import console
from synmt_cli.commands import Manual, options
from synmt_cli.commands.options import argument
from synmt_cli.core.text import vocabulary
from synmt_cli.core.text.vocabulary import Vocabulary
from synmt_cli.io import writing

MANUAL = Manual(
    input="A sentencepiece model, such as `spm_train` writes.",
    output="The same model with the ids 0 `<unk>`, 1 `<pad>`, 2 `<s>`, 3 `</s>`.",
    memory="The model, several times.",
    examples=(
        "synmt vocab convert spm.model -o converted.model",
        "synmt vocab convert spm.model | cmp - spm.model  # has these ids already",
    ),
    see_also=("vocab train", "vocab info"),
)


def vocab_convert(
    model: Annotated[str, argument("MODEL", "The vocabulary of the other program.")],
    output: options.Output = "-",
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Give a sentencepiece model of another program the special ids that synmt needs.

    The pieces for unknown text, padding, and begin and end of a sentence come first, in the order
    of synmt vocab train; those that the model lacks are added, as padding often is. All other
    pieces follow in their order, with their scores, so text is split as before. Ids change: give
    this file to all commands, and not the ids of the other program.

    No command takes a model that was trained with --treat_whitespace_as_suffix: pieces have to
    begin with spaces, not end with them.
    """
    options.refuse_compressed(output)
    options.refuse_clashes([model], output)
    old = vocabulary.read(model)
    new = vocabulary.with_special_ids(old, model)
    known = Vocabulary(new, model)
    with writing.output(output) as writer:
        writer.write(new)
    how = "unchanged, since its ids are right" if new == old else "converted"
    console.info(f"{how}: {known.size:,} pieces, fingerprint {known.fingerprint}")
