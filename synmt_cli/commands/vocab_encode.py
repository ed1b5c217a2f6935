"""`synmt vocab encode`: text to pieces."""

from functools import partial
from typing import Annotated

import typer

from synmt_cli import console, pool
from synmt_cli.commands import Manual, options
from synmt_cli.commands.options import option
from synmt_cli.core.jobs.vocab import CHUNK, each_line, encoding
from synmt_cli.core.text.sampling import Sampling
from synmt_cli.io import writing

MANUAL = Manual(
    input="One segment a line: `The dogs sleep.`",
    output="Its pieces with single spaces between them: `▁The ▁dog s ▁sleep .`",
    memory=f"The longest line, {pool.IN_FLIGHT} N + 2 times {CHUNK} lines with -j N.",
    examples=(
        "synmt vocab encode -m spm.model test.en > test.pieces.en",
        "head -2 test.en | synmt vocab encode -m spm.model --ids",
        "synmt vocab encode -m spm.model --sample 0.1 --seed 1 train.en > epoch1.pieces.en",
    ),
    see_also=("vocab decode", "vocab train"),
)


def vocab_encode(
    context: typer.Context,
    model: options.VocabularyModel,
    files: options.Files = None,
    ids: Annotated[bool, option("--ids", "Write ids instead of pieces.")] = False,
    sample: Annotated[
        float | None,
        option(
            "--sample ALPHA",
            "Draw the pieces: BPE-dropout, or a unigram model's sampling.",
            min=0,
            max=1_000_000,
        ),
    ] = None,
    nbest: Annotated[
        int | None,
        option(
            "--nbest N",
            "Draw from the N best of a unigram model instead of all.",
            min=2,
            max=512,  # sentencepiece's limit
        ),
    ] = None,
    seed: options.Seed = options.SEED,
    jobs: options.Jobs = 1,
    output: options.Output = "-",
    line_buffered: options.LineBuffered = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Split each line into subword pieces; ▁ begins a word.

    A run of characters that the vocabulary does not know is one piece, and as an id 0.

    --sample ALPHA draws other pieces of the same text, so that a model sees words in several ways,
    by sentencepiece's rules. In a BPE model ALPHA is the probability that a merge is skipped at
    each step, BPE-dropout (Provilkov et al. 2020, who take 0.1): 0 changes nothing, 1 gives single
    characters. In a unigram model a segmentation x is drawn with probability P(x)^ALPHA / sum of
    P(x')^ALPHA (Kudo 2018): over all segmentations, or with --nbest over the N best; 0 is uniform.

    The draw of a line depends on --seed and on its number over all FILEs, never on -j. Another
    --seed for each epoch gives each its own pieces.
    """
    sampling = None
    if sample is None:
        options.refuse_given(context, {"nbest": "--nbest", "seed": "--seed"}, "is for --sample")
    else:
        sampling = Sampling(sample, nbest or 0, seed)
    options.refuse_clashes([model, *(files or ["-"])], output)
    make = partial(encoding, model, ids, sampling)
    results = each_line(make, model, files or (), jobs, console.warn)
    with writing.output(output, line_buffered) as writer:
        for line in results:
            writer.write(line)
