"""`synmt vocab decode`: pieces to text."""

from functools import partial
from typing import Annotated

from synmt_cli import console, pool
from synmt_cli.commands import Manual, options
from synmt_cli.commands.options import option
from synmt_cli.core.jobs.vocab import CHUNK, decoding, each_line
from synmt_cli.io import writing

MANUAL = Manual(
    input="Pieces with single spaces between them: `▁The ▁dog s ▁sleep .`",
    output="The text of each line: `The dogs sleep.`",
    memory=f"The longest line, {pool.IN_FLIGHT} N + 2 times {CHUNK} lines with -j N.",
    examples=(
        "synmt vocab encode -m spm.model dev.en | synmt vocab decode -m spm.model | diff - dev.en",
        "synmt vocab encode --ids -m spm.model test.en | synmt vocab decode --ids -m spm.model",
    ),
    see_also=("vocab encode",),
)


def vocab_decode(
    model: options.VocabularyModel,
    files: options.Files = None,
    ids: Annotated[bool, option("--ids", "Read ids instead of pieces.")] = False,
    jobs: options.Jobs = 1,
    output: options.Output = "-",
    line_buffered: options.LineBuffered = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Join the pieces of each line into text again.

    Pieces that the vocabulary does not know are written as they are; its symbols are left out.
    Among ids, 1 to 3 are left out too, and 0, the unknown piece, is written as ` ⁇ `.
    """
    options.refuse_clashes([model, *(files or ["-"])], output)
    results = each_line(partial(decoding, model, ids), model, files or (), jobs, console.warn)
    with writing.output(output, line_buffered) as writer:
        for line in results:
            writer.write(line)
