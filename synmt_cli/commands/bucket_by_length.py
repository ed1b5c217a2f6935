"""`synmt bucket-by-length`: segments by the length of their source."""

from typing import Annotated, Literal

from synmt_cli.commands import Manual, completion, options
from synmt_cli.commands.options import option
from synmt_cli.errors import UsageError
from synmt_cli.io import writing

MANUAL = Manual(
    input="Parallel text, one segment a line; or JSONL records; or CoNLL-U.",
    output="--format counts: `20-29<TAB>765<TAB>25.5` for each bucket, under a header. labelled:"
    " the stream with its buckets, `20-29<TAB>A line of text` for text. --out-template: files.",
    memory="One segment.",
    examples=(
        "synmt bucket-by-length train.en --by length:5,8,12",
        "synmt bucket-by-length test.en test.de --by length:5,8"
        " --out-template 'by.{bucket}.{name}'",
        "synmt bucket-by-length pascal.de --src test.en --by length:8"
        " --out-template '{bucket}.{name}'",
        "synmt bucket-by-length test.en.conllu --by length:5,8 --format labelled > labelled.conllu",
        'synmt bucket-by-length --format labelled < train.jsonl | grep -c \'"bucket":"0-19"\'',
    ),
    see_also=("score", "featurize"),
)


def bucket_by_length(
    files: options.Files = None,
    by: Annotated[
        str,
        option(
            "--by length:EDGES",
            "The length at which each bucket after the first begins.",
            autocompletion=completion.length,
        ),
    ] = "length:20,30,40,50",
    form: Annotated[
        Literal["counts", "labelled"],
        option("--format", "Count the buckets, or write each segment with its bucket."),
    ] = "counts",
    template: Annotated[
        str | None, option("--out-template TEMPLATE", "Write a file for each bucket.")
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

    --by length:20,30,40,50 makes the buckets 0-19, 20-29, 30-39, 40-49 and 50+: each edge
    begins a bucket. An empty line has length 0.

    Text: several FILEs are parallel, line by line; the first one is measured, or --src, whose
    lines are not written. Words are between white space. JSONL: the field `words`, or without it
    the words of `src`. CoNLL-U: syntactic words; sentences with the same synmt_line are one
    segment. Several FILEs of records are read one after the other.

    --format labelled adds the field `bucket` to JSONL, the comment synmt_bucket to CoNLL-U, and
    a first column to text, before a TAB; parallel lines follow with TABs between them. A TAB inside
    one of these lines becomes a space.

    --out-template puts {bucket} into the file name, and for parallel text {name}, the last part of
    each FILE, or {side}, its number from 1. Every bucket gets a file, even an empty one. The
    files appear when all of them are complete; if the input is bad, none does.
    """
    from synmt_cli.core.jobs import bucketing
    from synmt_cli.core.segments.buckets import length_buckets

    buckets = length_buckets(by)
    if template is not None and (output != "-" or form == "labelled" or line_buffered):
        problem = "no --output, no --format labelled, no --line-buffered"
        raise UsageError(f"--out-template names its files: {problem}")
    paths = files or ["-"]
    if form == "counts":
        options.refuse_clashes([*paths, src], output)
    else:
        options.refuse_clashes([src], output, rewritten=paths)
    with bucketing.opened(paths, kind, src) as stream:
        if template is not None:
            stream.split(buckets, template, [*paths, *([src] if src else [])])
            return
        with writing.output(output, line_buffered) as writer:
            for line in stream.labelled(buckets) if form == "labelled" else [stream.table(buckets)]:
                writer.write(line)
