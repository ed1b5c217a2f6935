"""The trees of the segments on the page, by line of the test set."""

import re
from collections.abc import Sequence

from synmt_cli.core.pictures.sentences import Picture, of_line, of_record, of_sentence
from synmt_cli.core.pictures.trees import svg
from synmt_cli.core.segments import reader
from synmt_cli.core.segments.segment import RecordSegment, Segment, TextSegment
from synmt_cli.errors import DataError, quoted
from synmt_cli.formats import record

LONGEST = 120  # words of a tree that is drawn on the page
WIDTH = 660  # pixels
# Attributes that report.css sets for all trees, or that a page does not need. In text a quote is
# &quot;, so nothing else can match.
_STYLED = re.compile(
    r' (?:fill|stroke|stroke-width|text-anchor|font-size|font-family|xmlns)="[^"]*"'
)


def read(path: str) -> list[list[Picture]]:
    """The trees of each line: a line of text may be several sentences. Raises DataError."""
    return [_pictures(one, str(number)) for number, one in enumerate(reader.read([path]), 1)]


def _pictures(segment: Segment, id: str) -> list[Picture]:
    """The trees of a segment. id: for a tree that has none."""
    if isinstance(segment, RecordSegment):
        return [of_record(record.from_bytes(segment.json, *segment.place, id))]
    if isinstance(segment, TextSegment):
        raise DataError(*segment.place, "expected CoNLL-U or records: text has no trees")
    if len(segment.sentences) == 1:
        return [of_line(segment.sentences, id)]
    return [of_sentence(one, id) for one in segment.sentences]


def refuse_other_text(trees: Sequence[Sequence[Picture]], lines: Sequence[str], path: str) -> None:
    """Raises DataError at the first tree whose words are not those of its line, spaces aside.

    path: the file of the trees, for the message.
    """
    for number, (pictures, line) in enumerate(zip(trees, lines, strict=True), 1):
        text = "".join(one.text for one in pictures)
        if text and _letters(text) != _letters(line):
            whose = f"tree {number} is that of {quoted(text)}"
            raise DataError(
                path, None, f"{whose}, but line {number} of the source is {quoted(line)}"
            )


def _letters(text: str) -> str:
    return "".join(text.split())


def drawing(pictures: list[Picture], number: str) -> str:
    """The SVG of a line's trees, or of a note that they are too large to draw."""
    if sum(len(one.columns) for one in pictures) > LONGEST:
        words = f"{sum(len(one.columns) for one in pictures):,} words"
        return svg.tree(Picture("", words, problem="not drawn")).document(number)
    drawn = [svg.tree(one, "arcs", WIDTH) for one in pictures]
    whole = drawn[0] if len(drawn) == 1 else svg.stacked(drawn)
    return _STYLED.sub("", whole.document(number))
