"""Segments by the length of their source, in words: counted, labelled, or split over files.

Several files of text are parallel: a segment is one line of each. Several files of jsonl or
conllu follow one another.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from synmt_cli.core.segments import reader, splitting
from synmt_cli.core.segments.buckets import Buckets, n_words
from synmt_cli.core.segments.segment import Segment, ended, side_by_side
from synmt_cli.errors import UsageError
from synmt_cli.formats.reports.table import shares
from synmt_cli.io import reading
from synmt_cli.io.reading import Source


class ParallelLines(NamedTuple):
    """One line of each of several texts. length: words of the first. lines: those to write."""

    length: int
    lines: list[bytes]


BUCKET = "bucket"  # the field, and in CoNLL-U the comment synmt_bucket
Measured = Segment | ParallelLines


@dataclass(frozen=True, slots=True)
class MeasuredStream:
    """Segments with their lengths. sides: for each part of a segment, the name of its file.

    Iteration raises DataError, ReadError.
    """

    sides: list[str]
    segments: Iterable[Measured]

    def table(self, buckets: Buckets) -> bytes:
        """`BUCKET<TAB>N<TAB>PERCENT` for each bucket, under a header."""
        counts = dict.fromkeys(buckets.names, 0)
        for segment in self.segments:
            counts[buckets.names[buckets.index(segment.length)]] += 1
        return shares("bucket", counts)

    def labelled(self, buckets: Buckets) -> Iterator[bytes]:
        """Yields each segment with the name of its bucket."""
        for segment in self.segments:
            bucket = buckets.names[buckets.index(segment.length)]
            if isinstance(segment, ParallelLines):
                yield side_by_side([one.decode() for one in segment.lines], bucket)
            else:
                yield segment.marked({BUCKET: bucket})

    def split(self, buckets: Buckets, template: str, inputs: Sequence[str]) -> None:
        """Writes each segment's parts to the files of its bucket. All files appear, or none.

        inputs: files that must not be replaced. Raises UsageError, CreateError, WriteError.
        """
        outputs = splitting.filled(template, "bucket", buckets.names, self.sides)
        splitting.refuse_inputs(outputs, inputs)
        with splitting.written_together(outputs) as writers:
            for segment in self.segments:
                of_bucket = writers[buckets.index(segment.length)]
                if isinstance(segment, ParallelLines):
                    parts = [*map(ended, segment.lines)]
                else:
                    parts = [segment.written()]
                for writer, part in zip(of_bucket, parts, strict=True):
                    writer.write(part)


@contextmanager
def opened(
    paths: Sequence[str], kind: str = "auto", src: str | None = None
) -> Iterator[MeasuredStream]:
    """The segments of files of one kind: text, jsonl, conllu, or auto to detect it.

    src: a text that gives the lengths and is not among the parts; only for text. Several files
    of records are one side without a name. Raises DataError, ReadError; UsageError if src is
    given for another kind.
    """
    with ExitStack() as stack:
        stream = stack.enter_context(reader.opened(paths, kind))
        if stream.kind == "text":
            measured = [stack.enter_context(reading.open_source(src))] if src is not None else []
            others = [stack.enter_context(reading.open_source(one)) for one in stream.further]
            lines = parallel_lines([*measured, *stream.opened, *others], len(measured))
            yield MeasuredStream(list(paths), lines)
            return
        if src is not None:
            raise UsageError(f"--src gives the lengths of text; {stream.kind} has its own source")
        yield MeasuredStream([paths[0] if len(paths) == 1 else ""], stream)


def parallel_lines(sources: Sequence[Source], n_hidden: int = 0) -> Iterator[ParallelLines]:
    """Parallel lines; the first source gives the length. Raises DataError, ReadError.

    n_hidden: how many of the first sources are not to be written. If the numbers of lines differ,
    the error comes at the end of the shortest source and names both counts.
    """
    first, *others = names = [source.name for source in sources]
    columns = map(reading.lines, sources)
    for number, lines in enumerate(reader.rows(columns, others, first), 1):
        texts = [reading.decode(*line, number) for line in zip(lines, names, strict=True)]
        yield ParallelLines(n_words(texts[0]), [*lines[n_hidden:]])
