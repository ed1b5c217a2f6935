"""`synmt bucket-by-length`: segments by the length of their source."""

from __future__ import annotations

from typing import Annotated

import typer

from synmt_cli.commands.manual import Files, Kind, LineBuffered, Manual, Out, Quiet, Verbose
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
    files: Files = None,
    edges: Annotated[
        str, typer.Option("--edges", metavar="LIST", help="Where each further bucket begins.")
    ] = "20,30,40,50",
    count: Annotated[
        bool, typer.Option("--count", help="Count the buckets (the default).")
    ] = False,
    annotate: Annotated[
        bool, typer.Option("--annotate", help="Write the stream with the bucket of each segment.")
    ] = False,
    split_to: Annotated[
        str | None,
        typer.Option("--split-to", metavar="TEMPLATE", help="Write a file for each bucket."),
    ] = None,
    src: Annotated[
        str | None,
        typer.Option("--src", metavar="FILE", help="Measure this text, parallel to the others."),
    ] = None,
    kind: Kind = "auto",
    output: Out = "-",
    line_buffered: LineBuffered = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Counts, labels or splits segments by the length of their source, in words.

    --edges 20,30,40,50 makes the buckets 0-19, 20-29, 30-39, 40-49 and 50+: each edge begins
    a bucket. An empty line has length 0.

    Text: several FILEs are parallel, line by line, and the first is measured, or --src, whose
    lines are not written. Words are between white space. JSONL: the field `words`, or where
    it is absent the words of `src`. CoNLL-U: syntactic words; sentences with the same
    synmt_line are one segment. Several FILEs of records are read one after the other.

    --annotate gives JSONL the field `bucket`, CoNLL-U the comment synmt_bucket, and text a
    first column, before a TAB; parallel lines follow with TABs between them.

    --split-to puts {bucket} into the file's name, and for parallel text {name}, the last part
    of each FILE, or {side}, its number from 1. Every bucket gets its file, if empty. The
    files appear when all of them are complete; where the input is bad, none does.
    """
    from synmt_cli.core.segments import bucketing
    from synmt_cli.core.segments.buckets import parse_edges

    buckets = parse_edges(edges)
    if count + annotate + (split_to is not None) > 1:
        raise UsageError("one of --count, --annotate and --split-to at a time")
    if split_to is not None and output != "-":
        raise UsageError("--split-to names its files: no --output")
    paths = files or ["-"]
    if [*paths, src].count("-") > 1:
        raise UsageError("only one input can be stdin")
    with bucketing.opened(paths, kind, src) as stream:
        if split_to is not None:
            stream.split(buckets, split_to, [*paths, *([src] if src else [])])
            return
        with writing.output(output, line_buffered) as writer:
            for line in stream.labelled(buckets) if annotate else [stream.table(buckets)]:
                writer.write(line)
