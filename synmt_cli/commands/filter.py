"""`synmt filter`: the pairs that are fit to train on."""

import math
from functools import partial
from typing import Annotated, Literal

from synmt_cli import console, pool
from synmt_cli.commands import Manual, options
from synmt_cli.commands.options import option
from synmt_cli.core.filtering import criteria, line_hashes, outputs, pairs
from synmt_cli.core.filtering.criteria import Criterion
from synmt_cli.core.filtering.languages import Languages
from synmt_cli.core.filtering.line_hashes import Digests
from synmt_cli.core.filtering.outputs import Mode
from synmt_cli.core.filtering.sieve import CHUNK, Sieve
from synmt_cli.core.text.scripts import Sample

MANUAL = Manual(
    input="JSONL records; or text, one segment a line; or CoNLL-U. --tgt: text.",
    output="The input without the pairs that a test rejects. --rejects: the record with"
    ' `"filtered":"max-len: 93 target words"`, or `max-len: 93 target words<TAB>A line<TAB>Eine'
    " Zeile` for text, or the comment synmt_filtered. --format counts: `lang<TAB>88<TAB>0.4` for"
    " each test, under a header.",
    memory=f"One pair, {pool.IN_FLIGHT} N + 2 times {CHUNK} with -j N; {line_hashes.LEAST_BYTES} to"
    f" {line_hashes.MOST_BYTES} bytes for each line of --exclude and each pair that --dedup keeps,"
    f" {line_hashes.GROWING_BYTES} while they grow; 120 MiB for --lang, once for all processes.",
    examples=(
        "synmt filter train.en --tgt train.de --max-len 80 -o clean.en --tgt-out clean.de",
        "synmt filter train.jsonl --dedup pair --exclude test.en --exclude test.de > clean.jsonl",
        "synmt filter train.jsonl --lang en-de --rejects rejects.jsonl -j 2 -o clean.jsonl",
        "synmt filter train.jsonl --unit pieces --max-len 40 --ratio 2.5 --format counts",
        "synmt filter train.en.conllu --projective | synmt featurize --spm spm.model > t.jsonl",
        "synmt filter train.jsonl --format marked --max-tgt-pieces 20 | grep -c '\"skipped\"'",
    ),
    see_also=("parse", "featurize", "train"),
)


def filter(
    files: options.Files = None,
    tgt: Annotated[str | None, option("--tgt FILE", "Target lines, for text and CoNLL-U.")] = None,
    tgt_out: Annotated[
        str | None, option("--tgt-out FILE", "Write the kept lines of --tgt here.")
    ] = None,
    kind: options.InputKind = "auto",
    min_len: Annotated[
        int, option("--min-len N", "At least N units; 0 keeps empty lines.", min=0)
    ] = 1,
    max_len: Annotated[int | None, option("--max-len N", "At most N units.", min=1)] = None,
    unit: Annotated[
        Literal["words", "chars", "pieces"],
        option(
            "--unit",
            "Unit of lengths: words between white space, characters, or pieces of records.",
        ),
    ] = "words",
    max_word_len: Annotated[
        int | None, option("--max-word-len N", "At most N characters in a word.", min=1)
    ] = None,
    ratio: Annotated[
        float | None,
        option("--ratio R", "Greatest ratio of the longer to the shorter side.", min=1),
    ] = None,
    max_tgt_pieces: Annotated[
        int | None,
        option("--max-tgt-pieces N", "At most N target pieces, not counting transitions.", min=1),
    ] = None,
    align_scores: Annotated[
        str | None, option("--align-scores FILE", "Scores of the pairs, one a line.")
    ] = None,
    min_align: Annotated[
        float | None, option("--min-align X", "Smallest score of --align-scores to keep.")
    ] = None,
    projective: Annotated[
        bool, option("--projective", "Only source trees without crossing arcs.")
    ] = False,
    on_bad_tree: options.OnBadTree = "error",
    exclude: Annotated[
        list[str] | None,
        option("--exclude FILE", "Reject the lines of this file, such as a test set; repeatable."),
    ] = None,
    exclude_kind: options.ExcludedKind = "auto",
    exclude_side: Annotated[
        Literal["any", "src", "tgt"], option("--exclude-side", "The side that --exclude compares.")
    ] = "any",
    lang: Annotated[
        str | None, option("--lang SRC-TGT", "Languages of both sides, such as de-en.")
    ] = None,
    lang_prob: Annotated[
        float,
        option(
            "--lang-prob P",
            "Reject if the expected language is the likeliest with less than P.",
            min=0,
            max=1,
        ),
    ] = 0.0,
    lang_sure: Annotated[
        float,
        option(
            "--lang-sure P",
            "Reject for another language only if its probability is at least P.",
            min=0,
            max=1,
        ),
    ] = 0.0,
    dedup: Annotated[
        Literal["pair", "src", "tgt"] | None,
        option("--dedup", "Keep only the first of the pairs that share this."),
    ] = None,
    rejects: Annotated[
        str | None, option("--rejects FILE", "Write rejected pairs with the reason.")
    ] = None,
    form: Annotated[
        Literal["kept", "marked", "counts"],
        option(
            "--format",
            "The pairs that pass; or all pairs, with the rejected ones marked as skipped; or how "
            "many pairs each test rejects.",
        ),
    ] = "kept",
    jobs: options.Jobs = 1,
    output: options.Output = "-",
    line_buffered: options.LineBuffered = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Keep the pairs that pass every test asked for, in order and unchanged.

    Several FILEs are read one after the other. Records hold both sides; for text and CoNLL-U, --tgt
    gives the target side, whose kept lines go to --tgt-out. Without a target, only the source is
    tested. The tests, in the order in which they are made; a pair is counted under the first that
    it fails:

    \b
      status          not failed or skipped before (always)
      min-len         a pair with an empty or blank side has length 0 (always; 1 by default)
      max-len, max-word-len, ratio
                      as in Moses's clean-corpus-n: both sides, limits included
      max-tgt-pieces  counts tgt_pieces, or the pieces among the transitions
      min-align       lines of --align-scores: a number, alone or after ||| (fast_align -s)
      projective      no arcs of the source tree cross, not even the arc to the root
      exclude         FILEs are text, records or CoNLL-U; both sides of records count
      lang            the likeliest of the 139 languages of py3langid, on both sides
      dedup           among the pairs that pass all other tests

    White space splits Chinese, Japanese, Thai and others into whole clauses: use --unit chars where
    a side has no spaces between words. Then 100 English words are about 600 characters, 170 in
    Chinese, 440 in Thai.

    A sentence of CoNLL-U that is not a tree, such as one with two roots, ends the run; with
    --on-bad-tree failed it is a failed one, which the test status rejects. With --format marked it
    becomes a block with synmt_status failed in its place, so that every command reads the output:

    \b
      synmt filter --on-bad-tree failed --min-len 0 --format marked other.conllu > trees.conllu

    Lengths are those of the lines, whatever the input is, so that text and the records made
    of it give the same pairs. --min-len 0 also lets pairs of blank lines through all tests.
    For --exclude and --dedup, lines are the same if they differ only in white space or Unicode
    composition (NFC).

    --lang de-en rejects a pair if the likeliest language of either side is another one, or if
    there is no evidence for any, as in a number. Lines of two or three words are often taken
    for something else, with a low probability: --lang-sure 0.5 lets them pass, and lines without
    evidence too. --lang de tests the source alone. This test takes nearly all of the time, and -j
    is for it alone.

    --format marked writes every pair: records and CoNLL-U with status skipped and the reason (those
    that have a status, such as empty, keep it), text after a first column with `ok` or the reason.
    In text with --tgt, also in --rejects, a TAB inside a line becomes a space. The number of pairs
    that each test rejects goes to stderr.

    As in Bugliarello and Okazaki (2020), after tokenising (they use langdetect, also by the
    likeliest language of each side, without a threshold):

    \b
      synmt filter train.de --tgt train.en --max-len 80 --ratio 9 --max-word-len 1000 \\
        --lang de-en -o clean.de --tgt-out clean.en

    As in Choshen and Abend (2021), whose alignment scores are fast_align's, for noisy data only:

    \b
      synmt filter train.jsonl --max-tgt-pieces 40 --lang en-ru --align-scores scores \\
        --min-align -180 > clean.jsonl
    """
    mode = Mode(form)
    counts_words = unit == "words" and (min_len > 1 or max_len or ratio)
    keeps, paths, excluded = mode is Mode.KEPT, files or ["-"], exclude or []
    unfit = {
        "--tgt-out is for the kept lines of --tgt; not for --format marked or counts": (
            tgt_out is not None and (tgt is None or not keeps)
        ),
        "--tgt needs --tgt-out FILE, where its kept lines go": (
            tgt is not None and tgt_out is None and keeps
        ),
        "-o, --tgt-out and --rejects must be different files": (
            options.is_written_twice((output, tgt_out, rejects))
        ),
        "--align-scores and --min-align go together": (
            (align_scores is None) != (min_align is None)
        ),
        "--min-align is a number, not nan": min_align is not None and math.isnan(min_align),
        "--lang-prob and --lang-sure need --lang": lang is None and max(lang_prob, lang_sure) > 0,
        f"--min-len {min_len} is above --max-len {max_len}": max_len and min_len > max_len,
        "--exclude-format needs --exclude": not excluded and exclude_kind != "auto",
        "--exclude-side needs --exclude": not excluded and exclude_side != "any",
    }
    options.refuse(unfit)
    others = [*excluded, align_scores]
    options.refuse_clashes([*others, tgt], output, rewritten=paths)
    options.refuse_clashes([*others, *paths], tgt_out, rewritten=[tgt])
    options.refuse_clashes([*others, *paths, tgt], rejects)
    problems = {
        "status": criteria.status,
        "min-len": min_len and partial(criteria.length, least=min_len, unit=unit),
        "max-len": max_len and partial(criteria.length, most=max_len, unit=unit),
        "max-word-len": max_word_len and partial(criteria.word_length, most=max_word_len),
        "ratio": ratio and partial(criteria.ratio, most=ratio, unit=unit),
        "max-tgt-pieces": max_tgt_pieces and partial(criteria.target_pieces, most=max_tgt_pieces),
        "min-align": min_align is not None and partial(criteria.alignment, least=min_align),
        "projective": projective and criteria.projective,
        "exclude": excluded
        and partial(
            criteria.excluded,
            lines=pairs.digests_of(excluded, exclude_kind, on_bad_tree),
            side=exclude_side,
        ),
    }
    sieve = Sieve(
        [Criterion(name, problem) for name, problem in problems.items() if callable(problem)],
        Languages(lang, lang_prob, lang_sure) if lang is not None else None,
        Criterion("dedup", partial(criteria.repeated, seen=Digests(), side=dedup))
        if dedup is not None
        else None,
        keep_empty=min_len == 0,
    )
    samples = [Sample() for _ in pairs.SIDES] if counts_words else []
    with (
        outputs.opened(mode, output, tgt_out, rejects, line_buffered) as destinations,
        pairs.opened(paths, kind, tgt, align_scores, on_bad_tree) as stream,
        console.progress("filtered", unit="pairs", files=paths, output=output) as bar,
    ):
        for pair, reason in bar.finished(sieve.sift(bar.taken(stream), jobs)):
            for sample, text in zip(samples, pair.texts, strict=False):
                sample.add(text)
            destinations.take(pair, reason)
            bar.advance()
        destinations.finish(sieve.names)
    if mode is not Mode.COUNTS:
        console.info(destinations.summary(sieve.names))
    for side, sample in zip(pairs.SIDES, samples, strict=False):
        if writing := sample.unspaced():
            console.warn(
                f"the {side} has {writing.name} without spaces, whose clauses count as words: use "
                "--unit chars, and limits for characters"
            )
