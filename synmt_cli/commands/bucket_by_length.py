"""`synmt bucket-by-length`: segments by the length of their source."""

from typing import Annotated

from synmt_cli.commands import Manual, options
from synmt_cli.commands.options import option
from synmt_cli.errors import UsageError
from synmt_cli.io import writing

MANUAL = Manual(
    input="Parallel text, one segment a line; or JSONL records; or CoNLL-U.",
    output="--count: `20-29<TAB>765<TAB>25.5` for each bucket, under a header. --annotate: the"
    " stream with its buckets, `20-29<TAB>A line of text` for text. --split-to: files.",
    memory="One segment.",
    examples=(
        "synmt bucket-by-length train.en --edges 5,8,12",
        "synmt bucket-by-length test.en test.de --edges 5,8 --split-to 'by.{bucket}.{name}'",
        "synmt bucket-by-length pascal.de --src test.en --edges 8 --split-to '{bucket}.{name}'",
        "synmt bucket-by-length test.en.conllu --edges 5,8 --annotate > labelled.conllu",
        'synmt bucket-by-length --annotate < train.jsonl | grep -c \'"bucket":"0-19"\'',
    ),
    see_also=("score", "featurize"),
)


def bucket_by_length(
    files: options.Files = None,
    edges: Annotated[
        str, option("--edges LIST", "First length of each further bucket.")
    ] = "20,30,40,50",
    count: Annotated[bool, option("--count", "Count the buckets (the default).")] = False,
    annotate: Annotated[
        bool, option("--annotate", "Write the stream with the bucket of each segment.")
    ] = False,
    split_to: Annotated[
        str | None, option("--split-to TEMPLATE", "Write a file for each bucket.")
    ] = None,
    src: Annotated[
        str | None, option("--src FILE", "Measure this text, parallel to the others.")
    ] = None,
    kind: options.InputKind = "auto",
    output: options.Output = "-",
    line_buffered: options.LineBuffered = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Count, label or split segments by the length of their source, in words.

    --edges 20,30,40,50 makes the buckets 0-19, 20-29, 30-39, 40-49 and 50+: each edge begins
    a bucket. An empty line has length 0.

    Text: several FILEs are parallel, line by line; the first one is measured, or --src, whose
    lines are not written. Words are between white space. JSONL: the field `words`, or without it
    the words of `src`. CoNLL-U: syntactic words; sentences with the same synmt_line are one
    segment. Several FILEs of records are read one after the other.

    --annotate adds the field `bucket` to JSONL, the comment synmt_bucket to CoNLL-U, and a first
    column to text, before a TAB; parallel lines follow with TABs between them.

    --split-to puts {bucket} into the file name, and for parallel text {name}, the last part of
    each FILE, or {side}, its number from 1. Every bucket gets a file, even an empty one. The
    files appear when all of them are complete; if the input is bad, none does.
    """
    from synmt_cli.core.segments import bucketing
    from synmt_cli.core.segments.buckets import parse_edges

    buckets = parse_edges(edges)
    if count + annotate + (split_to is not None) > 1:
        raise UsageError("one of --count, --annotate and --split-to at a time")
    if split_to is not None and output != "-":
        raise UsageError("--split-to names its files: no --output")
    paths = files or ["-"]
    options.refuse_two_stdins([*paths, src])
    with bucketing.opened(paths, kind, src) as stream:
        if split_to is not None:
            stream.split(buckets, split_to, [*paths, *([src] if src else [])])
            return
        with writing.output(output, line_buffered) as writer:
            for line in stream.labelled(buckets) if annotate else [stream.table(buckets)]:
                writer.write(line)
