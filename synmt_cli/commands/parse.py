"""`synmt parse`: text to CoNLL-U."""

from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Annotated

from synmt_cli import console, pool
from synmt_cli.commands import Manual, options
from synmt_cli.commands.options import option
from synmt_cli.core.jobs import parse as job
from synmt_cli.core.jobs.work import where_of_lines
from synmt_cli.core.segments.known_trees import KnownFile
from synmt_cli.core.text import udpipe
from synmt_cli.core.text.parser_language import watched
from synmt_cli.formats import conllu
from synmt_cli.formats.record import EMPTY, UNPARSED
from synmt_cli.io import writing

MANUAL = Manual(
    input="One segment a line: `The dog sleeps .`",
    output="One block a segment: `2\tdog\tdog\tNOUN\t_\t_\t3\tnsubj\t_\tTokenRange=4:7`",
    memory="The model once, shared by the processes of -j, and for each process at most "
    f"{(pool.IN_FLIGHT + 2) * job.CHUNK} segments of at most {udpipe.MAX_CHARACTERS:,} characters; "
    "with --known, the trees of that file.",
    examples=(
        "synmt parse -m en.udpipe test.en > test.parsed.conllu",
        "head -3 test.en | synmt parse -m en.udpipe -j 2 --segment split",
        "synmt parse -m en.udpipe --no-lemmas --beam 2 -j 2 test.en > test.parsed.conllu",
        "synmt parse --known test.en.conllu test.en > test.known.conllu",
        "synmt parse -m en.udpipe --from conllu test.en.conllu -o test.again.conllu",
    ),
    see_also=("parser train", "featurize"),
)


def parse(
    model: Annotated[str, option("-m, --model MODEL", "The UDPipe 1 model to apply.")] = "",
    files: options.Files = None,
    known: Annotated[
        str,
        option("--known FILE", "CoNLL-U: lines with the text of one of its trees get this tree."),
    ] = "",
    on_bad_tree: options.OnBadTree = "error",
    input: Annotated[
        job.InputKind,
        option(
            "--from",
            "text: lines, tokenised by the model. tokens: words with spaces between them. "
            "conllu: tokenised sentences, to be tagged and parsed (again).",
        ),
    ] = "text",
    segment: Annotated[
        job.Segmentation,
        option("--segment", "line: one tree for each line. split: one for each sentence in it."),
    ] = "line",
    beam: Annotated[
        int,
        option("--beam K", "Beam size of the parser; 1 is greedy and fastest.", min=1, max=64),
    ] = udpipe.BEAM,
    no_lemmas: Annotated[
        bool, option("--no-lemmas", "Leave LEMMA out: the same trees, faster with most models.")
    ] = False,
    jobs: options.Jobs = 1,
    output: options.Output = "-",
    line_buffered: options.LineBuffered = False,
    strict: options.Strict = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Parse text with a UDPipe model: one block of CoNLL-U for each line, in order.

    Each block has the comments sent_id (the number of the line over all files) and text
    (the line as it is); TokenRange in MISC gives the characters of the line that a word spans.
    An empty or blank line becomes a block of one word `_` with synmt_status = empty. A line
    that gets no tree becomes one with synmt_status = failed and a synmt_reason; failed lines
    are counted at the end, and --strict stops at the first.

    With --segment split, a line N of k sentences becomes the blocks N.1 to N.k with
    synmt_line = N, which featurize joins again; their texts together are the line.

    With --known, a line that is the text of a tree in FILE gets this tree, unchanged but for its
    id: the comment text has to be the line, or without one the words joined. The first of several
    trees with the same text counts. All other lines are parsed; without -m they are an error. The
    number of lines that have a tree is reported at the end. A sentence in FILE that is not a tree,
    such as one with two roots, ends the run. With --on-bad-tree failed its line is parsed like one
    that has no tree, and without -m it becomes a failed block with the reason; both are counted.

    With --from conllu, ranges, comments, MISC, empty nodes and DEPS stay as they are: DEPS may then
    name another head than the new HEAD. HEAD and DEPREL are replaced, whatever they are: a tree, or
    none, or `_` for every word, as from a tokenizer.

    A parser of another language gives trees that mean nothing. So there is a warning if the model
    knows fewer than 20 of the 50 most frequent words in the first 2,000 words of the input; with
    fewer than 500 words nothing is said.

    Most of the time goes into tags. Models that were trained with a tagger for tags and another
    for lemmas, as the published ones are, need not run the second: with --no-lemmas LEMMA is `_`
    and all the rest is the same. A model whose parser reads lemmas keeps them. A smaller --beam
    is faster and a little less accurate (docs/parsers.md has figures).

    Sentences over 1,000 words are parsed greedily, because a beam takes quadratic time.
    """
    options.refuse(
        {
            "give -m MODEL, or --known FILE with a tree for each line": not model and not known,
            "--beam needs a parser: give -m MODEL": beam != udpipe.BEAM and not model,
            "--no-lemmas needs a parser: give -m MODEL": no_lemmas and not model,
            "--segment split needs a parser: give -m MODEL": segment == "split" and not model,
            "--on-bad-tree is for the trees of --known": on_bad_tree != "error" and not known,
            "--known is for text: --from conllu has sentences of its own": known
            and input == "conllu",
            "--segment split is for --from text: other input has its own sentences": segment
            == "split"
            and input != "text",
        }
    )
    _refuse_clashes([model, known], input, files or ["-"], output)
    file = KnownFile(known, on_bad_tree)
    recipe = pool.Recipe(
        partial(job.parsing, model, input, segment, strict, beam, not no_lemmas, file),
        tuple(path for path in (model, known) if path),
        pool.Care(where=where_of_lines, warn=console.warn),
    )
    unparsed = {status: Counter[str]() for status in UNPARSED}
    known_failures: Counter[str] = Counter()
    n_known = n_empty = 0
    with console.progress("parsed", files=files or ["-"], output=output) as bar:
        segments = bar.taken(job.segments(files or (), input))
        results = bar.finished(pool.mapped(recipe, segments, jobs, job.CHUNK))
        if model:
            results = watched(results, model, console.warn)
        with writing.output(output, line_buffered) as writer:
            for parsed in results:
                writer.write(conllu.encoded(parsed.conllu))
                n_known += parsed.is_known
                n_empty += parsed.status == EMPTY
                if parsed.status in UNPARSED:
                    unparsed[parsed.status][parsed.reason] += 1
                elif parsed.known_failure:
                    known_failures[parsed.known_failure] += 1
                bar.advance()
    if known and model:
        say = console.info if n_known else console.warn
        say(f"{n_known:,} of {bar.done - n_empty:,} lines have a tree in {known}")
    for counts, what in (
        (known_failures, f"lines have a tree in {known} that failed, and were parsed"),
        *((counts, f"segments {status}") for status, counts in unparsed.items()),
    ):
        if counts:
            reasons = "; ".join(f"{reason} ({n:,})" for reason, n in counts.most_common(5))
            console.warn(f"{counts.total():,} of {bar.done:,} {what}: {reasons}")


def _refuse_clashes(
    models: Sequence[str], input: job.InputKind, files: Sequence[str], output: str
) -> None:
    """Lets only CoNLL-U be written to the file that it is read from: its trees change."""
    if input == "conllu":
        options.refuse_clashes(models, output, rewritten=files)
    else:
        options.refuse_clashes([*models, *files], output)
