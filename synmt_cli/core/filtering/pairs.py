"""Pairs of source and target lines, with a score where an aligner gave one.

Records hold both sides. For text and CoNLL-U a second file gives the target lines.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

from synmt_cli.core.filtering.line_hashes import Digests, digest
from synmt_cli.core.segments import reader
from synmt_cli.core.segments.bad_trees import OnBadTree
from synmt_cli.core.segments.comments import status_of_line
from synmt_cli.core.segments.segment import RecordSegment, Segment, TextSegment, TreeSegment, line
from synmt_cli.errors import DataError, SynmtError, UsageError, quoted
from synmt_cli.formats.detect import STATED_BY
from synmt_cli.formats.record import EMPTY, OK, SKIPPED, STATUSES, status_problem
from synmt_cli.io import reading
from synmt_cli.io.reading import Source

SIDES = ("source", "target")
_NUMBER = r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_SCORE = re.compile(rf"(?:.*\|\|\|)?\s*([+-]?(?:{_NUMBER}|inf))\s*")
# What text and CoNLL-U lack, and how to give it.
_NEEDED = {
    "tgt": "both sides: give the other one by --tgt",
    "pieces": "records with pieces (synmt featurize --spm)",
    "tgt_pieces": "records with pieces (synmt featurize --spm)",
    "heads": "trees: CoNLL-U, or records",
}


class Pair(NamedTuple):
    """A segment. texts: the source line, and the target line where there is one.

    given_target: the target line if another file gives it. score: as an aligner wrote it.
    """

    segment: Segment
    texts: tuple[str, ...]
    given_target: str | None = None
    score: float | None = None

    @property
    def is_empty(self) -> bool:
        """Whether all sides are blank, and nothing failed."""
        return self.segment.status in (OK, EMPTY) and not any(map(str.strip, self.texts))

    def require_both(self, option: str) -> None:
        """Raises `missing` unless there is a target line."""
        if len(self.texts) < len(SIDES):
            raise self.missing("tgt", option)

    def heads(self, option: str) -> Sequence[int]:
        """The head of each source word, 0-based, -1 for a root. Raises `missing`, DataError."""
        if (heads := self.segment.heads) is None:
            raise self.missing("heads", option)
        return heads

    def n_pieces(self, side: int, option: str) -> int:
        """Pieces of the source (0) or the target (1), transitions not counted. Raises `missing`."""
        if (n := self.segment.n_pieces(side)) is None:
            raise self.missing(("pieces", "tgt_pieces")[side], option)
        return n

    def missing(self, field: str, option: str) -> SynmtError:
        """The error of a test that needs a field: DataError for a record, else UsageError."""
        if isinstance(self.segment, RecordSegment):
            problem = f"field {field} is missing, but {option} needs it"
            return DataError(*self.segment.place, problem)
        return UsageError(f"{option} needs {_NEEDED[field]}")

    def written(self) -> tuple[bytes, bytes]:
        """The bytes for the main output, and for the output of target lines."""
        return self.segment.written(), b"" if self.given_target is None else line(self.given_target)

    def rejected(self, reason: str) -> bytes:
        """One record with the reason: `filtered` in a record, `synmt_filtered` in CoNLL-U."""
        return self.segment.marked({"filtered": reason}, self.given_target)

    def annotated(self, reason: str) -> bytes:
        """One record; a reason makes it `skipped`, unless it had a status; text gets a column."""
        if isinstance(self.segment, TextSegment):
            return self.rejected(reason or OK)
        if not reason or _has_status(self.segment):
            return self.segment.written()
        return self.segment.marked({"status": SKIPPED, "reason": reason})


def _has_status(segment: Segment) -> bool:
    if isinstance(segment, TreeSegment):
        return status_of_line(segment.sentences)[0] != OK
    return segment.status != OK


@contextmanager
def opened(
    paths: Sequence[str],
    kind: str = "auto",
    target: str | None = None,
    scores: str | None = None,
    on_bad_tree: OnBadTree = "error",
    option: str = STATED_BY,
) -> Iterator[Iterator[Pair]]:
    """Yields the pairs of files of one kind: text, jsonl, conllu, or the one that they show (auto).

    target, scores: files that are parallel to all of them together. option: that of the command
    which gives the kind. Raises ReadError, UsageError; the iterator raises DataError, also if the
    numbers of lines differ.
    """
    with ExitStack() as stack:
        stream = stack.enter_context(reader.opened(paths, kind, on_bad_tree, option))
        if stream.kind == "jsonl" and target is not None:
            raise UsageError("--tgt is for text and CoNLL-U: records have their own field tgt")
        others = [
            None if path is None else stack.enter_context(reading.open_source(path))
            for path in (target, scores)
        ]
        yield pairs(stream, others[0], others[1])


def digests_of(
    paths: Iterable[str], kind: str = "auto", on_bad_tree: OnBadTree = "error"
) -> Digests:
    """Digests of all lines of files of one kind, or each of the kind that it shows (auto).

    Blank lines do not count, and both sides of records do. on_bad_tree: as for `opened`.

    Raises DataError, ReadError.
    """
    digests = Digests()
    for path in paths:
        with opened([path], kind, None, None, on_bad_tree, "--exclude-format") as pairs_of_file:
            for pair in pairs_of_file:
                for text in filter(str.strip, pair.texts):
                    digests.add(digest([text]))
    return digests


def pairs(
    segments: Iterable[Segment], target: Source | None = None, scores: Source | None = None
) -> Iterator[Pair]:
    """Each segment with its line of the other sources. Raises DataError, ReadError."""
    sources = [source for source in (target, scores) if source is not None]
    for number, (segment, lines) in enumerate(reader.parallel(_known(segments), sources), 1):
        given = None if target is None else lines[0]
        score = None if scores is None else score_of(lines[-1], scores.name, number)
        other = segment.target if given is None else given
        texts = (segment.text,) if other is None else (segment.text, other)
        yield Pair(segment, texts, given, score)


def _known(segments: Iterable[Segment]) -> Iterator[Segment]:
    """The same segments. Raises DataError for a record that is broken, or of unknown status."""
    for segment in segments:
        if segment.status not in STATUSES:
            raise DataError(*segment.place, status_problem(segment.status))
        yield segment


def score_of(text: str, source: str, number: int) -> float:
    """The score of a line: a number, alone or after the last `|||` (fast_align -s).

    Raises DataError.

    >>> score_of("0-0 1-2 ||| -12.5", "scores", 1)
    -12.5
    """
    if not (match := _SCORE.fullmatch(text)):
        raise DataError(source, number, f"not a number, alone or after |||: {quoted(text)}")
    return float(match[1])
