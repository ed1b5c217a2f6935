"""`synmt delinearize`: transitions to text or CoNLL-U."""

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Annotated, Literal

from synmt_cli import console, pool
from synmt_cli.commands import Manual, options
from synmt_cli.commands.options import option
from synmt_cli.core.jobs.delinearize import DelinearizeJob, Format, TransitionLine, Written
from synmt_cli.core.jobs.work import where_of_lines
from synmt_cli.core.text.vocabulary import Vocabulary
from synmt_cli.core.transitions.delinearizer import Delinearizer
from synmt_cli.formats import record
from synmt_cli.formats.detect import detected
from synmt_cli.formats.record import UNPARSED
from synmt_cli.io import reading, writing

CHUNK = 64  # lines that travel to a worker at a time

MANUAL = Manual(
    input="A sequence of transitions a line, `The dog LEFT-ARC:det sleeps LEFT-ARC:nsubj`, or"
    " records with the field transitions, as linearize and featurize write them.",
    output="Text, a line for each: `The dog sleeps`. Or CoNLL-U, a block for each:"
    " `2\tdog\t_\t_\t_\t_\t3\tnsubj\t_\t_`.",
    memory=f"The longest line, {pool.IN_FLIGHT} N + 2 times {CHUNK} lines with -j N.",
    examples=(
        "synmt linearize --glue dev.en.conllu | synmt delinearize > words.en",
        "synmt linearize --on-nonprojective keep dev.en.conllu | synmt delinearize --format conllu"
        " | synmt evaltree dev.en.conllu -",
        "echo 'the dog LEFT-ARC:det sleeps' | synmt delinearize --repair --format conllu",
        "synmt featurize --spm spm.model --tgt-conllu dev.de.conllu dev.en.conllu"
        " | synmt delinearize --spm spm.model --format conllu -o dev.trees",
    ),
    see_also=("linearize", "translate", "evaltree"),
)


def delinearize(
    files: options.Files = None,
    spm: options.PieceVocabulary = None,
    format: Annotated[
        Literal["text", "conllu"], option("--format", "Write text, or trees.")
    ] = "text",
    kind: Annotated[
        Literal["auto", "text", "jsonl"],
        option("--from", "What the input is; auto looks at its first line."),
    ] = "auto",
    repair: Annotated[
        bool, option("--repair", "Turn a broken sequence into the nearest tree.")
    ] = False,
    jobs: options.Jobs = 1,
    output: options.Output = "-",
    line_buffered: options.LineBuffered = False,
    strict: options.Strict = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Turn transitions back into text or trees.

    The inverse of synmt linearize: words, heads and labels are restored; the word without a head
    is the root, with the label root. Words have single spaces between them, except where <+>
    joins them, which is SpaceAfter=No in CoNLL-U. An arc may be one token, or two, direction and
    label. An empty line, and a record without transitions because its status is not ok, becomes
    an empty line again, or the one word _ with its synmt_status.

    Transitions over pieces need their vocabulary, --spm, which joins pieces into words: that of
    the target if records have two (featurize --tgt-spm). Without it every token is a word; lines
    that begin with ▁, as pieces do, are counted in a warning.

    A sequence that builds no tree ends the run: an arc that finds fewer than two words, words
    left without a head, half an arc, a piece that continues no word. With --repair it becomes the
    nearest tree: words stay as they are, and as few arcs as possible are removed or added. An arc
    without two words is removed; words that are left at the end get RIGHT-ARC:dep, so each
    depends on the one left before it; half an arc gets the label dep, or is removed if the
    direction is missing; a piece that continues no word begins one. Repaired lines are counted
    at the end; --strict ends at the first of them, or at a failed or skipped record.
    """
    options.refuse_clashes([spm, *(files or ["-"])], output)
    recipe = pool.Recipe(
        partial(delinearizing, spm, repair, format, strict),
        () if spm is None else (spm,),
        pool.Care(where=where_of_lines, warn=console.warn),
    )
    n_lines = n_repairs = n_like_pieces = 0
    statuses: Counter[str] = Counter()
    with console.progress("delinearized", files=files or ["-"], output=output) as bar:
        lines = bar.taken(_lines(files or (), kind))
        every = bar.finished(pool.mapped(recipe, lines, jobs, CHUNK))
        with writing.output(output, line_buffered) as writer:
            for written in every:
                writer.write(written.data)
                bar.advance()
                n_repairs += written.n_repairs
                n_lines += written.n_repairs > 0
                n_like_pieces += written.seems_pieces
                statuses[written.status] += 1
    for status in UNPARSED:
        if n := statuses[status]:
            console.warn(f"{n:,} of {bar.done:,} lines {status}")
    if n_like_pieces:
        problem = f"{n_like_pieces:,} of {bar.done:,} lines begin with ▁ and were read as words"
        console.warn(f"{problem}: if they are pieces, give --spm MODEL")
    if n_lines:
        console.warn(f"{n_lines:,} of {bar.done:,} lines repaired, {n_repairs:,} tokens changed")


def delinearizing(
    spm: str | None, repair: bool, format: Format, strict: bool
) -> Callable[[TransitionLine], Written]:
    """The function of a worker. Raises Unavailable, ConfigError."""
    vocabulary = None if spm is None else Vocabulary.load(spm)
    return DelinearizeJob(Delinearizer(vocabulary, repair and not strict), format, strict).run


def _lines(files: Sequence[str], kind: str) -> Iterator[TransitionLine]:
    ids = map(str, itertools.count(1))
    for kind_of_file, source in detected(files, kind):
        is_json = kind_of_file == "jsonl"
        lines = record.lines(source) if is_json else reading.lines(source)
        for number, data in enumerate(lines, 1):
            yield TransitionLine(source.name, number, next(ids), data, is_json)
