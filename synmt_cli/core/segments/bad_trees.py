"""Sentences of CoNLL-U that are not trees: an error, or failed segments in their places.

A block that is wrong, such as one with two roots or a cycle, becomes the block of a line without
a tree. It keeps its comments. If it has no `# text`, the text is made of the forms, or is empty if
not all rows can be read. The reason names the file and the line.

It stays in its place, because a target may be parallel to the trees. What is not text at all (NUL,
bytes that are not UTF-8) is an error either way.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from synmt_cli.core.segments.alignment import text_of
from synmt_cli.core.segments.comments import REASON, ROW, STATUS, commented
from synmt_cli.errors import DataError, Place, counted
from synmt_cli.formats.conllu import Instead, Sentence
from synmt_cli.formats.record import FAILED

OnBadTree = Literal["error", "failed"]


def failed(part: Sentence, error: DataError) -> Sentence:
    """The block of a line without a tree. part: what can be read of the wrong block."""
    values: dict[str, str | None] = {STATUS: FAILED, REASON: str(error)}
    if part.comment("text") is None:
        values = {"text": text_of([part], {}) if part.words else "", **values}
    row = ROW.split("\t")
    return commented(Sentence(part.comments, [row], [row], [0]), values)


# Values for the argument `instead` of `conllu.read`.
INSTEAD: dict[OnBadTree, Instead | None] = {"error": None, "failed": failed}


@dataclass
class BadTrees:
    """Turns bad trees into failed segments, as an `instead`, and counts them.

    first: the error of the first one.
    """

    n: int = 0
    first: str = ""

    def __call__(self, part: Sentence, error: DataError) -> Sentence:
        """The block of a line without a tree."""
        self.n += 1
        self.first = self.first or str(error)
        return failed(part, error)

    def warnings(self) -> Iterator[str]:
        """Yields the warnings to give at the end."""
        if self.n:
            yield f"{counted(self.n, 'sentence')} failed: not a tree"
            yield f"the first of them: {self.first}"


def located(place: Place, reason: str) -> DataError:
    """The error of a segment that failed. place: where it begins.

    A reason that names a line of the same file, as for bad trees, is not given another place.

    >>> str(located(("x", 1), "x:3: no tree")), str(located(("-", 1), "x:3: no tree"))
    ('x:3: no tree', '-:1: x:3: no tree')
    """
    source, line = place
    number, colon, problem = reason.removeprefix(f"{source}:").partition(": ")
    if reason.startswith(f"{source}:") and colon and number.isdecimal():
        return DataError(source, int(number), problem)
    return DataError(source, line, reason)
