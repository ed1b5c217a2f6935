"""`synmt challenge`: the sentences in which words are far from their heads."""

import contextlib
from collections.abc import Sequence
from typing import Annotated, Literal

from synmt_cli import console
from synmt_cli.commands import Manual, completion, options
from synmt_cli.commands.options import option
from synmt_cli.core.challenge import phenomena as core
from synmt_cli.core.segments import splitting
from synmt_cli.core.segments.reader import parallel
from synmt_cli.errors import UsageError, quoted
from synmt_cli.io import reading, writing

MANUAL = Manual(
    input="CoNLL-U of the side with the phenomenon, source or reference. --src, --tgt: text, one"
    " line for each of its segments.",
    output="The selected blocks, each sentence with its words and their heads in a comment:"
    " `# synmt_challenge = particle:6:3`. --format text and ids: a line for each segment,"
    " `12<TAB>LINE<TAB>LINE` with --src or --tgt. --format counts:"
    " `particle<TAB>786<TAB>3.9<TAB>812` for each phenomenon, under a header. --format labels:"
    " `particle` or `none` for each segment.",
    memory="One segment.",
    examples=(
        "synmt challenge test.en.conllu --phenomenon particle --format counts",
        "synmt challenge test.en.conllu --phenomenon particle --format labels > particle.labels",
        "synmt challenge train.en.conllu --phenomenon particle --min-dist 2 --format text",
        "synmt challenge test.en.conllu --phenomenon particle --src test.en --tgt test.de"
        " --out-template 'challenge.{phenomenon}.{name}'",
        "synmt challenge train.de.conllu --deprel '^obj$' --upos '^NOUN$' --exactly 3"
        " --format ids --tgt train.en",
        "synmt challenge test.en.conllu --lemma '^not$' --min-dist 2 --format counts",
        "synmt parse -m en.udpipe test.en | synmt challenge --phenomenon particle"
        " --phenomenon reflexive > hard.conllu",
    ),
    see_also=("parse", "filter", "score", "bucket-by-length", "mixup make"),
)
Form = Literal["conllu", "text", "ids", "counts", "labels"]
DISTANCE = 1  # --min-dist
COUNTS = "counts or labels"
OWN = "own"  # the condition of --form, --lemma, --upos, --feats and --deprel


def challenge(
    files: options.Files = None,
    phenomena: Annotated[
        list[str] | None,
        option(
            f"--phenomenon {'|'.join(core.PHENOMENA)}",
            "Phenomenon to search for; repeatable.",
            autocompletion=completion.phenomenon,
        ),
    ] = None,
    word: Annotated[
        str, option("--form REGEX", "A condition of your own on FORM; all given must hold.")
    ] = "",
    lemma: Annotated[str, option("--lemma REGEX", "The same on LEMMA.")] = "",
    upos: Annotated[str, option("--upos REGEX", "The same on UPOS.")] = "",
    feats: Annotated[str, option("--feats REGEX", "The same on FEATS.")] = "",
    deprel: Annotated[str, option("--deprel REGEX", "The same on DEPREL.")] = "",
    min_dist: Annotated[
        int | None,
        option(
            "--min-dist K",
            "Words with a distance of more than K from their heads.",
            shown_default="1",
            min=0,
        ),
    ] = None,
    exactly: Annotated[
        int | None, option("--exactly K", "Words with a distance of exactly K.", min=1)
    ] = None,
    src: Annotated[
        list[str] | None, option("--src FILE", "Source lines to select too; repeatable.")
    ] = None,
    tgt: Annotated[
        list[str] | None,
        option("--tgt FILE", "Target lines to select too: references, outputs; repeatable."),
    ] = None,
    template: Annotated[
        str | None,
        option(
            "--out-template TEMPLATE",
            "Write a file for each input: names with {phenomenon}, {name} or {side}.",
        ),
    ] = None,
    form: Annotated[Form, option("--format", "What to write.")] = "conllu",
    output: options.Output = "-",
    line_buffered: options.LineBuffered = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Select the sentences in which a word is far from its head (Choshen and Abend, 2019).

    The distance of a word is |id - head|, 1 for neighbours: --min-dist 1, the default, asks
    for a word in between, --exactly 3 for two. Ids are those of syntactic words; multiword
    tokens and empty nodes are ignored, and a root has no distance. The phenomena:

    \b
      particle               DEPREL contains prt: "look the word up"
      reflexive              FEATS contain Reflex=Yes: "an die sich der Plan richtet"
      preposition-stranding  UPOS is ADP, and DEPREL contains obl, or is case and the word
                             follows its head: "what do you look at" (in synmt synth: stranding)

    --form, --lemma, --upos, --feats and --deprel make one more condition, `own`; a word has to
    meet all that are given. Each is a regular expression in Python's syntax, searched for in its
    column: `prt` matches `compound:prt`, and `^obl$` excludes subtypes. (?i) in front ignores
    case. FEATS are as in the file, `Case=Acc|Number=Sing`, so | is written as \\| there.

    A segment is selected if any of its words meets any condition; sentences with the same
    synmt_line are one segment. A warning names each condition that no word meets, near its head or
    far from it: the treebank may not mark it. Several FILEs are read one after the other. Parse the
    source for challenges of the source side, the reference for those of the target side.

    --src and --tgt have a line for each segment of CoNLL-U. Their selected lines follow after
    TABs with --format text and ids, --src first; a TAB inside a line becomes a space. With
    --out-template every input gets a file: {phenomenon} in the name makes a file for each
    phenomenon, otherwise all go together; {name} is the last part of FILE, {side} its number, 1 for
    CoNLL-U. Every file is written, even an empty one; if the input is bad, none is.

    --format counts counts selected segments and words, with the rows `any` and `all` at the end.
    --format labels writes a line for every segment, selected or not: the names of its phenomena,
    joined by +, or `none`. `score --by labels:FILE` reads it.
    """
    paths, further = files or ["-"], [*(src or []), *(tgt or [])]
    options.refuse_clashes([*paths, *further], output)
    _check(form, bool(further), template is not None, output)
    options.refuse({"--line-buffered is not for --out-template": template and line_buffered})
    own = core.Condition(OWN, word, lemma, upos, feats, deprel)
    conditions = _conditions(phenomena or [], own)
    finder = core.Finder(conditions, *_range(min_dist, exactly))
    names = list(dict.fromkeys(one.name for one in conditions))
    outputs = _outputs(template, names, paths, further) if template is not None else {}
    with contextlib.ExitStack() as stack:
        sources = [stack.enter_context(reading.open_source(path)) for path in further]
        bar = stack.enter_context(console.progress("searched", None, "segments", paths, output))
        selected = parallel(bar.watched(core.segments(paths, finder)), sources)
        if template is not None:
            core.split(selected, outputs, form)
        else:
            writer = stack.enter_context(writing.output(output, line_buffered))
            for record in core.written(selected, form, names):
                writer.write(record)
        for name in (one for one in names if one in finder.unmet):
            console.warn(f"{name}: no word meets this condition, near its head or far from it")


def _check(form: str, others: bool, split: bool, output: str) -> None:
    if split and (output != "-" or form in ("counts", "labels")):
        raise UsageError(f"--out-template names its files: no --output, no --format {COUNTS}")
    if others and not split and form in ("conllu", "counts", "labels"):
        problem = f"need --out-template, or --format text or ids, not {form}"
        raise UsageError(f"--src and --tgt {problem}")


def _conditions(phenomena: Sequence[str], own: core.Condition) -> list[core.Condition]:
    for name in phenomena:
        if name not in core.PHENOMENA:
            known = ", ".join(core.PHENOMENA)
            raise UsageError(f"no phenomenon {quoted(name)}; there are {known}")
    conditions = [one for name in dict.fromkeys(phenomena) for one in core.PHENOMENA[name]]
    if own.patterns:
        conditions.append(own)
    if not conditions:
        columns = ", ".join(f"--{name}" for name in core.COLUMNS)
        raise UsageError(f"say what to look for: --phenomenon, or {columns}")
    return conditions


def _range(min_dist: int | None, exactly: int | None) -> tuple[int, int | None]:
    """The least and the greatest distance."""
    if exactly is None:
        return (DISTANCE if min_dist is None else min_dist) + 1, None
    if min_dist is not None:
        raise UsageError("give --min-dist or --exactly, not both")
    return exactly, exactly


def _outputs(
    template: str, names: Sequence[str], paths: Sequence[str], further: Sequence[str]
) -> dict[str, list[str]]:
    values = names if "{phenomenon}" in template else [core.ANY]
    sides = [paths[0] if len(paths) == 1 else "", *further]
    filled = splitting.filled(template, "phenomenon", values, sides)
    splitting.refuse_inputs(filled, [*paths, *further])
    return dict(zip(values, filled, strict=True))
