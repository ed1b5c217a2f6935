"""`synmt featurize`: CoNLL-U, or text, to JSONL records."""

import contextlib
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, Literal

from synmt_cli import console, pool
from synmt_cli.commands import Manual, completion, conllu_work, options
from synmt_cli.commands.options import option
from synmt_cli.core.jobs.cutting import (
    batches,
    cut_by_line,
    text_lines,
    with_target_trees,
    with_targets,
)
from synmt_cli.core.jobs.done import Done
from synmt_cli.core.jobs.featurize import Featurizer
from synmt_cli.core.jobs.work import Work, where
from synmt_cli.core.segments.bad_trees import OnBadTree
from synmt_cli.core.text.vocabulary import Vocabulary
from synmt_cli.core.transitions.linearizer import Linearizer
from synmt_cli.core.trees.features import EMITTED
from synmt_cli.errors import UsageError, quoted
from synmt_cli.io import reading

MANUAL = Manual(
    input="CoNLL-U: `2\tdog\tdog\tNOUN\t_\t_\t3\tnsubj\t_\tTokenRange=4:7`",
    output='One JSON object a segment: `{"id":"1","status":"ok","src":"A dog.",'
    '"words":["A","dog","."],"spans":[[0,1],[2,5],[5,6]],"heads":[1,-1,1],…}`',
    memory=conllu_work.MEMORY,
    examples=(
        "synmt featurize --spm spm.model --tgt train.de train.en.conllu > train.de.jsonl",
        "synmt featurize --spm spm.model --tgt-conllu dev.de.conllu dev.en.conllu > trees.jsonl",
        "synmt featurize --from text --spm spm.model --tgt dev.de dev.en > plain.jsonl",
        "synmt featurize --strict dev.en.conllu > /dev/null",
        "synmt featurize --on-bad-tree failed --tgt dev.de dev.en.conllu > words.jsonl",
        "synmt featurize --spm spm.model --emit depth,parent_middle test.en.conllu -o depths.jsonl",
        "synmt parse -m en.udpipe test.en | synmt featurize --spm spm.model -j 2 -o test.en.jsonl",
    ),
    see_also=("parse", "vocab train", "train"),
)
LINES = 64  # lines of text that travel to a worker at a time


def featurize(
    files: options.Files = None,
    kind: Annotated[
        Literal["conllu", "text"],
        option("--from", "text: lines without trees, for models that need none."),
    ] = "conllu",
    spm: options.PieceVocabulary = None,
    tgt: Annotated[str | None, option("--tgt FILE", "Target lines, one for each segment.")] = None,
    tgt_conllu: Annotated[
        str | None, option("--tgt-conllu FILE", "Target trees in CoNLL-U, one for each segment.")
    ] = None,
    tgt_spm: options.TargetVocabulary = None,
    on_nonprojective: options.OnNonprojective = "drop",
    split_transitions: options.SplitTransitions = False,
    glue: options.Glue = False,
    multiword: options.MultiwordTokens = "words",
    on_bad_tree: options.OnBadTree = "error",
    emit: Annotated[
        str,
        option(
            "--emit NAME,…",
            f"Also write these features of each piece: {', '.join(EMITTED)}.",
            autocompletion=completion.fields,
        ),
    ] = "",
    jobs: options.Jobs = 1,
    output: options.Output = "-",
    line_buffered: options.LineBuffered = False,
    strict: options.Strict = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Join trees with the text, its subword pieces and its target: one record a segment.

    With --from text each line of text becomes a record without a tree, which is all that vanilla,
    rel, bitran and the variants that write trees read of a source.

    Any CoNLL-U will do: each sentence is a segment. Those of one line, which synmt parse
    --segment split marks, become one segment again, with heads counted through the line.

    Words and pieces are joined by the characters of the line, which is the comment text, or
    without one the forms, with a space after each but those with SpaceAfter=No. Tokens that do not
    match the text give a record with status failed and no tree; these are counted at the end, and
    --strict stops at the first. The id is that of the comments (synmt_line, sent_id), which need
    not be unique, or else the number of the segment.

    A sentence that is not a tree, such as one with two roots, ends the run, as does any other error
    in a block. With --on-bad-tree failed it becomes a record with status failed in its place, so
    that lines and targets stay together: the reason names the file and the line, and src is the
    comment text. Without one src is the forms; it is empty if a line has wrong columns, a wrong ID
    or a comment, since part of a sentence would be translated as a whole one. Of several sentences
    of one line each must be a tree. NUL characters and bytes that are not UTF-8 still end the run.

    --tgt-conllu gives targets with trees, which become transitions as in synmt linearize, in the
    field transitions; tgt is their text. A target without transitions (see synmt linearize, and
    --on-nonprojective) makes its segment failed, so that it is not trained on: use the option for
    training and development data. The vocabulary needs the symbols that synmt linearize --format
    symbols writes; transitions that the vocabulary lacks are counted at the end. Give --glue
    --multiword token if translations are to be text as it is written: without them all words have
    spaces between them, and contractions are taken apart.

    Without --spm records have only words, which also makes this a check of CoNLL-U. A segment with
    a feature of --emit of more than a million values is skipped.
    """
    names = _names(emit)
    target = tgt if tgt_conllu is None else tgt_conllu
    options.refuse_clashes([tgt, tgt_conllu, spm, tgt_spm, *(files or ["-"])], output)
    options.refuse(
        {"--tgt and --tgt-conllu are both targets: give one of them": tgt and tgt_conllu}
    )
    is_text = kind == "text"
    if is_text and names:
        raise UsageError("--emit is for CoNLL-U: text has no trees")
    if is_text and tgt_conllu is None and on_bad_tree != "error":
        raise UsageError("--on-bad-tree is for CoNLL-U: text has no trees")
    if tgt_spm is not None and (target is None or spm is None):
        raise UsageError("--tgt-spm needs --spm and --tgt or --tgt-conllu")
    how = on_nonprojective, split_transitions, glue, multiword
    if tgt_conllu is None and how != ("drop", False, False, "words"):
        raise UsageError(
            "--on-nonprojective, --split-transitions, --glue and --multiword are for --tgt-conllu"
        )
    recipe = pool.Recipe(
        partial(featurizing, spm, tgt_spm, names, strict, how, on_bad_tree),
        tuple(path for path in (spm, tgt_spm) if path is not None),
        pool.Care(where=where, warn=console.warn),
    )
    with contextlib.ExitStack() as stack:
        work = text_lines(files or ()) if is_text else cut_by_line(batches(files or ()))
        if target is not None:
            pair = with_targets if tgt_conllu is None else with_target_trees
            work = pair(work, stack.enter_context(reading.open_source(target)))
        do = partial(pool.mapped, recipe, jobs=jobs, chunk=LINES if is_text else 1)
        conllu_work.write(do, work, files, output, line_buffered, "featurized", "segments")


def featurizing(
    spm: str | None,
    tgt_spm: str | None,
    emit: tuple[str, ...],
    strict: bool,
    how: tuple[Any, ...],
    on_bad_tree: OnBadTree,
) -> Callable[[Work], Done]:
    """The function of a worker. how: the options of Linearizer. Raises SynmtError."""
    source = None if spm is None else Vocabulary.load(spm)
    target = None if tgt_spm is None else Vocabulary.load(tgt_spm)
    linearizer = Linearizer(target or source, *how)
    return Featurizer(source, target, emit, strict, linearizer, on_bad_tree).run


def _names(emit: str) -> tuple[str, ...]:
    names = tuple(filter(None, options.names(emit)))
    for name in names:
        if name not in EMITTED:
            raise UsageError(f"--emit {quoted(name)} is none of {', '.join(EMITTED)}")
    return names
