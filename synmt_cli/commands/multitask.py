"""`synmt multitask`: records that teach translation and syntax by data."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import typer

from synmt_cli import console, errors
from synmt_cli.commands.manual import Files, LineBuffered, Manual, Out, Quiet, Strict
from synmt_cli.core.jobs import multitask as tasks
from synmt_cli.core.text.vocabulary import Vocabulary
from synmt_cli.core.transitions.brackets import labels
from synmt_cli.errors import DataError, UsageError, printable
from synmt_cli.formats import penn as penn_brackets
from synmt_cli.formats import record
from synmt_cli.formats.penn import Constituent
from synmt_cli.formats.record import Record
from synmt_cli.io import reading, writing

MANUAL = Manual(
    input="JSONL records with trees and pieces, as featurize --spm writes them; with --symbols"
    " the pieces may be absent.",
    output='Records: `{"id":"1:TR",…,"pieces":["<TR>","▁A","▁dog","<TR>"],…}` and'
    ' `{"id":"1:PA",…,"pieces":["<PA>","▁A","▁dog","<PA>"],…,"tgt":"(root (det ) )",'
    '"tgt_pieces":["<(root>","<(det>","<)>","<)>"],…}`. With --symbols: `<(nsubj>` a line.',
    memory="One record; with --symbols the labels.",
    examples=(
        "synmt featurize train.en.conllu | synmt multitask --symbols > symbols.txt",
        "synmt multitask --symbols train.jsonl | synmt vocab train --symbols - --size 300 train.en"
        " train.de -o tasks.model",
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
    files: Files = None,
    spm: Annotated[
        str | None,
        typer.Option("--spm", metavar="MODEL", help="Vocabulary of the records, with symbols."),
    ] = None,
    tgt_spm: Annotated[
        str | None,
        typer.Option(
            "--tgt-spm", metavar="MODEL", help="Vocabulary of the target, if it has its own."
        ),
    ] = None,
    symbols: Annotated[
        bool,
        typer.Option("--symbols", help="Write the symbols that the vocabulary needs, one a line."),
    ] = False,
    scheme: Annotated[
        Literal["multitask", "mixed-encoder"],
        typer.Option("--scheme", help="What is made of each record."),
    ] = "multitask",
    task: Annotated[
        Literal["both", "translate", "parse"],
        typer.Option("--task", help="Which records to write: translate for dev and test sets."),
    ] = "both",
    penn: Annotated[
        str | None,
        typer.Option("--penn", metavar="FILE", help="Penn brackets, a line for each record."),
    ] = None,
    brackets: Annotated[
        Literal["symbols", "text"],
        typer.Option("--brackets", help="Brackets as symbols, or as text split into pieces."),
    ] = "symbols",
    output: Out = "-",
    line_buffered: LineBuffered = False,
    strict: Strict = False,
    quiet: Quiet = False,
) -> None:
    """Make records that teach a plain model syntax (Currey and Heafield 2019).

    multitask gives two records for each one: its source between the tags <TR>, with its
    translation, and its source between the tags <PA>, with its parse as brackets without
    words. --task translate gives the first of them only, one for each record: that is what a
    model is validated and tested on. mixed-encoder gives the record itself, and one whose source
    has the brackets around the pieces of its words, both with the translation; no tags, and
    a model is tested on plain records.

    The brackets are those of the dependency tree, labelled by relation, in the order of the
    sentence: `(root (nsubj (det ) ) (obj ) )`. Each word is a bracket; the word itself, in
    mixed-encoder, stands between the brackets of its dependents to the left and to the right.
    Where a tree is not projective, the dependents of each word keep their order. A line of
    several sentences has a bracket for each. These are not the constituents of the paper: for
    those give their trees by --penn, a line for each record: `(ROOT (S (NP (DT The) …`. Parts
    of speech are left out, and for multitask the words: `(ROOT (S (NP ) … ) )`. An outermost
    bracket without a label is ROOT; a line may hold several trees, or none: empty, () or (()).
    For mixed-encoder the words of a tree are found in the text of the record, -LRB- as a
    parenthesis, `` and '' as any quotation mark.

    Tags and brackets are symbols of the vocabulary, which no text becomes, so the vocabulary
    must be trained with them: --symbols writes them from records, or with --penn from the
    trees. --brackets text needs only the tags: brackets are split into pieces like any text,
    as in the paper.

    Ids end in :TR and :PA. A record that is not ok, or has no tree, gives only its translation;
    it is counted, and --strict stops there (65), but an empty line is no failure.
    """
    if symbols:
        return _write_symbols(files, penn, output)
    if penn == "-" and "-" in (files or ["-"]):
        raise UsageError("stdin cannot be both the records and --penn")
    if spm is None:
        raise UsageError("--spm MODEL is missing (or --symbols)")
    source = Vocabulary.load(spm)
    target = source if tgt_spm is None else Vocabulary.load(tgt_spm)
    maker = tasks.MultitaskJob(source, target, scheme, task, penn is not None, brackets == "text")
    unparsed = _Unparsed(strict)
    with (
        writing.output(output, line_buffered) as writer,
        console.progress("made", unit="records") as bar,
    ):
        for one, place, tree in _with_trees(files or (), penn):
            made = maker.make(one, place, tree)
            unparsed.count(made.problem, place)
            for new in made.records:
                writer.write(record.to_bytes(new))
            bar.advance(1)
    unparsed.report(bar.done)
    return None


@dataclass(slots=True)
class _Unparsed:
    """How many records have no parse, and the first of them."""

    strict: bool
    n: int = 0
    first: str = ""

    def count(self, problem: str, place: errors.Place) -> None:
        if problem:
            failure = DataError(*place, printable(problem))
            if self.strict:
                raise failure
            self.n += 1
            self.first = self.first or str(failure)

    def report(self, n_records: int) -> None:
        if self.n:
            console.warn(f"{self.n:,} of {n_records:,} records have no parse")
            console.warn(f"the first of them: {self.first}")


def _records(files: Sequence[str]) -> Iterator[tuple[Record, errors.Place]]:
    n = 1
    for source in reading.sources(files):
        for number, one in enumerate(record.read(source, n), 1):
            n += 1
            yield one, (source.name, number)


def _with_trees(
    files: Sequence[str], penn: str | None
) -> Iterator[tuple[Record, errors.Place, Constituent | None]]:
    if penn is None:
        yield from ((one, place, None) for one, place in _records(files))
        return
    with reading.open_source(penn) as trees:
        yield from tasks.with_trees(_records(files), trees)


def _write_symbols(files: Sequence[str] | None, penn: str | None, output: str) -> None:
    if files and penn is not None:
        raise UsageError("--symbols reads records or --penn FILE, not both")
    with writing.output(output) as writer:
        for symbol in tasks.symbols(_labels(files or (), penn)):
            writer.write(symbol.encode() + b"\n")


def _labels(
    files: Sequence[str], penn: str | None
) -> Iterator[tuple[Collection[str], errors.Place]]:
    if penn is None:
        for one, place in _records(files):
            yield one.deprels or (), place
        return
    with reading.open_source(penn) as trees:
        for number, tree in enumerate(penn_brackets.read(trees), 1):
            yield labels(tree.items) if tree else (), (trees.name, number)
