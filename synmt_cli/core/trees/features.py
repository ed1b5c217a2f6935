"""What each paper computes from a tree, for every piece of the source.

Pieces inherit from their word. A piece that belongs to no word stands for itself: its own
parent, depth 0, no label, no path; so does every piece where there is no tree. A word
without a piece of its own (the second word of a multiword token, or one inside a piece that
covers two words) is found at the pieces of the nearest word before it that has some, or
else after it. Positions are 0-based indices into the pieces.

`FEATURES` are linear in the sentence: records are turned into tensors by them. `MATRICES`
are not; models build them on the device, and `featurize --emit` shows them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from synmt_cli.core.trees.heads import ROOT, depths, paths
from synmt_cli.formats.record import Record

NONE = -1  # piece_word of a piece that belongs to no word


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
    """The tree of a record. Without pieces, words take their place."""
    heads, deprels = record.heads or [], record.deprels or []
    if record.piece_word is not None:
        piece_word = record.piece_word
    elif record.pieces is not None:
        piece_word = [NONE] * len(record.pieces)
    else:
        piece_word = list(range(len(heads)))
    return PieceTree(heads, deprels, record.sents, piece_word)


@dataclass(frozen=True, slots=True)
class Feature:
    """One value for each piece.

    compute: Tree -> the values. eos: the values -> the value of an end-of-sentence token
    behind them. kind: what a value is; `label` is a string, "" for none, `labels` a list.
    """

    compute: Callable[[PieceTree], list[Any]]
    eos: Callable[[Sequence[Any]], Any]
    kind: Literal["int", "float", "label", "labels"]


def depth(tree: PieceTree) -> list[int]:
    """Arcs between each piece's word and the root of its sentence."""
    of_word = [*depths(tree.heads), 0]  # the last: for NONE
    return [of_word[word] for word in tree.piece_word]


def sentence(tree: PieceTree) -> list[int]:
    """The number of each piece's sentence in the line; -1 outside the tree."""
    of_word = [*_sentences(tree), NONE]
    return [of_word[word] for word in tree.piece_word]


def word(tree: PieceTree) -> list[int]:
    """The word of each piece; a number of its own, below -1, for a piece without a word."""
    return [
        -2 - position if word == NONE else word for position, word in enumerate(tree.piece_word)
    ]


def head_word(tree: PieceTree) -> list[int]:
    """The head of each piece's word; -1 where there is none."""
    of_word = [*tree.heads, NONE]
    return [of_word[word] for word in tree.piece_word]


def parent_middle(tree: PieceTree) -> list[float]:
    """The middle position of each piece's parent word (Bugliarello and Okazaki 2020).

    The mean of the positions of the word's pieces, so x.5 for an even number. The parent of
    a root is the root itself. Section 3: a parent split into the tokens 6, 7, 8 is at 7.

    >>> parent_middle(PieceTree([1, -1], ["det", "root"], [0], [0, 1, 1, 1]))
    [2.0, 2.0, 2.0, 2.0]
    """
    sums, counts = [0] * len(tree.heads), [0] * len(tree.heads)
    for position, word in enumerate(tree.piece_word):
        if word != NONE:
            sums[word] += position
            counts[word] += 1
    middles = [s / n if n else None for s, n in zip(sums, counts, strict=True)]
    return [float(value) for value in _at_parents(tree, _filled(middles))]


def parent_first(tree: PieceTree) -> list[int]:
    """The first position of each piece's parent word; of its own word, if that is a root."""
    firsts: list[int | None] = [None] * len(tree.heads)
    for position in range(len(tree.piece_word) - 1, -1, -1):
        if tree.piece_word[position] != NONE:
            firsts[tree.piece_word[position]] = position
    return [int(value) for value in _at_parents(tree, _filled(firsts))]


def _at_parents(tree: PieceTree, of_word: Sequence[float]) -> list[float]:
    """of_word of the parent of each piece's word; its own position where there is no word."""
    parents = [word if head == ROOT else head for word, head in enumerate(tree.heads)]
    of_parent = [of_word[parent] for parent in parents]
    return [
        position if word == NONE else of_parent[word]
        for position, word in enumerate(tree.piece_word)
    ]


def _filled(of_word: Sequence[float | None]) -> list[float]:
    """The same with every None replaced by the nearest value before it, else after it."""
    value = next((value for value in of_word if value is not None), 0)
    filled = []
    for own in of_word:
        value = value if own is None else own
        filled.append(value)
    return filled


def path(tree: PieceTree) -> list[list[str]]:
    """The labels from the root to each piece's word (Xie et al. 2021)."""
    of_word = [*paths(tree.heads, tree.deprels), []]
    return [of_word[word] for word in tree.piece_word]


def tag(tree: PieceTree) -> list[str]:
    """The label of each piece's word; "" for none."""
    of_word = [*tree.deprels, ""]
    return [of_word[word] for word in tree.piece_word]


def dep_rel(tree: PieceTree) -> list[list[int | None]]:
    """depth(j) - depth(i) in row i, column j (Omote et al. 2019); None: no relation.

    There is none with a piece outside the tree or in another sentence. Not clipped.
    """
    pieces = list(zip(sentence(tree), depth(tree), strict=True))
    return [
        [depth_j - depth_i if s_i == s_j != NONE else None for s_j, depth_j in pieces]
        for s_i, depth_i in pieces
    ]


def _sentences(tree: PieceTree) -> list[int]:
    """The number of each word's sentence."""
    ends = [*tree.sents[1:], len(tree.heads)]
    return [
        number
        for number, (begin, end) in enumerate(zip(tree.sents, ends, strict=True))
        for _ in range(begin, end)
    ]


def struct_rel(tree: PieceTree) -> list[list[int]]:
    """Relative structural positions, row i, column j (Wang et al. 2019, section 3.2).

    abs_i - abs_j between a head and its dependent, else sign(i - j) * (abs_i + abs_j); 0
    inside one word. Not clipped.
    """
    of_piece = depth(tree)
    return [
        [_structural(tree, of_piece, i, j) for j in range(len(of_piece))]
        for i in range(len(of_piece))
    ]


def _structural(tree: PieceTree, of_piece: Sequence[int], i: int, j: int) -> int:
    word_i, word_j = tree.piece_word[i], tree.piece_word[j]
    if i == j or word_i == word_j != NONE:
        return 0
    if NONE not in (word_i, word_j) and (
        tree.heads[word_i] == word_j or tree.heads[word_j] == word_i
    ):
        return of_piece[i] - of_piece[j]
    return (of_piece[i] + of_piece[j]) * (1 if i > j else -1)


def _next_position(values: Sequence[Any]) -> int:
    return len(values)


def _outside(values: Sequence[Any]) -> int:
    return NONE


def _own_word(values: Sequence[Any]) -> int:
    return -2 - len(values)


def _below_all(values: Sequence[int]) -> int:
    return max(values, default=-1) + 1


# The papers say for EOS: its own parent (our reading of PASCAL), max depth + 1 (Wang et al.);
# where they are silent it has no tree position: depth 0, no label, no path.
FEATURES: dict[str, Feature] = {
    "depth": Feature(depth, lambda values: 0, "int"),
    "parent_middle": Feature(parent_middle, lambda values: float(len(values)), "float"),
    "parent_first": Feature(parent_first, _next_position, "int"),
    "struct_abs": Feature(depth, _below_all, "int"),
    "sentence": Feature(sentence, _outside, "int"),
    "word": Feature(word, _own_word, "int"),
    "head_word": Feature(head_word, _outside, "int"),
    "path": Feature(path, lambda values: [], "labels"),
    "tag": Feature(tag, lambda values: "", "label"),
}
MATRICES: dict[str, Callable[[PieceTree], list[Any]]] = {
    "struct_rel": struct_rel,
    "dep_rel": dep_rel,
}
EMITTED: dict[str, Callable[[PieceTree], list[Any]]] = {
    **{name: feature.compute for name, feature in FEATURES.items()},
    **MATRICES,
}
