"""Trees as lines of characters: a word in each row, in the order of the sentence.

   ╭─ The       Each word that has dependents has a vertical line, in a column to the right of its
 ╭─┴─ dog       head's. It reaches from the first to the last of its dependents and itself. A
─┼─── sees      horizontal line leads from the line of its head, through its own, to each word.
 │ ╭─ the
 ├─┴─ cat          ╭ ├ ╰   a word hangs on the line of its head
 ╰─── .            ┬ ┼ ┴   a word's own line leaves it: down, both ways, or up
                   ─│─     a line that passes over or under; nothing is joined

A root's horizontal line begins at the edge. Lines that share a row never share a column, so
the drawing shows one tree. Where it is not projective, lines pass one another.
"""

from bisect import bisect
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from synmt_cli.core.trees.heads import ROOT, from_roots

CELL_LIMIT = 4_000_000  # rows times columns; a drawing takes two characters for each
COLUMN = 2  # characters


class Marks(NamedTuple):
    """The characters of a drawing. first, middle, last: on the line of the head."""

    across: str
    down: str
    first: str
    middle: str
    last: str
    own_down: str
    own_both: str
    own_up: str


UNICODE = Marks("─", "│", "╭", "├", "╰", "┬", "┼", "┴")
ASCII = Marks("-", "|", ",", "}", "`", ".", "+", "'")


class TooLarge(Exception):
    """A tree is not drawn; the message says why."""


class _Line(NamedTuple):
    """The vertical line of a word's dependents: its column, its first and last row."""

    column: int
    first: int
    last: int


def branches(heads: Sequence[int], marks: Marks = UNICODE) -> Iterator[str]:
    """Yields the drawing before each word, all of one length. heads: 0-based, -1 a root.

    Raises TooLarge for more than CELL_LIMIT cells, ValueError on a cycle.

    >>> for row in branches([1, -1, 1]): print(row)
     ╭─
    ─┼─
     ╰─
    """
    lines = _lines(heads)
    n_columns = 1 + max((line.column for line in lines.values()), default=-1)
    active: list[tuple[int, int]] = []  # (column, word) of the lines in this row
    begin: list[list[int]] = [[] for _ in heads]
    for word, line in lines.items():
        begin[line.first].append(word)
    for row, head in enumerate(heads):
        active += [(lines[word].column, word) for word in begin[row]]
        joined = -1 if head == ROOT else lines[head].column
        cells = [" " * COLUMN] * (joined + 1) + [marks.across * COLUMN] * (n_columns - joined - 1)
        for column, word in active:
            filler = marks.across if column >= joined else " "
            cells[column] = _mark(row, word, heads, lines[word], marks) + filler
        yield (marks.across if head == ROOT else " ") + "".join(cells)
        active = [(column, word) for column, word in active if lines[word].last > row]


def _mark(row: int, word: int, heads: Sequence[int], line: _Line, marks: Marks) -> str:
    """The character that the line of `word` has in a row."""
    if row == word:
        if line.last == row:
            return marks.own_up
        return marks.own_down if line.first == row else marks.own_both
    if heads[row] != word:
        return marks.down
    if row in (line.first, line.last):
        return marks.first if row == line.first else marks.last
    return marks.middle


def _lines(heads: Sequence[int]) -> dict[int, _Line]:
    """The line of each word with dependents, in the leftmost column that is free for it.

    In a projective tree this column is the word's depth.
    """
    first, last = list(range(len(heads))), list(range(len(heads)))
    for word, head in enumerate(heads):
        if head != ROOT:
            first[head] = min(first[head], word)
            last[head] = max(last[head], word)
    lines: dict[int, _Line] = {}
    taken: list[list[tuple[int, int]]] = []  # (first, last) of the lines in each column, rising
    for word in from_roots(heads):
        if first[word] == last[word]:
            continue
        head = heads[word]
        column = 0 if head == ROOT else lines[head].column + 1
        while column < len(taken) and not _is_free(taken[column], first[word], last[word]):
            column += 1
        if column == len(taken):
            taken.append([])
            if len(taken) * len(heads) > CELL_LIMIT:
                raise TooLarge(f"{len(heads):,} words, more than {column:,} columns")
        taken[column].insert(bisect(taken[column], (first[word],)), (first[word], last[word]))
        lines[word] = _Line(column, first[word], last[word])
    return lines


def _is_free(lines: list[tuple[int, int]], first: int, last: int) -> bool:
    """Whether none of the lines, which share no row, is in a row from first to last."""
    at = bisect(lines, (first,))
    return (at == len(lines) or lines[at][0] > last) and (at == 0 or lines[at - 1][1] < first)
