"""What each token of a sequence of transitions does."""

from __future__ import annotations

from synmt_cli.core.text.vocabulary import SPACE
from synmt_cli.core.trees.arc_standard import Move
from synmt_cli.formats.transitions import GLUE, LEFT, arc


def move_of_piece(piece: str) -> Move:
    """What a piece does."""
    if piece == SPACE:
        return Move.SPACE
    return Move.BEGIN if piece.startswith(SPACE) else Move.CONTINUE


def move_of(token: str) -> Move:
    """What a token of transitions over pieces does."""
    if token == GLUE:
        return Move.GLUE
    if (half := arc(token)) is None:
        return move_of_piece(token)
    if half.direction is None:
        return Move.LABEL
    return Move.LEFT if half.direction == LEFT else Move.RIGHT
