"""`synmt vocab encode`: text to pieces."""

from functools import partial
from typing import Annotated

from synmt_cli import console, pool
from synmt_cli.commands import Manual, options
from synmt_cli.commands.options import option
from synmt_cli.core.jobs.vocab import CHUNK, each_line, encoding
from synmt_cli.io import writing

MANUAL = Manual(
    input="One segment a line: `The dogs sleep.`",
    output="Its pieces with single spaces between them: `▁The ▁dog s ▁sleep .`",
    memory=f"The longest line, {pool.IN_FLIGHT} N + 2 times {CHUNK} lines with -j N.",
    examples=(
        "synmt vocab encode -m spm.model test.en > test.pieces.en",
        "head -2 test.en | synmt vocab encode -m spm.model --ids",
    ),
    see_also=("vocab decode", "vocab train"),
)


def vocab_encode(
    model: options.VocabularyModel,
    files: options.Files = None,
    ids: Annotated[bool, option("--ids", "Write ids instead of pieces.")] = False,
    jobs: options.Jobs = 1,
    output: options.Output = "-",
    line_buffered: options.LineBuffered = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Split each line into subword pieces; ▁ begins a word.

    A run of characters that the vocabulary does not know is one piece, and as an id 0.
    """
    results = each_line(partial(encoding, model, ids), model, files or (), jobs, console.warn)
    with writing.output(output, line_buffered) as writer:
        for line in results:
            writer.write(line)
