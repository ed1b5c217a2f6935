"""Tokens as moves: what each token of a sequence, and of a target vocabulary, does.

Moves are those of trees/arc_standard.py. A vocabulary has tokens for them if its symbols come from
`linearize --format symbols`. An arc is one token, or a direction and a label.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from synmt_cli.core.text.vocabulary import EOS, SPACE, Vocabulary
from synmt_cli.core.trees.arc_standard import ARCS, NEVER, Move, attachments
from synmt_cli.errors import ConfigError, quoted
from synmt_cli.formats.transitions import GLUE, LEFT, arc, is_symbol

if TYPE_CHECKING:
    import numpy as np

HOW = "synmt linearize --format symbols"
OTHER = len(Move)  # the move of a token that has none
NO_LABEL = 0
# What a decoder may know of the tree so far, for each token of its input, BOS the first:
# the position of the transition that attaches it, [begin, end) of its heads, and its label.
FEATURES = ("arc", "head_begin", "head_end", "arc_label")
Features = dict[str, list[int]]


def move_of_piece(piece: str) -> Move:
    """The move of a piece."""
    if piece == SPACE:
        return Move.SPACE
    return Move.BEGIN if piece.startswith(SPACE) else Move.CONTINUE


def move_of(token: str) -> Move:
    """The move of a token of transitions over pieces. Raises ValueError for a bad label."""
    if token == GLUE:
        return Move.GLUE
    if (half := arc(token)) is None:
        return move_of_piece(token)
    if half.direction is None:
        return Move.LABEL
    return Move.LEFT if half.direction == LEFT else Move.RIGHT


@dataclass(frozen=True)
class Grammar:
    """The moves of a vocabulary's tokens.

    moves: (V,), the Move of each id, OTHER for special ids and symbols of other tools.
    labels: (V,), the number of the label of each arc, from 1; NO_LABEL for everything else.
    names: the labels, the first of them number 1. split: whether direction and label are two
    tokens.
    """

    moves: np.ndarray
    labels: np.ndarray
    names: tuple[str, ...]
    split: bool

    @classmethod
    def of(cls, vocabulary: Vocabulary) -> Grammar:
        """The moves of a vocabulary's tokens. Raises ConfigError if none of them is an arc."""
        import numpy as np  # here, because delinearize does not need it

        moves = np.full(vocabulary.size, OTHER, np.int64)
        labels = np.full(vocabulary.size, NO_LABEL, np.int64)
        numbers: dict[str, int] = {}
        symbols, name = set(vocabulary.symbols), vocabulary.name
        for id, token in vocabulary.generated():
            if is_symbol(token) != (token in symbols):
                continue  # another tool's symbol, or a piece that looks like one of ours
            try:
                moves[id], half = move_of(token), arc(token)
            except ValueError as problem:
                raise ConfigError(f"{name}: symbol {quoted(token)}: {problem}") from None
            if half is not None and half.label is not None:
                labels[id] = numbers.setdefault(half.label, len(numbers) + 1)
        moves[EOS] = Move.FINISH
        if not numbers:
            raise ConfigError(
                f"{name} has no transitions; {HOW} writes those needed, and synmt vocab train "
                "--symbols FILE takes them"
            )
        labels_apart = moves == Move.LABEL
        split = bool(labels_apart.any())
        if split and (labels[~labels_apart] > NO_LABEL).any():
            raise ConfigError(f"{name} has arcs as one token and as two; one vocabulary, one way")
        return cls(moves, labels, tuple(numbers), split)

    @cached_property
    def is_arc(self) -> np.ndarray:
        """(V,) bool, whether each id is an arc or half of one. `<+>` is not: it is text."""
        import numpy as np

        return np.isin(self.moves, (*ARCS, Move.LABEL))

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.names, 1)}

    def features(self, tokens: Sequence[str]) -> Features:
        """FEATURES of BOS and each token after it. Raises ValueError unless they make a tree."""
        edges = attachments([move_of(token) for token in tokens], self.split, whole=True)
        labels = [NO_LABEL, *(self._label(token) for token in tokens)]
        arcs = [NEVER, *(at if at == NEVER else at + 1 for at in edges.at)]
        return {
            "arc": arcs,
            "head_begin": [0, *(position + 1 for position in edges.begin)],
            "head_end": [0, *(position + 1 for position in edges.end)],
            "arc_label": [NO_LABEL if at == NEVER else labels[at] for at in arcs],
        }

    def _label(self, token: str) -> int:
        half = arc(token)
        return NO_LABEL if half is None else self._numbers.get(half.label or "", NO_LABEL)


def refuse_missing(vocabulary: Vocabulary, tokens: Iterable[str]) -> None:
    """Raises ConfigError at the first transition that the vocabulary has no symbol for."""
    vocabulary.refuse_missing(filter(is_symbol, tokens), HOW)
