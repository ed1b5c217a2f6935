"""Reads training records into a Corpus, in memory or in files, a chunk of lines at a time.

Each chunk becomes arrays on its own, with its labels and paths numbered as they occur; then these
numbers are changed to those of the corpus, which thus follow the order of the records.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from synmt_cli.core.data.corpus import Corpus
from synmt_cli.core.data.encoding import Encoding
from synmt_cli.core.data.labels import Labels
from synmt_cli.core.data.pairs import SOURCE, Pair, PairColumns, name_in
from synmt_cli.core.data.ragged import Ragged
from synmt_cli.core.data.ragged_files import Columns, Seals
from synmt_cli.core.data.targets import HOW, Targets
from synmt_cli.errors import ConfigError, DataError
from synmt_cli.formats import record as records
from synmt_cli.formats.record import OK, Record
from synmt_cli.io import reading

if TYPE_CHECKING:
    from synmt_cli.core.text.vocabulary import Vocabularies

CHUNK = 1024  # lines


class RecordLines(NamedTuple):
    """Consecutive lines of a file of records. first: the number of the first one, from 1."""

    name: str
    first: int
    lines: list[bytes]


def lines_of(paths: Sequence[str]) -> Generator[RecordLines]:
    """Yields the lines of files."""
    for source in reading.sources(paths):
        lines, first = reading.lines(source), 1
        while some := list(islice(lines, CHUNK)):
            yield RecordLines(source.name, first, some)
            first += len(some)


@dataclass(frozen=True, slots=True)
class Chunk:
    """Pairs as numbers of `encoding`. n: lines. The other fields are those of a Corpus."""

    n: int
    columns: dict[str, Ragged]
    encoding: Encoding
    references: list[str]
    left_out: Counter[str]
    n_treeless: int
    n_of_label: Counter[str]


@dataclass(frozen=True, slots=True)
class CorpusReader:
    """Reads the records that one model is trained on.

    needs: features of the source. check: refuses a record that does not suit the variant, given
    its file and line. labels: those known beforehand, the first of the corpus. Records that are
    not `ok`, have an empty side, or have more than max_length pieces (transitions do not count)
    are left out and counted.
    """

    vocabularies: Vocabularies
    needs: Sequence[str]
    targets: Targets
    max_length: int
    check: Callable[[Record, tuple[str, int]], None] | None = None
    labels: Sequence[str] = ()

    def encoding(self) -> Encoding:
        """A new encoding for a corpus, whose labels grow."""
        return Encoding(self.needs, Labels(self.labels, growing=True))

    @property
    def columns(self) -> PairColumns:
        """The columns of a corpus."""
        return PairColumns(self.needs, self.targets.needs, self.targets.grammar is not None)

    def chunk(self, lines: RecordLines, references: bool = False) -> Chunk:
        """The pairs of some lines. Raises DataError, ConfigError.

        references: whether to keep raw target lines.
        """
        encoding = Encoding(self.needs, Labels(growing=True))
        pairs: list[Pair] = []
        kept: list[str] = []
        left_out: Counter[str] = Counter()
        n_treeless = 0
        n_of_label: Counter[str] = Counter()
        for number, line in enumerate(lines.lines, lines.first):
            place = (lines.name, number)
            record = records.from_bytes(line, *place, str(number))
            tokens = self.targets.tokens(record, place) if record.status == OK else []
            n = self.targets.n_pieces(record, tokens)
            if reason := self._unfit(record, n, place):
                left_out[reason] += 1
                continue
            if self.check is not None:
                self.check(record, place)
            ids = self.vocabularies.source.source_ids(record.pieces)
            target = self.targets.target(tokens, place)
            n_treeless += not record.heads
            n_of_label.update(record.deprels or ())
            for label in record.deprels or ():  # gets an id, whether a feature needs it or not
                encoding.labels.id(label)
            pairs.append(Pair(ids, encoding.values(record), target, n))
            if references:
                joined = self.vocabularies.target.join
                kept.append(joined(tokens) if record.tgt is None else record.tgt)
        columns = self.columns.of(pairs)
        return Chunk(len(lines.lines), columns, encoding, kept, left_out, n_treeless, n_of_label)

    def corpus(
        self,
        chunks: Iterable[Chunk],
        encoding: Encoding,
        folder: Path | None = None,
    ) -> tuple[Corpus, Seals]:
        """All pairs, as numbers of `encoding`; in files of `folder`, if one is given.

        Memory holds one chunk and, without a folder, the corpus. Raises CreateError, WriteError.
        """
        kept: list[str] = []
        left_out: Counter[str] = Counter()
        n_treeless = 0
        n_of_label: Counter[str] = Counter()
        with Columns(self.columns.dtypes(), folder) as columns:
            for chunk in chunks:
                for name, numbers in encoding.merge(chunk.encoding).items():
                    rows = chunk.columns[name_in(SOURCE, name)]
                    renumbered = Ragged(numbers[rows.values], rows.offsets)
                    chunk.columns[name_in(SOURCE, name)] = renumbered
                columns.append(chunk.columns)
                kept += chunk.references
                left_out += chunk.left_out
                n_treeless += chunk.n_treeless
                n_of_label += chunk.n_of_label
            corpus = Corpus.of(columns.whole(), encoding, kept, left_out, n_treeless, n_of_label)
            return corpus, columns.seals()

    def _unfit(self, record: Record, target_length: int, place: tuple[str, int]) -> str:
        """Why a record is left out, or "". Raises if it should not be in the file at all."""
        if record.status != OK:
            return record.status
        if record.pieces is None:
            raise DataError(*place, f"no pieces; {HOW}")
        check_vocabulary(record, self.vocabularies.fingerprint, place)
        if not record.pieces or not target_length:
            return "empty"
        if max(len(record.pieces), target_length) + 1 > self.max_length:
            return f"longer than {self.max_length} pieces, EOS counted"
        return ""


def check_vocabulary(record: Record, fingerprint: str, place: tuple[str, int]) -> None:
    """Raises ConfigError if a record's pieces are of another vocabulary."""
    if record.vocab is not None and record.vocab != fingerprint:
        raise ConfigError(
            f"{place[0]}:{place[1]}: pieces of vocabulary {record.vocab}, "
            f"but the model's is {fingerprint}"
        )
