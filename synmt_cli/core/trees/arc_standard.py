"""The arc-standard system over subword pieces: trees as sequences of moves, and back.

Choshen and Abend (2021), section 3, after Nivre (2003). With a the top of the stack of words
and b the one below it:

    BEGIN, CONTINUE   a piece that begins a word, or one more piece of it: the word is pushed
    LEFT              the arc a -> b, and b is gone
    RIGHT             the arc b -> a, and a is gone

There is no arc from the root: the word that is left in the end is the root of the tree. So a
tree of n words has n - 1 arcs, and each projective tree has one sequence by `oracle`.

Three moves more are not in the paper. GLUE says that the word whose pieces follow it stands
without a space behind the one before. SPACE is a piece that is nothing but the space before a
word, whose characters follow. LABEL is the second half of an arc, where direction and label
are tokens of their own: the arc is there when its label is.

Everything is linear and recurses nowhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import NamedTuple

from synmt_cli.core.trees.heads import ROOT


class Move(IntEnum):
    """What one token of a sequence does."""

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
OPENING = (Move.GLUE, Move.SPACE)  # a word whose first character is still to come
# How many words each needs on the stack.
_N_WORDS = {Move.BEGIN: 0, Move.SPACE: 0, Move.GLUE: 1, Move.LEFT: 2, Move.RIGHT: 2}


def oracle(heads: Sequence[int]) -> list[tuple[Move, int]] | None:
    """The moves that build a tree over whole words, None if none do.

    With each move its word: the one pushed, or the dependent of the arc. As the paper's, an
    arc comes as early as it can, a left one first: LEFT if head(b) = a and b has all its
    dependents, else RIGHT if head(a) = b and a has all, else the next word. That succeeds for
    projective trees with one root and no others. "John put the coals out", Example 1:

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


def replay(moves: Iterable[Move]) -> list[int]:
    """The heads that moves over whole words build: the inverse of `oracle`.

    Raises ValueError if they do not build one tree.

    >>> replay([Move.BEGIN, Move.BEGIN, Move.LEFT, Move.BEGIN, Move.RIGHT])
    [1, -1, 1]
    """
    heads: list[int] = []
    stack: list[int] = []
    for number, move in enumerate(moves):
        if move == Move.BEGIN:
            stack.append(len(heads))
            heads.append(ROOT)
        elif move not in ARCS:
            raise ValueError(f"move {number} is {move!r}, no word and no arc")
        elif len(stack) < 2:
            raise ValueError(f"arc {number} finds fewer than two words")
        else:
            top, below = stack.pop(), stack.pop()
            head, dependent = (top, below) if move == Move.LEFT else (below, top)
            heads[dependent] = head
            stack.append(head)
    if len(stack) > 1:
        raise ValueError(f"{len(stack)} words are left without a head")
    return heads


class StackWord(NamedTuple):
    """A word on the stack: its tokens are [begin, end) of the sequence, `below` is beneath it."""

    begin: int
    end: int
    below: StackWord | None


class Configuration(NamedTuple):
    """A prefix of moves: the words on its stack, and what may come next. Immutable.

    n_tokens: how long the prefix is. last: its last move, None at the start. direction: LEFT or
    RIGHT while the label of an arc is awaited. top: the stack. n_words: its height. split:
    whether an arc is two tokens. A state is as small as a stack's top: hypotheses share what is
    below. What is legal depends on last, n_words and split alone.

    The rules are for pieces that show where a word begins (sentencepiece's mark): a word is
    whole as soon as something else than a piece of it follows.
    """

    n_tokens: int = 0
    last: Move | None = None
    direction: Move | None = None
    top: StackWord | None = None
    n_words: int = 0
    split: bool = False

    def legal(self) -> list[Move]:
        """The moves that are allowed here. There is always one.

        >>> [move.name for move in State().after(Move.BEGIN).legal()]
        ['BEGIN', 'CONTINUE', 'GLUE', 'FINISH', 'SPACE']
        """
        return [move for move in Move if self.allows(move)]

    def allows(self, move: Move) -> bool:
        """Whether a move is legal here."""
        last = self.last
        if last in OPENING:  # the word that it opens must come
            return move == Move.CONTINUE
        if self.direction is not None:
            return move == Move.LABEL
        if move == Move.CONTINUE:
            return last in (Move.BEGIN, Move.CONTINUE)
        if move == Move.FINISH:
            return self.n_words == 1
        return move != Move.LABEL and self.n_words >= _N_WORDS[move]

    def after(self, move: Move) -> Configuration:
        """The state behind one more token. Raises ValueError for an illegal one, and FINISH."""
        if move == Move.FINISH or not self.allows(move):
            raise ValueError(f"{move.name} is illegal behind {self.n_tokens} tokens")
        if move in ARCS and self.split:
            return self._replace(n_tokens=self.n_tokens + 1, last=move, direction=move)
        if move in (Move.LEFT, Move.RIGHT, Move.LABEL):
            head, _ = self._pair(move)
            rest = self.top.below.below if self.top and self.top.below else None
            return self._next(move, head._replace(below=rest), self.n_words - 1)
        return self._with_piece(move, grows=move == Move.CONTINUE)

    def tolerant(self, move: Move) -> Configuration:
        """The state behind any token of `open_to(move)`: what is illegal there is passed over.

        But no piece is: one that cannot go on with a word begins one, and behind a GLUE or a
        SPACE any is of the word that they open.
        """
        if move != Move.FINISH and self.allows(move):
            return self.after(move)
        if move in PIECES:
            return self._with_piece(move, grows=self.last in OPENING)
        # FINISH as the last move: no piece goes on with a word behind it.
        return self._next(Move.FINISH, self.top, self.n_words)

    def open_to(self, move: Move) -> Configuration:
        """This state without an opened word or a direction that awaits another move than this."""
        if self.direction is not None and move != Move.LABEL:
            return self._replace(last=Move.FINISH, direction=None)
        if self.last in OPENING and move not in PIECES and self.top:
            top, n_words = self.top.below, self.n_words - 1
            return self._replace(last=Move.FINISH, top=top, n_words=n_words)
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
        kind = self.direction or move
        return (top, top.below) if kind == Move.LEFT else (top.below, top)

    def arc(self, move: Move) -> tuple[StackWord, StackWord] | None:
        """(head, dependent) of the arc that a move draws here, None if it draws none."""
        if self.split != (move == Move.LABEL) or not self.allows(move):
            return None
        return None if move not in (*ARCS, Move.LABEL) else self._pair(move)


class Attachments(NamedTuple):
    """The edges between tokens, as three numbers for each token of a sequence.

    at: the transition that attaches the token: the one that draws the arc to its word, itself
    if it is one that draws an arc, NEVER if there is none. Its heads are the tokens
    [begin, end), and `at` unless that is itself. The edges are there in each prefix that holds
    the token `at`, which no other edge of the token precedes: a word is attached once.
    """

    at: list[int]
    begin: list[int]
    end: list[int]


NEVER = 2**30  # no sequence is so long


def attachments(
    moves: Sequence[Move], split: bool = False, lenient: bool = False, whole: bool = False
) -> Attachments:
    """The edges that a sequence draws between its tokens (the table of section 3).

    For the arc head -> dependent of the transition x there are edges from each token of the
    head to each of the dependent, from x to each of the dependent, and from each of the head
    to x. The tokens of a word are its pieces, and its GLUE. lenient: an illegal transition
    draws nothing, as in the published code; else it raises ValueError. whole: so does a
    sequence whose tree is not one in the end.

    >>> moves = [Move.BEGIN, Move.CONTINUE, Move.BEGIN, Move.LEFT]  # Jo hn put LEFT-ARC:nsubj
    >>> found = attachments(moves)
    >>> found.at == [3, 3, NEVER, 3], found.begin, found.end
    (True, [2, 2, 0, 2], [3, 3, 0, 3])
    """
    n = len(moves)
    found = Attachments([NEVER] * n, [0] * n, [0] * n)
    state = Configuration(split=split)
    for x, move in enumerate(moves):
        if lenient:
            state = state.open_to(move)
        if arc := state.arc(move):
            head, dependent = arc
            for token in (*range(dependent.begin, dependent.end), x):
                found.at[token], found.begin[token], found.end[token] = x, head.begin, head.end
        state = state.tolerant(move) if lenient else state.after(move)
    if whole and not state.allows(Move.FINISH):
        raise ValueError(f"no whole tree: {state.n_words} words are left")
    return found
