"""The arc-standard system over subword pieces: trees as sequences of moves, and back.

Choshen and Abend (2021), section 3, after Nivre (2003). With a the top of the stack of words
and b the word below it:

    BEGIN, CONTINUE   a piece that begins a word, or one more piece of it: the word is pushed
    LEFT              the arc a -> b; b is popped
    RIGHT             the arc b -> a; a is popped

There is no arc from the root: the word that remains in the end is the root of the tree. So a
tree of n words has n - 1 arcs, and `oracle` gives one sequence for each projective tree.

The pieces take the place of the usual buffer and SHIFT. Three more moves are not in the paper.
GLUE says that the word whose pieces follow stands right after the word before it, without a
space. SPACE is a piece that is nothing but the space before a word, whose characters follow.
LABEL is the second half of an arc whose direction and label are tokens of their own: the arc is
drawn when its label comes.

Everything is linear, and nothing recurses.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

from synmt_cli.core.trees.heads import ROOT


class Move(IntEnum):
    """The effect of one token of a sequence."""

    BEGIN = 0
    CONTINUE = 1
    LEFT = 2
    RIGHT = 3
    LABEL = 4
    GLUE = 5
    FINISH = 6
    SPACE = 7


ARCS = (Move.LEFT, Move.RIGHT)
PIECES = (Move.BEGIN, Move.CONTINUE, Move.SPACE)
OPENING = (Move.GLUE, Move.SPACE)  # they open a word whose first character is still to come
# How many words a move needs on the stack.
_N_WORDS = {Move.BEGIN: 0, Move.SPACE: 0, Move.GLUE: 1, Move.LEFT: 2, Move.RIGHT: 2}


def oracle(heads: Sequence[int]) -> list[tuple[Move, int]] | None:
    """The moves that build a tree over whole words, None if none do.

    Each move comes with its word: the one pushed, or the dependent of the arc. As in the paper,
    an arc is drawn as early as possible, a left one first: LEFT if head(b) = a and b has all its
    dependents, else RIGHT if head(a) = b and a has all of its own, else the next word. That
    succeeds for projective trees with one root and no others. "John put the coals out",
    Example 1:

    >>> moves = oracle([1, -1, 3, 1, 1])
    >>> " ".join(move.name for move, _ in moves)
    'BEGIN BEGIN LEFT BEGIN BEGIN LEFT RIGHT BEGIN RIGHT'
    """
    begin, left, right = Move.BEGIN, Move.LEFT, Move.RIGHT
    n_missing = [0] * len(heads)  # dependents without their arc
    for head in heads:
        if head != ROOT:
            n_missing[head] += 1
    stack: list[int] = []
    moves = []
    for word, head in enumerate(heads):
        moves.append((begin, word))
        top = word
        while stack:
            below = stack[-1]
            if heads[below] == top and not n_missing[below]:
                moves.append((left, below))
                n_missing[top] -= 1
            elif head == below and not n_missing[top]:
                moves.append((right, top))
                n_missing[below] -= 1
                top, head = below, heads[below]
            else:
                break
            stack.pop()
        stack.append(top)
    return moves if len(stack) == 1 else None


class StackWord(NamedTuple):
    """A word on the stack, its tokens [begin, end) of the sequence, and the word below it."""

    begin: int
    end: int
    below: StackWord | None


class Configuration(NamedTuple):
    """The stack after some moves, and what may come next. Immutable.

    n_tokens: the number of moves. last: the last of them, None at the start. direction: LEFT
    or RIGHT while the label of an arc is awaited. top, n_words: the stack and its height.
    split: whether an arc is two tokens. A configuration holds the top of the stack alone, so
    hypotheses share what is below. What is legal depends on last, n_words and split alone.

    The rules are for pieces that show where a word begins (sentencepiece's mark): a word is
    complete as soon as anything but a piece of it follows.
    """

    n_tokens: int = 0
    last: Move | None = None
    direction: Move | None = None
    top: StackWord | None = None
    n_words: int = 0
    split: bool = False

    def allows(self, move: Move) -> bool:
        """Whether a move is legal here. At least one always is.

        >>> [move.name for move in Move if Configuration().after(Move.BEGIN).allows(move)]
        ['BEGIN', 'CONTINUE', 'GLUE', 'FINISH', 'SPACE']
        """
        if self.last in OPENING:  # the opened word must come
            return move == Move.CONTINUE
        if self.direction is not None:
            return move == Move.LABEL
        if move == Move.CONTINUE:
            return self.last in (Move.BEGIN, Move.CONTINUE)
        if move == Move.FINISH:
            return self.n_words == 1
        return move != Move.LABEL and self.n_words >= _N_WORDS[move]

    def after(self, move: Move) -> Configuration:
        """The configuration after one more move. Raises ValueError if it is illegal or FINISH."""
        if move == Move.FINISH or not self.allows(move):
            raise ValueError(f"{move.name} is illegal after {self.n_tokens} tokens")
        if move in ARCS and self.split:
            return self._replace(n_tokens=self.n_tokens + 1, last=move, direction=move)
        if move in (*ARCS, Move.LABEL):
            head, _ = self._pair(move)
            rest = self.top.below.below if self.top and self.top.below else None
            return self._next(move, head._replace(below=rest), self.n_words - 1)
        return self._with_piece(move, grows=move == Move.CONTINUE)

    def after_any(self, move: Move) -> Configuration:
        """The configuration after any move; illegal moves are passed over.

        Pieces are never passed over: one that cannot continue a word begins one, and any piece
        after a GLUE or a SPACE belongs to the word that they open.
        """
        here = self.open_to(move)
        if move != Move.FINISH and here.allows(move):
            return here.after(move)
        if move in PIECES:
            return here._with_piece(move, grows=here.last in OPENING)
        # With FINISH as the last move no piece continues a word.
        return here._next(Move.FINISH, here.top, here.n_words)

    def open_to(self, move: Move) -> Configuration:
        """This configuration without an opened word or a direction that awaits another move."""
        if self.direction is not None and move != Move.LABEL:
            return self._replace(last=Move.FINISH, direction=None)
        if self.last in OPENING and move not in PIECES and self.top:
            return self._replace(last=Move.FINISH, top=self.top.below, n_words=self.n_words - 1)
        return self

    def _with_piece(self, move: Move, grows: bool) -> Configuration:
        at, top = self.n_tokens, self.top
        if grows and top is not None:
            return self._next(move, top._replace(end=at + 1), self.n_words)
        return self._next(move, StackWord(at, at + 1, top), self.n_words + 1)

    def _next(self, move: Move, top: StackWord | None, n_words: int) -> Configuration:
        return Configuration(self.n_tokens + 1, move, None, top, n_words, self.split)

    def _pair(self, move: Move) -> tuple[StackWord, StackWord]:
        top = self.top
        assert top is not None
        assert top.below is not None
        direction = self.direction or move
        return (top, top.below) if direction == Move.LEFT else (top.below, top)

    def arc(self, move: Move) -> tuple[StackWord, StackWord] | None:
        """(head, dependent) of the arc that a move draws here, None if it draws none."""
        draws = move == Move.LABEL if self.split else move in ARCS
        return self._pair(move) if draws and self.allows(move) else None


class Attachments(NamedTuple):
    """The edges between tokens, as three numbers for each token of a sequence.

    at: the position of the transition that attaches the token: the one that draws the arc to
    its word, or the token itself if it draws an arc; NEVER if there is none. The heads of the
    token are the tokens [begin, end), and `at` unless that is the token itself. The edges are
    in each prefix that holds the token `at`; a token has no earlier ones, because a word is
    attached once.
    """

    at: list[int]
    begin: list[int]
    end: list[int]


NEVER = 2**30  # longer than any sequence


def attachments(moves: Sequence[Move], split: bool = False, whole: bool = False) -> Attachments:
    """The edges that a sequence draws between its tokens (the table of section 3).

    For the arc head -> dependent of the transition x, there are edges from each token of the
    head to each of the dependent, from x to each of the dependent, and from each of the head
    to x. The tokens of a word are its pieces and its GLUE. An illegal transition raises
    ValueError. whole: a sequence that does not end in one tree raises it, too.

    >>> moves = [Move.BEGIN, Move.CONTINUE, Move.BEGIN, Move.LEFT]  # Jo hn put LEFT-ARC:nsubj
    >>> edges = attachments(moves)
    >>> edges.at == [3, 3, NEVER, 3], edges.begin, edges.end
    (True, [2, 2, 0, 2], [3, 3, 0, 3])
    """
    n = len(moves)
    edges = Attachments([NEVER] * n, [0] * n, [0] * n)
    configuration = Configuration(split=split)
    for x, move in enumerate(moves):
        if arc := configuration.arc(move):
            head, dependent = arc
            for token in (*range(dependent.begin, dependent.end), x):
                edges.at[token], edges.begin[token], edges.end[token] = x, head.begin, head.end
        configuration = configuration.after(move)
    if whole and not configuration.allows(Move.FINISH):
        raise ValueError(f"no whole tree: {configuration.n_words} words are left")
    return edges
