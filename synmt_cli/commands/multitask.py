"""`synmt multitask`: records that teach translation and syntax by data."""

from collections.abc import Sequence
from typing import Annotated, Literal

from synmt_cli import console
from synmt_cli.commands import Manual, options
from synmt_cli.commands.options import option
from synmt_cli.core.jobs import multitask as job
from synmt_cli.core.jobs.done import Done
from synmt_cli.core.text.vocabulary import Vocabulary
from synmt_cli.errors import UsageError
from synmt_cli.formats import record
from synmt_cli.io import writing

MANUAL = Manual(
    input="JSONL records with trees and pieces, as featurize --spm writes them; --format symbols"
    " needs no pieces.",
    output='Records: `{"id":"1:TR",…,"pieces":["<TR>","▁A","▁dog","<TR>"],…}` and'
    ' `{"id":"1:PA",…,"pieces":["<PA>","▁A","▁dog","<PA>"],…,"tgt":"(root (det ) )",'
    '"tgt_pieces":["<(root>","<(det>","<)>","<)>"],…}`. With --format symbols: `<(nsubj>` a line.',
    memory="One record; with --format symbols the labels.",
    examples=(
        "synmt featurize train.en.conllu | synmt multitask --format symbols > symbols.txt",
        "synmt multitask --format symbols train.jsonl | synmt vocab train --symbols - --size 300"
        " train.en train.de -o tasks.model",
        "synmt featurize --spm tasks.model --tgt train.de train.en.conllu | synmt multitask --spm"
        " tasks.model > multi.jsonl",
        "synmt featurize --spm tasks.model --tgt dev.de dev.en.conllu | synmt multitask --spm"
        " tasks.model --task translate > multi.dev.jsonl",
        "synmt featurize --spm tasks.model --tgt train.de train.en.conllu | synmt multitask --spm"
        " tasks.model --scheme mixed-encoder > mixed.jsonl",
    ),
    see_also=("vocab train", "featurize", "train"),
)


def multitask(
    files: options.Files = None,
    spm: Annotated[
        str | None, option("--spm MODEL", "Vocabulary of the records, with symbols.")
    ] = None,
    tgt_spm: options.TargetVocabulary = None,
    scheme: Annotated[job.Scheme, option("--scheme", "What to make of each record.")] = "multitask",
    task: Annotated[
        job.Task,
        option("--task", "Which records to write: translate for dev and test sets."),
    ] = "both",
    penn: Annotated[
        str | None,
        option(
            "--penn FILE", "Take constituents from here, a line of Penn brackets for each record."
        ),
    ] = None,
    brackets: Annotated[
        Literal["symbols", "text"],
        option("--brackets", "Write brackets as symbols, or as text split into pieces."),
    ] = "symbols",
    form: Annotated[
        Literal["jsonl", "symbols"],
        option(
            "--format",
            "Write records, or only the symbols that the vocabulary needs, one a line.",
        ),
    ] = "jsonl",
    output: options.Output = "-",
    line_buffered: options.LineBuffered = False,
    strict: options.Strict = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Make records that teach a plain model syntax (Currey and Heafield 2019).

    multitask makes two records of each one: the source between the tags <TR>, with its
    translation, and the source between the tags <PA>, with its parse as brackets without
    words. --task translate writes only the first, which is what a model is validated and
    tested on. mixed-encoder writes the record itself and one whose source has brackets around
    the pieces of its words, both with the translation; it uses no tags, and a model is tested
    on plain records.

    The brackets are those of the dependency tree, labelled by relation, in the order of the
    sentence: `(root (nsubj (det ) ) (obj ) )`. Each word is a bracket; in mixed-encoder the word
    itself stands between the brackets of its left and right dependents. Where a tree is not
    projective, the dependents of each word keep their order. A line of several sentences has a
    bracket for each.

    These are not the constituents of the paper. For constituents give their trees by --penn, a
    line for each record: `(ROOT (S (NP (DT The) …`. Parts of speech are left out, and for
    multitask the words too: `(ROOT (S (NP ) … ) )`. An outermost bracket without a label is
    ROOT; a line may hold several trees, or none: empty, () or (()). For mixed-encoder the words
    of a tree are searched for in the text of the record, with -LRB- as a parenthesis and `` and
    '' as any quotation mark.

    Tags and brackets are symbols of the vocabulary, which no text becomes, so the vocabulary
    must be trained with them: --format symbols writes them, from records or with --penn from trees.
    --brackets text needs only the tags: brackets are split into pieces like any text, as in the
    paper.

    Ids end in :TR and :PA. A record that is not ok, or has no tree, gives no parse; it is counted,
    and --strict stops there (65), unless --task translate asks for no parses. An empty line is not
    a failure.
    """
    if form == "symbols":
        options.refuse(
            {
                "--brackets text needs no symbols for labels, only the two tags: <TR>, <PA>": (
                    brackets == "text"
                ),
                "--format symbols lists symbols: it takes no --spm, --tgt-spm, --strict": (
                    spm or tgt_spm or strict
                ),
            }
        )
        _write_symbols(files or (), penn, output)
        return
    options.refuse_clashes([penn, spm, tgt_spm, *(files or ["-"])], output)
    if spm is None:
        raise UsageError("--spm MODEL is missing (or --format symbols)")
    source = Vocabulary.load(spm)
    target = source if tgt_spm is None else Vocabulary.load(tgt_spm)
    maker = job.MultitaskJob(source, target, scheme, task, penn is not None, brackets == "text")
    done = Done()
    with (
        writing.output(output, line_buffered) as writer,
        console.progress("made", None, "records", files or ["-"], output) as bar,
    ):
        records = bar.taken(job.records_with_trees(files or (), penn))
        for one, place, tree in bar.finished(records):
            made = maker.make(one, place, tree)
            done.count(record.FAILED if made.problem else record.OK, made.problem, place, strict)
            for new in made.records:
                writer.write(record.to_bytes(new))
            bar.advance()
    if n := done.statuses[record.FAILED]:
        console.warn(f"{n:,} of {bar.done:,} records have no parse")
        console.warn(f"the first of them: {done.first_failure}")


def _write_symbols(files: Sequence[str], penn: str | None, output: str) -> None:
    if files and penn is not None:
        raise UsageError("--format symbols reads records or --penn FILE, not both")
    options.refuse_clashes([penn] if penn is not None else files or ["-"], output)
    with writing.output(output) as writer:
        for symbol in job.symbols(job.labels_of(files, penn)):
            writer.write(symbol.encode() + b"\n")
