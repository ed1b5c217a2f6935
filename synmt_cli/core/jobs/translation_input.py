"""What is translated: records made of JSONL, CoNLL-U or text, with the model's pieces.

Text is parsed first where the models need a tree. A segment without a tree keeps its line:
each of its pieces stands for itself.
"""

from __future__ import annotations

import io
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from synmt_cli.core.data.record_reader import check_vocabulary
from synmt_cli.core.jobs.featurize import Featurizer
from synmt_cli.core.segments.alignment import piece_words, segments
from synmt_cli.core.text.udpipe import Parser
from synmt_cli.core.text.vocabulary import Vocabulary
from synmt_cli.errors import DataError
from synmt_cli.formats import conllu, record
from synmt_cli.formats.detect import detect
from synmt_cli.formats.record import Record
from synmt_cli.io import reading

Kind = Literal["auto", "text", "jsonl", "conllu"]
Place = tuple[str, int]  # file, and line from 1
Placed = Iterator[tuple[Record, Place]]


@dataclass(slots=True)
class Reader:
    """Turns inputs into records with pieces.

    load_parser: called when the first text comes; None where no tree is needed.
    """

    source: Vocabulary
    target: Vocabulary
    load_parser: Callable[[], Parser] | None = None
    _parser: Parser | None = None

    def read(self, paths: Sequence[str], kind: Kind) -> Placed:
        """Yields the records of all inputs in order. Raises SynmtError.

        Ids that the input does not give count from 1 over all of them.
        """
        readers = {"jsonl": self._records, "conllu": self._trees, "text": self._lines}
        ids = map(str, itertools.count(1))
        for source in reading.sources(paths):
            found, source = (kind, source) if kind != "auto" else detect(source)
            yield from readers[found](source, ids)

    @property
    def featurizer(self) -> Featurizer:
        """What joins trees and lines with pieces."""
        return Featurizer(self.source, self.target)

    def _records(self, source: reading.Source, ids: Iterator[str]) -> Placed:
        fingerprint = self.featurizer.fingerprint or ""
        for number, line in enumerate(reading.lines(source), 1):
            one = record.from_bytes(line, source.name, number, next(ids))
            if one.pieces is None:
                self._add_pieces(one)
            elif one.vocab != self.source.fingerprint:  # as records without targets have it
                check_vocabulary(one, fingerprint, (source.name, number))
            yield one, (source.name, number)

    def _trees(self, source: reading.Source, ids: Iterator[str]) -> Placed:
        for sentences in segments(conllu.read(source)):
            one = self.featurizer.record(sentences, next(ids))
            yield one, (source.name, sentences[0].line)

    def _lines(self, source: reading.Source, ids: Iterator[str]) -> Placed:
        for number, text in reading.text_lines(source):
            if "\0" in text:
                raise DataError(source.name, number, "NUL character")
            yield self.of_text(text, next(ids)), (source.name, number)

    def of_text(self, text: str, id: str) -> Record:
        """The record of one line of text, parsed where a tree is needed. Raises Unavailable."""
        if self.load_parser is None:
            return self.featurizer.text(text, id)
        self._parser = self._parser or self.load_parser()
        block = self._parser.line(text, id).conllu.encode()
        parsed = conllu.read(reading.Source("<parser>", io.BytesIO(block)))
        one = self.featurizer.record(list(parsed), id)
        one.src = text  # a comment cannot hold a CR at its end
        return one

    def _add_pieces(self, one: Record) -> None:
        one.pieces, offsets = self.source.encode(one.src)
        words: dict[tuple[int, int], int] = {}  # words of a multiword token share its span
        for word, (begin, end) in enumerate(one.spans or ()):
            words.setdefault((begin, end), word)
        spans = sorted(words)
        one.piece_word = piece_words(offsets, spans, [words[span] for span in spans])
        one.vocab = self.featurizer.fingerprint
