"""The layout of an upright tree: words go down by depth, across in the order of the sentence.

A word stands right of the word before it, and far enough from the last word of its own depth. An
edge lies between two neighbouring depths, so it runs through no word, and edges cross only in a
tree that is not projective.
"""

from dataclasses import dataclass

from synmt_cli.core.pictures.sentences import LONGEST_LABEL, Column, Picture, shown
from synmt_cli.core.pictures.trees.arcs import EDGE, GAP, MOST_COLUMNS, SMALL, WORD, text_width
from synmt_cli.core.trees.drawing import TooLarge
from synmt_cli.core.trees.heads import ROOT

DEPTH = 76  # from one depth to the next
BELOW = SMALL + 9  # room for the tag and the label below a word
LEAST = 14  # between the middles of neighbouring words, whatever their depths


@dataclass(frozen=True, slots=True)
class Placed:
    """The middle of each column on its baseline, and the size of the whole."""

    at: list[tuple[float, float]]
    width: float
    height: float


def layout(one: Picture) -> Placed:
    """The places of a tree's columns. Raises TooLarge for more than MOST_COLUMNS."""
    if len(one.columns) > MOST_COLUMNS:
        raise TooLarge(f"{len(one.columns):,} words, and {MOST_COLUMNS:,} are the most")
    depths = _depths(one)
    labels = {arc.dependent: arc.label for arc in reversed(one.arcs)}
    rights: dict[int, float] = {}  # depth: where its last word ends
    at: list[tuple[float, float]] = []
    x = -float(LEAST)
    for i, column in enumerate(one.columns):
        half = (
            max(
                text_width(shown(column.form), WORD),
                text_width(tag_and_label(column, labels.get(i, "")), SMALL),
            )
            / 2
        )
        x = max(x + LEAST, rights.get(depths[i], EDGE - GAP) + GAP + half)
        rights[depths[i]] = x + half
        at.append((x, WORD + DEPTH * depths[i]))
    width = max(rights.values(), default=1) + EDGE
    if not one.rightward:
        at = [(width - x, y) for x, y in at]
    return Placed(at, width, WORD + DEPTH * max(depths, default=0) + BELOW)


def tag_and_label(column: Column, label: str) -> str:
    """The line below a word, with its tag and its label."""
    return " · ".join(filter(None, (shown(column.tag, LONGEST_LABEL), shown(label, LONGEST_LABEL))))


def _depths(one: Picture) -> list[int]:
    """The depth of each column, 0 for a root; an empty node hangs from the first of its heads."""
    heads = {arc.dependent: arc.head for arc in reversed(one.arcs)}
    depths: dict[int, int] = {ROOT: -1}
    for column in range(len(one.columns)):
        path = []
        while column not in depths:
            if column in path:  # empty nodes may hang from one another
                depths[column] = 0
                break
            path.append(column)
            column = heads.get(column, ROOT)
        for below in reversed(path):
            depths[below] = depths[heads.get(below, ROOT)] + 1
    return [depths[column] for column in range(len(one.columns))]
