"""Input of translation: records made of JSONL, CoNLL-U or text, with the model's pieces.

Text is parsed first where the models need a tree. A segment without a tree keeps its line:
each of its pieces stands for itself.
"""

import contextlib
import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from synmt_cli import pool
from synmt_cli.core.data.record_reader import check_vocabulary
from synmt_cli.core.jobs.featurize import Featurizer
from synmt_cli.core.segments import reader
from synmt_cli.core.segments.alignment import piece_words
from synmt_cli.core.segments.bad_trees import OnBadTree
from synmt_cli.core.segments.segment import Segment, TextSegment, TreeSegment
from synmt_cli.core.text.udpipe import Parser
from synmt_cli.core.text.vocabulary import Vocabulary
from synmt_cli.errors import Place
from synmt_cli.formats import conllu, record
from synmt_cli.formats.record import Record
from synmt_cli.io import reading

Placed = Iterator[tuple[Record, Place]]
UNKNOWN = "with source pieces that the vocabulary lacks: read as <unk>"  # a remark about segments


@dataclass
class Reader:
    """Turns inputs into records with pieces.

    load_parser: called at the first line of text; None if no tree is needed. ahead: how many
    segments of a pipe are read before they are asked for. waited: the seconds spent waiting for
    segments that had not been read yet.
    """

    source: Vocabulary
    target: Vocabulary
    load_parser: Callable[[], Parser] | None = None
    ahead: int = 0
    waited: float = 0.0

    def read(
        self,
        paths: Sequence[str],
        kind: str = "auto",
        on_bad_tree: OnBadTree = "error",
        targets: Sequence[str] = (),
    ) -> Placed:
        """Yields the records of all inputs in order. Raises SynmtError.

        Ids that the input does not give count from 1 over all of them. targets: one file of lines,
        which replace the targets of the records, or none.
        """
        pairs = _pairs(paths, kind, on_bad_tree, targets)
        if self.ahead and reading.is_streamed([*paths, *targets]):
            pairs = pool.ahead(pairs, self.ahead, self._wait)
        for number, (segment, lines) in enumerate(pairs, 1):
            one = self._record(segment, str(number))
            for line in lines:
                one.tgt, one.tgt_pieces, one.transitions = line, None, None
            yield one, segment.place

    def _wait(self, seconds: float) -> None:
        self.waited += seconds

    @cached_property
    def featurizer(self) -> Featurizer:
        """The featurizer, which joins trees and lines with pieces."""
        return Featurizer(self.source, self.target)

    @cached_property
    def parser(self) -> Parser:
        """The parser, loaded when a line first needs it. Raises Unavailable."""
        assert self.load_parser is not None
        return self.load_parser()

    def _record(self, segment: Segment, id: str) -> Record:
        if isinstance(segment, TreeSegment):
            return self.featurizer.of_trees(segment.sentences, id)
        if isinstance(segment, TextSegment):
            reading.refuse_nul(segment.text, *segment.place)
            return self.of_text(segment.text, id)
        one = record.from_bytes(segment.json, *segment.place, id)
        if one.pieces is None:
            self._add_pieces(one)
        elif one.vocab != self.source.fingerprint:  # which records without targets state
            check_vocabulary(one, self.featurizer.fingerprint or "", segment.place)
        return one

    def of_text(self, text: str, id: str) -> Record:
        """The record of one line of text, parsed where a tree is needed. Raises Unavailable."""
        if self.load_parser is None:
            return self.featurizer.of_text(text, id)
        block = self.parser.line(text, id).conllu.encode()
        parsed = conllu.read(reading.Source("<parser>", io.BytesIO(block)))
        one = self.featurizer.of_trees(list(parsed), id)
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


def _pairs(
    paths: Sequence[str], kind: str, on_bad_tree: OnBadTree, targets: Sequence[str]
) -> Iterator[tuple[Segment, list[str]]]:
    """Each segment with its line of each file of targets. Raises DataError, ReadError."""
    with contextlib.ExitStack() as stack:
        opened = [stack.enter_context(reading.open_source(path)) for path in targets]
        yield from reader.parallel(reader.read(paths, kind, on_bad_tree), opened)
