"""`synmt featurize`: CoNLL-U to JSONL records."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

import typer

from synmt_cli import console, pool
from synmt_cli.commands import output_lines
from synmt_cli.commands.linearize import Glue, MultiwordTokens, OnNonprojective, Split
from synmt_cli.commands.manual import Files, Jobs, LineBuffered, Manual, Out, Quiet, Strict
from synmt_cli.core.jobs.featurize import Featurizer
from synmt_cli.core.jobs.work import (
    Done,
    Work,
    batches,
    cut_by_line,
    where,
    with_target_trees,
    with_targets,
)
from synmt_cli.core.text.vocabulary import Vocabulary
from synmt_cli.core.transitions.linearizer import Linearizer
from synmt_cli.core.trees.features import EMITTED
from synmt_cli.errors import UsageError, quoted
from synmt_cli.formats import conllu
from synmt_cli.io import reading

MANUAL = Manual(
    input="CoNLL-U: `2\tdog\tdog\tNOUN\t_\t_\t3\tnsubj\t_\tTokenRange=4:7`",
    output='One JSON object a segment: `{"id":"1","status":"ok","src":"A dog.",'
    '"words":["A","dog","."],"spans":[[0,1],[2,5],[5,6]],"heads":[1,-1,1],…}`',
    memory=f"Some {reading.BUFFER // 1024} KiB of input, {pool.IN_FLIGHT} N + 2 times that "
    f"with -j N, and the longest sentence: at most {conllu.SENTENCE_LIMIT // 2**20} MiB.",
    examples=(
        "synmt featurize --spm spm.model --tgt train.de train.en.conllu > train.de.jsonl",
        "synmt featurize --spm spm.model --tgt-conllu dev.de.conllu dev.en.conllu > trees.jsonl",
        "synmt featurize --strict dev.en.conllu > /dev/null",
        "synmt featurize --spm spm.model --emit depth,parent_middle test.en.conllu -o depths.jsonl",
        "synmt parse -m en.udpipe test.en | synmt featurize --spm spm.model -j 2 -o test.en.jsonl",
    ),
    see_also=("parse", "vocab train", "train"),
)


def featurize(
    files: Files = None,
    spm: Annotated[
        str | None,
        typer.Option("--spm", metavar="MODEL", help="Vocabulary of the pieces. None: words only."),
    ] = None,
    tgt: Annotated[
        str | None,
        typer.Option("--tgt", metavar="FILE", help="Target lines, one for each segment."),
    ] = None,
    tgt_conllu: Annotated[
        str | None,
        typer.Option(
            "--tgt-conllu", metavar="FILE", help="Target trees, one for each segment: CoNLL-U."
        ),
    ] = None,
    tgt_spm: Annotated[
        str | None,
        typer.Option(
            "--tgt-spm", metavar="MODEL", help="Vocabulary of the target, if it has its own."
        ),
    ] = None,
    on_nonprojective: OnNonprojective = "drop",
    split_transitions: Split = False,
    glue: Glue = False,
    multiword: MultiwordTokens = "words",
    emit: Annotated[
        str,
        typer.Option(
            "--emit",
            metavar="NAME,…",
            help=f"Also write these for each piece: {', '.join(EMITTED)}.",
        ),
    ] = "",
    jobs: Jobs = 1,
    output: Out = "-",
    line_buffered: LineBuffered = False,
    strict: Strict = False,
    quiet: Quiet = False,
) -> None:
    """Join trees with the text, its subword pieces and its target: one record a segment.

    Any CoNLL-U will do: each sentence is a segment. Those of one line, which synmt parse
    --segment split marks, are one segment again, its heads counted through the line.

    Words and pieces are joined by the characters of the line, which is the comment text, or
    where there is none, the forms with spaces between them. Tokens that are not those of
    the text give a record of status failed and no tree; these are counted at the end, and
    --strict stops at the first. The id is that of the comments (synmt_line, sent_id), which
    need not be unique, else the number of the segment.

    --tgt-conllu gives targets with trees, which become transitions as synmt linearize makes
    them, in the field transitions; tgt is their text. A target without transitions (see there,
    and --on-nonprojective) makes its segment failed, so that it is not trained on: use it for
    training and development data. Vocabularies need the symbols that synmt linearize
    --symbols writes; transitions that are none are counted at the end. Give --glue
    --multiword token if translations are to be text as it is written: else they have a space
    between all words, and contractions are taken apart.

    Without --spm there are words only, so this also checks CoNLL-U. Features of --emit that
    take more than a million values for one segment make it skipped.
    """
    names = _names(emit)
    target = tgt if tgt_conllu is None else tgt_conllu
    _check(tgt, tgt_conllu, "-" in (files or ["-"]))
    if tgt_spm is not None and (target is None or spm is None):
        raise UsageError("--tgt-spm needs --spm and --tgt or --tgt-conllu")
    options = on_nonprojective, split_transitions, glue, multiword
    recipe = pool.Recipe(
        partial(featurizing, spm, tgt_spm, names, strict, options),
        tuple(path for path in (spm, tgt_spm) if path is not None),
        pool.Care(where=where, warn=console.warn),
    )
    with contextlib.ExitStack() as stack:
        work = cut_by_line(batches(files or ()))
        if target is not None:
            pair = with_targets if tgt_conllu is None else with_target_trees
            work = pair(work, stack.enter_context(reading.open_source(target)))
        parts = pool.mapped(recipe, work, jobs, chunk=1)
        total = output_lines.write(parts, output, line_buffered, "featurized", "segments")
    for warning in total.warnings("segments"):
        console.warn(warning)


def featurizing(
    spm: str | None,
    tgt_spm: str | None,
    emit: tuple[str, ...],
    strict: bool,
    options: tuple[Any, ...],
) -> Callable[[Work], Done]:
    """The function of a worker. options: those of Linearizer. Raises SynmtError."""
    source = None if spm is None else Vocabulary.load(spm)
    target = None if tgt_spm is None else Vocabulary.load(tgt_spm)
    linearizer = Linearizer(target or source, *options)
    return Featurizer(source, target, emit, strict, linearizer).run


def _check(tgt: str | None, tgt_conllu: str | None, reads_stdin: bool) -> None:
    if tgt is not None and tgt_conllu is not None:
        raise UsageError("--tgt and --tgt-conllu are both targets: give one of them")
    for name, path in (("--tgt", tgt), ("--tgt-conllu", tgt_conllu)):
        if path == "-" and reads_stdin:
            raise UsageError(f"stdin cannot be both the trees and {name}")


def _names(emit: str) -> tuple[str, ...]:
    names = tuple(name for name in emit.split(",") if name)
    for name in names:
        if name not in EMITTED:
            raise UsageError(f"--emit {quoted(name)} is none of {', '.join(EMITTED)}")
    return names
