"""Records that teach a plain Transformer syntax by data (Currey and Heafield 2019).

multitask       each source twice: `<TR> … <TR>` with its translation as the target, and
                `<PA> … <PA>` with its brackets, without the words
mixed-encoder   each source twice, both times with its translation: plain, and with its
                brackets around the pieces of its words; no tags

The task tags stand at both ends of the source, as in the published data of Bugliarello and
Okazaki (2020), where these schemes are baselines. There BPE split the tags like text; here they
are symbols that no text becomes (vocabulary.py). The brackets are symbols, too, unless they are
wanted as text. Pieces that are tags or brackets belong to no word, so the tree still fits the
other pieces.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Literal, NamedTuple

from synmt_cli.core.data.task_tags import PARSE, TAGS, changed, tagged
from synmt_cli.core.segments import reader
from synmt_cli.core.segments.alignment import Mismatch
from synmt_cli.core.text.vocabulary import Vocabularies, Vocabulary, symbol_problem
from synmt_cli.core.transitions.brackets import (
    CLOSING,
    labels,
    lexicalised,
    of_dependencies,
    opening,
    piece_leaves,
    text,
    without_words,
)
from synmt_cli.errors import ConfigError, DataError, Place, quoted
from synmt_cli.formats import penn, record
from synmt_cli.formats.penn import Constituent, Item
from synmt_cli.formats.record import EMPTY, NO_WORD, OK, Record
from synmt_cli.io import reading

HOW = "synmt multitask --format symbols"
Scheme = Literal["multitask", "mixed-encoder"]
Task = Literal["both", "translate", "parse"]


class TaskRecords(NamedTuple):
    """The records made of one record, and why one of them could not be made."""

    records: list[Record]
    problem: str = ""


@dataclass(frozen=True)
class MultitaskJob:
    """Makes the records of a scheme. Raises ConfigError if `source` lacks the task tags.

    penn: trees come from a file of Penn brackets. as_text: brackets are not symbols, but text
    that the vocabulary splits like any other.
    """

    source: Vocabulary
    target: Vocabulary
    scheme: Scheme = "multitask"
    task: Task = "both"
    penn: bool = False
    as_text: bool = False

    def __post_init__(self) -> None:
        if self.scheme == "multitask":
            self.source.refuse_missing(TAGS, HOW)

    @cached_property
    def spelled(self) -> Callable[[str | None], list[str]]:
        """Gives the pieces of the bracket that a label opens, or of the closing one for None.

        The vocabulary is the one of the side with the brackets: the target in multitask, the source
        in mixed-encoder. Raises ConfigError if it lacks a symbol.
        """
        vocabulary = self.target if self.scheme == "multitask" else self.source

        def pieces(item: str | None) -> list[str]:
            if self.as_text:
                return vocabulary.pieces(text([item]))
            symbol = CLOSING if item is None else opening(item)
            vocabulary.refuse_missing([symbol], HOW)
            return [symbol]

        return cache(pieces)

    @cached_property
    def joint(self) -> str:
        """The fingerprint of records with a target."""
        return Vocabularies(self.source, self.target).fingerprint

    def make(self, record: Record, place: Place, tree: Constituent | None = None) -> TaskRecords:
        """The records made of one record: for translation, and for the parse if its status is ok.

        tree: from Penn brackets. Raises DataError, ConfigError.
        """
        self._check(record, place)
        made = []
        if self.task != "parse":
            is_tagged = self.scheme == "multitask"
            made = [replace(tagged(record), id=f"{record.id}:TR") if is_tagged else record]
        if record.status == EMPTY or self.task == "translate":
            return TaskRecords(made)
        try:
            return TaskRecords([*made, self._parse(record, tree)])
        except Mismatch as reason:
            return TaskRecords(made, str(reason))

    def _check(self, record: Record, place: Place) -> None:
        if record.status == OK and record.pieces is None:
            raise DataError(*place, "no pieces; make records with featurize --spm MODEL")
        if set(record.pieces or ()) & {*TAGS, CLOSING}:
            raise DataError(*place, "field pieces has tags or brackets already")
        alone = record.tgt_pieces is None and record.vocab == self.source.fingerprint
        if record.vocab is not None and record.vocab != self.joint and not alone:
            raise ConfigError(
                f"{place[0]}:{place[1]}: pieces of vocabulary "
                f"{record.vocab}, but --spm is {self.joint}"
            )

    def _parse(self, record: Record, tree: Constituent | None) -> Record:
        """The record with the brackets. Raises Mismatch."""
        if record.status != OK:
            raise Mismatch(f"{record.status}: {record.reason or 'no reason given'}")
        if self.penn:
            items = tree.items if tree else []
        else:
            items = of_dependencies(record.heads or (), record.deprels or ())
        if not labels(items):
            raise Mismatch("no tree")
        if self.scheme == "mixed-encoder":
            return self._parsed_source(record, items, tree)
        brackets = without_words(items)
        pieces = [piece for item in brackets for piece in self.spelled(item)]
        return changed(
            tagged(record, PARSE),
            id=f"{record.id}:PA",
            tgt=text(brackets),
            tgt_pieces=pieces,
            transitions=None,
            vocab=record.vocab and self.joint,
        )

    def _parsed_source(self, record: Record, items: list[Item], tree: Constituent | None) -> Record:
        pieces = record.pieces or []
        piece_word = record.piece_word or []
        units = piece_word  # what each piece belongs to: a word, or a leaf of a Penn tree
        if tree is not None:
            units = piece_leaves(record.src, tree.words, pieces, self.source)
        bracketed, indices = lexicalised(items, pieces, units, self.spelled)
        return changed(
            record,
            id=f"{record.id}:PA",
            pieces=bracketed,
            piece_word=[NO_WORD if i < 0 or not piece_word else piece_word[i] for i in indices],
        )


def records(files: Sequence[str]) -> Iterator[tuple[Record, Place]]:
    """Yields the records of all files, with their places. Raises DataError, ReadError."""
    n = 1
    for source in reading.sources(files):
        for number, one in enumerate(record.read(source, n), 1):
            n += 1
            yield one, (source.name, number)


def records_with_trees(
    files: Sequence[str], penn_file: str | None
) -> Iterator[tuple[Record, Place, Constituent | None]]:
    """Yields each record with its line of `penn_file`; with None where there is no such file."""
    if penn_file is None:
        yield from ((one, place, None) for one, place in records(files))
        return
    with reading.open_source(penn_file) as trees:
        yield from with_trees(records(files), trees)


def labels_of(
    files: Sequence[str], penn_file: str | None
) -> Iterator[tuple[Collection[str], Place]]:
    """Yields the labels of each record, or of each tree of `penn_file`, with its place."""
    if penn_file is None:
        for one, place in records(files):
            yield one.deprels or (), place
        return
    with reading.open_source(penn_file) as trees:
        for number, tree in enumerate(penn.read(trees), 1):
            yield labels(tree.items) if tree else (), (trees.name, number)


def symbols(labels: Iterable[tuple[Collection[str], Place]]) -> list[str]:
    """The tags, the closing bracket, and the opening brackets of all labels, sorted.

    labels: as `labels_of` yields them. Raises DataError for a label with a space.
    """
    openings: set[str] = set()
    for names, place in labels:
        for name in names:
            if (symbol := opening(name)) not in openings:
                if problem := symbol_problem(symbol):
                    raise DataError(*place, f"label {quoted(name)} cannot be a bracket: {problem}")
                openings.add(symbol)
    return [*TAGS, CLOSING, *sorted(openings)]


def with_trees(
    records: Iterable[tuple[Record, Place]], trees: reading.Source
) -> Iterator[tuple[Record, Place, Constituent | None]]:
    """Yields each record with the tree of its line. Raises DataError if their numbers differ."""
    columns = records, penn.read(trees)
    for (one, place), tree in reader.rows(columns, [trees.name], "the input"):
        yield one, place, tree
