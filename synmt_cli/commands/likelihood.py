"""`synmt likelihood`: how probable given translations are to trained models."""

import contextlib
from collections import Counter
from typing import Annotated, Literal

from synmt_cli import console, pool
from synmt_cli.commands import Manual, options
from synmt_cli.commands.options import option
from synmt_cli.io import memory, reading, writing

MANUAL = Manual(
    input="JSONL records of `synmt featurize`, CoNLL-U, or text, one segment a line; the targets "
    "in records, or lines of --tgt FILE.",
    output="tsv: log P and the length of the target, `-14.0625<TAB>9`. jsonl: the input's record "
    "with log_prob and length.",
    memory="The models, and --window segments, twice as many from a pipe; with -j N also at least "
    f"{pool.IN_FLIGHT} N + 2 times --batch-size; and one batch.",
    examples=(
        "synmt likelihood -m runs/pascal --tgt test.de test.en > scores.tsv",
        "synmt likelihood -m runs/pascal -m runs/base --format jsonl test.jsonl > scored.jsonl",
        "synmt likelihood -m runs/trees de.trees.jsonl | head -3",
        "synmt likelihood -m runs/base --tgt ref.de test.en > good.tsv"
        " && synmt likelihood -m runs/base --tgt base.de test.en > bad.tsv"
        ' && paste good.tsv bad.tsv | awk \'$1 != "nan" && $3 != "nan" {all++; n += $1 > $3}'
        " END {print n / all}'",
    ),
    see_also=("translate", "score", "train"),
)


def likelihood(
    model: Annotated[
        list[str], option("-m, --model RUN", "Run directory; repeatable, for an ensemble.")
    ],
    files: options.Files = None,
    kind: options.InputKind = "auto",
    tgt: Annotated[
        str | None,
        option("--tgt FILE", "Targets, a line for each segment, instead of the records' own."),
    ] = None,
    on_bad_tree: options.OnBadTree = "error",
    parser: options.RunParser = "",
    max_pieces: Annotated[
        int, option("--max-pieces N", "Do not score pairs with more pieces on a side.", min=1)
    ] = 1000,
    format: Annotated[Literal["tsv", "jsonl"], option("--format", "What to write.")] = "tsv",
    batch_size: options.BatchSize = 256,
    batch_tokens: Annotated[
        int,
        option("--batch-tokens N", "At most N padded pieces of the longer side in a batch.", min=1),
    ] = 4096,
    window: Annotated[
        int, option("--window N", "Segments that are sorted by length together.", min=1)
    ] = 1000,
    checkpoint: options.Checkpoint = "best",
    precision: Annotated[
        Literal["auto", "fp32", "int8", "bf16", "fp16"],
        option(
            "--precision",
            "int8 is faster on a CPU, bf16 and fp16 on a GPU; fp32 is without TF32.",
        ),
    ] = "fp32",
    device: options.Device = "auto",
    threads: options.Threads = 0,
    jobs: options.Jobs = 1,
    output: options.Output = "-",
    line_buffered: options.LineBuffered = False,
    strict: options.Strict = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Score given translations: the log-probability of each target, given its source.

    For each segment the output has log P(target | source), a natural logarithm, and the length of
    the target in pieces, the end of sentence included. The score of synmt translate is log P /
    length^A. Use it for contrastive test sets (is the correct translation more probable than the
    wrong one?), to rerank n-best lists, and to choose training data; docs/contrastive.md has the
    commands.

    The targets are those of the records (featurize --tgt), or the lines of --tgt FILE. A target
    without tgt_pieces is split into pieces by the models' vocabulary. These may differ from
    the pieces that a model wrote, and so may the score. Sources are read as in synmt translate:
    text is parsed if the models need trees, and with --on-bad-tree failed a sentence that is not a
    tree is a failed segment.

    Models that write trees (linearized, parent, gcn) score a tree with its words, as they write it;
    transitions do not count in the length. Their targets come from records of featurize
    --tgt-conllu, and --tgt is refused. The score of translate, unlike this one, leaves out the arcs
    that completed a tree (closing).

    Every segment has its line. If source and target are both empty, log P is 0. nan, in jsonl null,
    stands where nothing was scored: for a target whose source is empty, a pair of more than
    --max-pieces pieces, an empty target of models that write trees, and a failed or skipped record
    without a target. These are counted at the end. A failed record with a target is scored without
    the tree of its source.

    Several models average their probabilities for each token, as in translate. Segments are sorted
    by length within a --window; --line-buffered, or text typed at a terminal, sets it to 1. -j is
    for CPUs: on a machine with a GPU give --device cpu, too.
    """
    paths = files or ["-"]
    targets = [] if tgt is None else [tgt]
    options.refuse_clashes([*paths, *targets, parser], output)
    if options.is_watched(paths, line_buffered):
        window = 1
    counts: Counter[str] = Counter()
    memory.bound_caches(memory.KERNELS_IN_SEARCH)
    with contextlib.ExitStack() as stack:
        writer = stack.enter_context(writing.output(output, line_buffered))
        bar = stack.enter_context(console.progress("scored", files=paths, output=output))
        from synmt_cli.core.decoding.translator import SearchSettings
        from synmt_cli.core.jobs.translation.job import Wanted, ending_at_failures
        from synmt_cli.core.jobs.translation.likelihood import FORMATS, LikelihoodJob, remarks

        settings = SearchSettings(
            max_pieces=max_pieces, batch_size=batch_size, batch_pieces=batch_tokens
        )
        wanted = Wanted(device, "torch", precision)
        job = LikelihoodJob(model, checkpoint, wanted, settings, jobs, threads)
        if targets:
            job.refuse_text()
        source, needs_trees = job.members.vocabularies.source, bool(job.members.encoding.needs)
        reader = job.reader(parser, ahead=window)
        records = ending_at_failures(reader.read(paths, kind, on_bad_tree, targets), strict)
        waited = (lambda: reader.waited) if reading.is_streamed([*paths, *targets]) else None
        for scored in job.scored(records, window, console.warn, bar, waited):
            for record, found in scored:
                writer.write(FORMATS[format](record, found))
                counts.update(remarks(record, found, source, needs_trees))
            bar.advance(len(scored))
        for remark, n in counts.items():
            console.warn(f"{n:,} of {bar.done:,} segments {remark}")
