"""The trees of the segments on the page, by line of the test set."""

import re
from collections.abc import Callable, Iterator, Sequence

from synmt_cli.core.pictures.sentences import Picture, of_line, of_record, of_sentence
from synmt_cli.core.pictures.trees import svg
from synmt_cli.core.segments import comments
from synmt_cli.errors import DataError, quoted
from synmt_cli.formats import conllu, record
from synmt_cli.formats.detect import detect
from synmt_cli.io import reading
from synmt_cli.io.reading import Source

LONGEST = 120  # words of a tree that is drawn on the page
WIDTH = 660  # pixels
# Attributes that report.css sets for all trees, or that a page does not need. In text a quote is
# &quot;, so nothing else can match.
_STYLED = re.compile(
    r' (?:fill|stroke|stroke-width|text-anchor|font-size|font-family|xmlns)="[^"]*"'
)


def read(path: str) -> list[list[Picture]]:
    """The trees of each line: a line of text may be several sentences. Raises DataError."""
    readers: dict[str, Callable[[Source], Iterator[list[Picture]]]] = {
        "conllu": _of_conllu,
        "jsonl": _of_records,
    }
    with reading.open_source(path) as opened:
        kind, source = detect(opened)
        if kind in readers:
            return [*readers[kind](source)]
        if any(True for _ in reading.text_lines(source)):
            raise DataError(source.name, 1, "expected CoNLL-U or records: text has no trees")
        return []


def _of_conllu(source: Source) -> Iterator[list[Picture]]:
    for number, group in enumerate(comments.lines(conllu.read(source)), 1):
        if len(group) == 1:
            yield [of_line(group, str(number))]
        else:
            yield [of_sentence(one, str(number)) for one in group]


def _of_records(source: Source) -> Iterator[list[Picture]]:
    return ([of_record(one)] for one in record.read(source))


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
