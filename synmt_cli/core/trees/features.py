"""The features that the papers compute from a tree, for every piece of the source.

Pieces inherit from their word. A piece that belongs to no word stands for itself: it is its own
parent, has depth 0, no label and no path. So does every piece where there is no tree. A word
without a piece of its own (the second word of a multiword token, or one inside a piece that
covers two words) is found at the pieces of the nearest word before it that has some, or
else after it. Positions are 0-based indices into the pieces.

`FEATURES` are linear in the sentence once they are numbers: they turn records into tensors. The
labels of `path` are not, so data/encoding.py numbers the paths without listing them. `MATRICES` are
not linear either: models build them on the device, and `featurize --emit` shows them.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, TypeVar

from synmt_cli.core.trees.heads import ROOT, depths, paths
from synmt_cli.formats.record import NO_WORD, Record

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class PieceTree:
    """A tree over words and the word of each piece. heads: 0-based, -1 the root.

    sents: the first word of each sentence.
    """

    heads: Sequence[int]
    deprels: Sequence[str]
    sents: Sequence[int]
    piece_word: Sequence[int]


def tree_of(record: Record) -> PieceTree:
    """The tree of a record. Where there are no pieces, words take their place."""
    heads, deprels = record.heads or [], record.deprels or []
    if record.piece_word is not None:
        piece_word = record.piece_word
    elif record.pieces is not None:
        piece_word = [NO_WORD] * len(record.pieces)
    else:
        piece_word = list(range(len(heads)))
    return PieceTree(heads, deprels, record.sents, piece_word)


@dataclass(frozen=True, slots=True)
class Feature:
    """One value for each piece.

    compute: gives the values of a tree. eos: gives the value of an end-of-sentence token after
    the pieces of a tree. kind: of a value; `label` is a string, "" for none, `labels` the list of
    those from the root to the piece's word.
    """

    compute: Callable[[PieceTree], list[Any]]
    eos: Callable[[PieceTree], Any]
    kind: Literal["int", "float", "label", "labels"]


def _inherited(tree: PieceTree, of_words: Iterable[Value], none: Value) -> list[Value]:
    """The value of each piece's word; `none` for a piece without a word."""
    values = [*of_words, none]  # `none` last, where the index NO_WORD, -1, finds it
    return [values[word] for word in tree.piece_word]


def depth(tree: PieceTree) -> list[int]:
    """The number of arcs between each piece's word and the root of its sentence."""
    return _inherited(tree, depths(tree.heads), 0)


def sentence(tree: PieceTree) -> list[int]:
    """The number of each piece's sentence in the line; -1 outside the tree."""
    bounds = enumerate(pairwise([*tree.sents, len(tree.heads)]))
    numbers = (number for number, (begin, end) in bounds for _ in range(begin, end))
    return _inherited(tree, numbers, NO_WORD)


def word(tree: PieceTree) -> list[int]:
    """The word of each piece; a number of its own, below -1, for a piece without a word."""
    return [
        -2 - position if word == NO_WORD else word for position, word in enumerate(tree.piece_word)
    ]


def head_word(tree: PieceTree) -> list[int]:
    """The head of each piece's word; -1 if there is none."""
    return _inherited(tree, tree.heads, NO_WORD)


def parent_middle(tree: PieceTree) -> list[float]:
    """The middle position of each piece's parent word (Bugliarello and Okazaki 2020).

    It is the mean of the positions of the word's pieces, so x.5 for an even number of them. The
    parent of a root is the root itself. Section 3: a parent split into the tokens 6, 7, 8 is
    at 7.

    >>> parent_middle(PieceTree([1, -1], ["det", "root"], [0], [0, 1, 1, 1]))
    [2.0, 2.0, 2.0, 2.0]
    """
    sums, counts = [0] * len(tree.heads), [0] * len(tree.heads)
    for position, word in enumerate(tree.piece_word):
        if word != NO_WORD:
            sums[word] += position
            counts[word] += 1
    middles = [s / n if n else None for s, n in zip(sums, counts, strict=True)]
    return [float(value) for value in _at_parents(tree, filled(middles))]


def parent_first(tree: PieceTree) -> list[int]:
    """The first position of each piece's parent word, or of its own word if that is a root."""
    firsts: list[int | None] = [None] * len(tree.heads)
    for position in range(len(tree.piece_word) - 1, -1, -1):
        if tree.piece_word[position] != NO_WORD:
            firsts[tree.piece_word[position]] = position
    return [int(value) for value in _at_parents(tree, filled(firsts))]


def _at_parents(tree: PieceTree, of_word: Sequence[float]) -> list[float]:
    """The value of the parent of each piece's word; for a piece without a word, its position."""
    parents = [word if head == ROOT else head for word, head in enumerate(tree.heads)]
    of_parent = [of_word[parent] for parent in parents]
    return [
        position if word == NO_WORD else of_parent[word]
        for position, word in enumerate(tree.piece_word)
    ]


def filled(of_word: Sequence[float | None]) -> list[float]:
    """The same values, each None replaced by the nearest value before it, or else after it."""
    value = next((value for value in of_word if value is not None), 0)
    filled = []
    for own in of_word:
        value = value if own is None else own
        filled.append(value)
    return filled


def path(tree: PieceTree) -> list[list[str]]:
    """The labels from the root to each piece's word (Xie et al. 2021)."""
    return _inherited(tree, paths(tree.heads, tree.deprels), [])


def tag(tree: PieceTree) -> list[str]:
    """The label of each piece's word; "" for none."""
    return _inherited(tree, tree.deprels, "")


def dep_rel(tree: PieceTree) -> list[list[int | None]]:
    """depth(j) - depth(i) in row i, column j (Omote et al. 2019). Not clipped.

    None: there is no relation with a piece outside the tree or in another sentence.
    """
    pieces = list(zip(sentence(tree), depth(tree), strict=True))
    return [
        [depth_j - depth_i if s_i == s_j != NO_WORD else None for s_j, depth_j in pieces]
        for s_i, depth_i in pieces
    ]


def struct_rel(tree: PieceTree) -> list[list[int]]:
    """Relative structural positions, row i, column j (Wang et al. 2019, section 3.2).

    abs_i - abs_j between a head and its dependent, 0 inside one word, else
    sign(i - j) * (abs_i + abs_j). Not clipped.
    """
    positions = depth(tree)
    pieces = range(len(positions))
    return [[_structural(tree, positions, i, j) for j in pieces] for i in pieces]


def _structural(tree: PieceTree, positions: Sequence[int], i: int, j: int) -> int:
    word_i, word_j = tree.piece_word[i], tree.piece_word[j]
    if i == j or word_i == word_j != NO_WORD:
        return 0
    are_words = NO_WORD not in (word_i, word_j)
    if are_words and (tree.heads[word_i] == word_j or tree.heads[word_j] == word_i):
        return positions[i] - positions[j]
    return (positions[i] + positions[j]) * (1 if i > j else -1)


def _below_all(tree: PieceTree) -> int:
    """One more than the greatest depth of a word, whether it has a piece or not, or of a piece."""
    return max([*depths(tree.heads), *depth(tree)], default=-1) + 1


def _after_all(tree: PieceTree) -> int:
    """The position after the pieces."""
    return len(tree.piece_word)


# EOS is its own parent (our reading of PASCAL, which does not say), and its depth is the greatest
# depth + 1 (Wang et al.). For all else, where papers are silent, it has no place in the tree: depth
# 0, no label, no path.
FEATURES: dict[str, Feature] = {
    "depth": Feature(depth, lambda tree: 0, "int"),
    "parent_middle": Feature(parent_middle, lambda tree: float(_after_all(tree)), "float"),
    "parent_first": Feature(parent_first, _after_all, "int"),
    "struct_abs": Feature(depth, _below_all, "int"),
    "sentence": Feature(sentence, lambda tree: NO_WORD, "int"),
    "word": Feature(word, lambda tree: -2 - _after_all(tree), "int"),
    "head_word": Feature(head_word, lambda tree: NO_WORD, "int"),
    "path": Feature(path, lambda tree: [], "labels"),
    "tag": Feature(tag, lambda tree: "", "label"),
}
MATRICES: dict[str, Callable[[PieceTree], list[Any]]] = {
    "struct_rel": struct_rel,
    "dep_rel": dep_rel,
}
EMITTED: dict[str, Callable[[PieceTree], list[Any]]] = {
    **{name: feature.compute for name, feature in FEATURES.items()},
    **MATRICES,
}
