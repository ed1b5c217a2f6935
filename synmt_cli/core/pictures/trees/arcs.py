"""The layout of arcs over words: columns in lines, arcs in levels above them. Units are pixels.

An arc is a bracket: up from one word, across at its level, and down to the other. Arcs are placed
from the shortest to the longest, each one level above all those that it spans, and the ends of
arcs at a word stand side by side, those of longer arcs nearer to its middle. Then only arcs of a
tree that is not projective cross. A sentence too long for the width continues on further lines,
and an arc between lines as two open pieces, which run to the edge and name the other end where
there is room.
"""

import unicodedata
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

from synmt_cli.core.pictures.sentences import LONGEST_LABEL, Arc, Column, Token, shown
from synmt_cli.core.trees.drawing import TooLarge
from synmt_cli.core.trees.heads import ROOT

MOST_COLUMNS = 10_000
WORD, SMALL = 16, 11  # font sizes of words, and of tags and labels
GAP = 16  # the least between words
SLOT = 7  # the most between the ends of arcs at a word
MARGIN = 34  # the least at both ends of a line of a broken sentence, for arcs that go on
MOST_MARGIN = 6  # such a part of the width, although there are labels which are longer
EDGE = 4
_NARROW, _BROAD = frozenset("iljtfrI.,:;'!|()[]-· "), frozenset("mwMWOQG@%&—…→жшщюфыЖШЩЮФЫМ")


def text_width(text: str, size: float) -> float:
    """An estimate of a text's width: the font is chosen where the picture is shown.

    Most texts are at most as wide in DejaVu Sans, the widest font that pictures ask for.
    """
    return size * sum(map(_em, text))


def _em(char: str) -> float:
    if char in _NARROW:
        return 0.39
    if unicodedata.east_asian_width(char) in "WF":
        return 1.0
    if unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0.0
    return 0.98 if char in _BROAD else 0.76 if char.isupper() else 0.62


class Part(NamedTuple):
    """The piece of an arc on one line: across from left to right at a level, from 1.

    left_end, right_end: `head`, `dependent`, or `open` where the arc goes on. of: its arc. The
    part of a root is a line straight down, with left == right.
    """

    left: float
    right: float
    level: int
    left_end: str
    right_end: str
    of: Arc


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the sentence: columns first to last - 1 and their middles.

    parts: the pieces of arcs in each layer.
    """

    first: int
    last: int
    middles: list[float]
    width: float
    parts: list[list[Part]]

    def levels(self, layer: int) -> int:
        """The highest level of a layer, 0 without arcs."""
        return max((part.level for part in self.parts[layer]), default=0)


def lines(
    columns: Sequence[Column],
    layers: Sequence[Sequence[Arc]],
    width: float,
    tokens: Sequence[Token] = (),
) -> list[Line]:
    """The lines of a sentence. layers: the arcs above the words, and those below.

    width: the most that a line takes, unless a single word is wider. tokens: multiword tokens,
    whose forms stand below the words. Raises TooLarge for more than MOST_COLUMNS.
    """
    if len(columns) > MOST_COLUMNS:
        raise TooLarge(f"{len(columns):,} words, and {MOST_COLUMNS:,} are the most")
    widths = [
        max(text_width(shown(one.form), WORD), text_width(shown(one.tag), SMALL), 14)
        for one in columns
    ]
    arcs = [arc for layer in layers for arc in layer]
    labels = [text_width(shown(arc.label, LONGEST_LABEL), SMALL) for arc in arcs]
    for arc, label in zip(arcs, labels, strict=True):
        if arc.head == ROOT:
            widths[arc.dependent] = max(widths[arc.dependent], label - 2 * EDGE)
    gaps = _gaps(widths, arcs)
    for token in tokens:
        _make_room(token, widths, gaps)
    rooms = [gap + own for gap, own in zip(gaps, widths, strict=True)]
    margin = max(MARGIN, min(max(labels, default=0), width / MOST_MARGIN))
    ranges = _ranges(rooms, width, margin)
    margin = margin if len(ranges) > 1 else EDGE
    arcs_of = [_by_line(layer, ranges) for layer in layers]
    made = []
    for number, (first, last) in enumerate(ranges):
        begin = margin - gaps[first]
        rights = [*accumulate(rooms[first:last], initial=begin)][1:]
        middles = [right - own / 2 for right, own in zip(rights, widths[first:last], strict=True)]
        whole = rights[-1] + margin
        parts = [_parts(of[number], first, last, middles, widths, whole) for of in arcs_of]
        made.append(Line(first, last, middles, whole, parts))
    return made


def _gaps(widths: Sequence[float], arcs: Sequence[Arc]) -> list[float]:
    """The space before each column, wide enough that each arc has room for its label."""
    gaps = [0.0, *[float(GAP)] * (len(widths) - 1)]
    for arc in sorted(arcs, key=_span):
        a, b = sorted((arc.head, arc.dependent))
        if a == ROOT or b - a > 8:  # a longer one has room
            continue
        has = sum(gaps[a + 1 : b + 1]) + sum(widths[a + 1 : b]) + (widths[a] + widths[b]) / 2
        gaps[b] += max(0, text_width(shown(arc.label, LONGEST_LABEL), SMALL) + 3 * SLOT - has)
    return gaps


def _make_room(token: Token, widths: list[float], gaps: list[float]) -> None:
    """Widens a token's word, or the gap before its last one, until its form overlaps no other."""
    a, b = token.first, token.last
    needed = text_width(shown(token.form), SMALL + 1) - 2 * EDGE
    if a == b:
        widths[a] = max(widths[a], needed)
        return
    # The form stands in the middle between the middles of the first and the last word.
    has = sum(gaps[a + 1 : b + 1]) + sum(widths[a + 1 : b]) + (widths[a] + widths[b]) / 2
    gaps[b] += max(0, needed - min(widths[a], widths[b]) - has)


def _ranges(rooms: Sequence[float], width: float, margin: float) -> list[tuple[int, int]]:
    """(first, last + 1) of the columns of each line. margin: at both ends of each of several."""
    if sum(rooms) + 2 * EDGE <= width:
        return [(0, len(rooms))]
    ranges, first, taken = [], 0, 2.0 * margin
    for column, room in enumerate(rooms):
        if taken + room > width and column > first:
            ranges.append((first, column))
            first, taken = column, 2.0 * margin
        taken += room
    return [*ranges, (first, len(rooms))]


def _by_line(arcs: Sequence[Arc], ranges: Sequence[tuple[int, int]]) -> list[list[Arc]]:
    """The arcs of each line: those with one end on it, or both."""
    begins = [first for first, _ in ranges]
    of_lines: list[list[Arc]] = [[] for _ in ranges]
    for arc in arcs:
        ends = (arc.dependent,) if arc.head == ROOT else (arc.head, arc.dependent)
        for line in {bisect_right(begins, end) - 1 for end in ends}:
            of_lines[line].append(arc)
    return of_lines


def _span(arc: Arc) -> int:
    return 0 if arc.head == ROOT else abs(arc.head - arc.dependent)


def _parts(
    here: Sequence[Arc],
    first: int,
    last: int,
    middles: Sequence[float],
    widths: Sequence[float],
    whole: float,
) -> list[Part]:
    """The pieces of the arcs `here` on the line of columns first to last - 1."""
    slots = _slots(here, first, last, widths)
    heights = [0] * (last - first + 1)  # gap i is before column first + i
    parts: list[Part] = []
    roots = [arc for arc in here if arc.head == ROOT]
    for arc in sorted((arc for arc in here if arc.head != ROOT), key=_span):
        a, b = max(_low(arc), first - 1), min(max(arc.head, arc.dependent), last)
        gaps = slice(a - first + 1, b - first + 1)
        level = 1 + max(heights[gaps])
        heights[gaps] = [level] * (b - a)
        begin, left_end = 0.0, "open"
        end, right_end = whole, "open"
        if a >= first:
            begin, left_end = middles[a - first] + slots[arc, a], _role(arc, a)
        if b < last:
            end, right_end = middles[b - first] + slots[arc, b], _role(arc, b)
        parts.append(Part(begin, end, level, left_end, right_end, arc))
    for arc in roots:
        i = arc.dependent - first
        level = 1 + max(heights[i : i + 2])
        heights[i : i + 2] = [level] * 2
        x = middles[i] + slots[arc, arc.dependent]
        parts.append(Part(x, x, level, "root", "dependent", arc))
    return parts


def _low(arc: Arc) -> int:
    return arc.dependent if arc.head == ROOT else min(arc.head, arc.dependent)


def _role(arc: Arc, column: int) -> str:
    return "dependent" if arc.dependent == column else "head"


def _slots(
    arcs: Sequence[Arc], first: int, last: int, widths: Sequence[float]
) -> dict[tuple[Arc, int], float]:
    """How far from the middle of a column each arc ends; longer arcs end nearer to the middle."""
    ends: dict[int, list[tuple[float, Arc]]] = defaultdict(list)
    for arc in arcs:
        for column in {arc.dependent, _low(arc), max(arc.head, arc.dependent)}:
            if first <= column < last:
                other = arc.head if arc.dependent == column else arc.dependent
                # From left to right: short to long to the left, the root, long to short.
                order = 0.0 if arc.head == ROOT else 1 / (other - column)
                ends[column].append((order, arc))
    slots = {}
    for column, of_column in ends.items():
        step = min(SLOT, widths[column] / max(len(of_column), 1))
        for i, (_, arc) in enumerate(sorted(of_column)):
            slots[arc, column] = (i - (len(of_column) - 1) / 2) * step
    return slots
