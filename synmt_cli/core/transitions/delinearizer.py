"""Transitions back to words, trees and text: the inverse of transitions.py.

A broken sequence can be repaired to the nearest tree: no piece is touched, and as few arcs as
can be are left out or put in. An arc that finds fewer than two words must go, and each word
but one that is left in the end needs an arc more: like brackets without a partner, these are
as many whatever one does about them. What is put in is RIGHT-ARC:dep at the end, so that a
word without a head depends on the one before it that has none either.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from synmt_cli.core.text.vocabulary import SPACE, Vocabulary
from synmt_cli.core.transitions.moves import move_of_piece
from synmt_cli.core.trees.arc_standard import Configuration, Move, StackWord
from synmt_cli.core.trees.heads import ROOT
from synmt_cli.errors import quoted
from synmt_cli.formats.transitions import GLUE, LEFT, Arc, arc, unescape

ROOT_LABEL, UNKNOWN_LABEL = "root", "dep"
_BAD = ("\t", "\n", "\0")  # in no form and no label of CoNLL-U


class Broken(Exception):
    """Why a sequence is no tree. The number of a token counts from 1."""


@dataclass(slots=True)
class BuiltSentence:
    """Words with their tree. glued: whether no space stands before each word.

    heads: 0-based, -1 is the root. n_repairs: tokens that were left out, put in or read as
    what they cannot be.
    """

    forms: list[str] = field(default_factory=list)
    glued: list[bool] = field(default_factory=list)
    heads: list[int] = field(default_factory=list)
    deprels: list[str] = field(default_factory=list)
    n_repairs: int = 0

    @property
    def text(self) -> str:
        """The line: single spaces, and none before a glued word."""
        spaced = (f if g else f" {f}" for f, g in zip(self.forms, self.glued, strict=True))
        return "".join(spaced)[1:]


class Delinearizer:
    """vocabulary: what the tokens are pieces of, None if they are words."""

    def __init__(self, vocabulary: Vocabulary | None = None, repair: bool = False) -> None:
        self.vocabulary, self.repair = vocabulary, repair

    def sentence(self, tokens: Sequence[str], escaped: bool = True) -> BuiltSentence:
        """The sentence of a sequence, without words if there are none. Raises Broken.

        escaped: whether pieces are escaped, as in lines of text; words always are. With
        `repair` only a token is Broken that nothing can be made of.
        """
        escaped = escaped or self.vocabulary is None
        building = _Building(self.repair)
        for number, token in enumerate(tokens, 1):
            try:
                half = arc(token)
                text = "" if half or token == GLUE else unescape(token) if escaped else token
            except ValueError as problem:
                raise Broken(f"token {number}: {problem}") from None
            if half is not None:
                _check(number, half.label or "label")
                building.add_arc(number, half)
            elif token == GLUE:
                building.add(number, Move.GLUE, "")
            else:
                _check(number, text)
                building.add(number, self._move(text, building.awaits_glued), text)
        return building.finish(self.vocabulary)

    def _move(self, text: str, glued: bool) -> Move:
        """What a word or a piece does."""
        if self.vocabulary is None:
            return Move.CONTINUE if glued else Move.BEGIN
        return move_of_piece(text)


def _check(number: int, text: str) -> None:
    if not text or any(bad in text for bad in _BAD):
        problem = f"{quoted(text)} has a TAB, LF or NUL" if text else "is empty"
        raise Broken(f"token {number}: {problem}" if text else f"token {number} {problem}")


class _Building:
    """A sentence as its moves come. The number of a token is for messages."""

    def __init__(self, repair: bool) -> None:
        self._repair = repair
        self._state = Configuration()
        self._direction: tuple[int, Move] | None = None  # of an arc without its label so far
        self._words: dict[int, int] = {}  # by where they begin, in moves
        self._pieces: list[list[str]] = []
        self._found = BuiltSentence()

    @property
    def awaits_glued(self) -> bool:
        """Whether the next word is glued."""
        return self._state.last == Move.GLUE

    def add_arc(self, number: int, half: Arc) -> None:
        """Takes an arc, or one half of it."""
        if half.direction is not None:
            self._settle()
            move = Move.LEFT if half.direction == LEFT else Move.RIGHT
            if half.label is None:
                self._direction = number, move
            else:
                self.add(number, move, half.label)
        elif self._direction is None:
            self._refuse(number, f"the label {quoted(half.label or '')} has no direction before it")
        else:
            (_, move), self._direction = self._direction, None
            self.add(number, move, half.label or "")

    def _settle(self) -> None:
        """Gives a direction whose label did not come one that says nothing."""
        if self._direction is not None:
            (number, move), self._direction = self._direction, None
            self._refuse(number, "a direction without a label behind it")
            self.add(number, move, UNKNOWN_LABEL)

    def add(self, number: int, move: Move, text: str) -> None:
        """Takes a word, a piece, a GLUE, or an arc with its label."""
        self._settle()
        state = self._opened_to(number, move)
        if not state.allows(move):
            self._refuse(number, self._problem(move, text))
        if pair := state.arc(move):
            self._attach(*pair, text)
        self._state = state.tolerant(move)
        if self._state.top is not None and move in (Move.BEGIN, Move.CONTINUE):
            self._add_piece(self._state.top.begin, text, glued=state.last == Move.GLUE)

    def _opened_to(self, number: int, move: Move) -> Configuration:
        """The state without a word that was opened before this token and did not come."""
        state = self._state.open_to(move)
        if state is not self._state:
            what = f"{GLUE} glues nothing" if self.awaits_glued else f"{SPACE} begins no word"
            self._refuse(number - 1, what)
        return state

    def _attach(self, head: StackWord, dependent: StackWord, label: str) -> None:
        word = self._words[dependent.begin]
        self._found.heads[word] = self._words[head.begin]
        self._found.deprels[word] = label

    def _add_piece(self, begin: int, text: str, glued: bool) -> None:
        if begin in self._words:
            self._pieces[self._words[begin]].append(text)
            return
        self._words[begin] = len(self._pieces)
        self._pieces.append([text])
        self._found.glued.append(glued)
        self._found.heads.append(ROOT)
        self._found.deprels.append(ROOT_LABEL)

    def _problem(self, move: Move, text: str) -> str:
        if move == Move.GLUE:
            return f"{GLUE} before the first word"
        if move in (Move.BEGIN, Move.SPACE):
            before = GLUE if self.awaits_glued else SPACE
            return f"{quoted(text)} begins a word with a space, but {before} is before it"
        if move == Move.CONTINUE:
            return f"{quoted(text)} begins no word, and there is none to go on with"
        return f"the arc {quoted(text)} finds fewer than two words"

    def _refuse(self, number: int, problem: str) -> None:
        if not self._repair:
            raise Broken(f"token {number}: {problem}")
        self._found.n_repairs += 1

    def finish(self, vocabulary: Vocabulary | None) -> BuiltSentence:
        """The sentence when all tokens are there. Raises Broken."""
        self._settle()
        state = self._opened_to(self._state.n_tokens + 1, Move.FINISH)
        n_loose = max(state.n_words - 1, 0)
        if n_loose and not self._repair:
            raise Broken(f"{state.n_words} words are left without a head, only one is the root")
        self._found.n_repairs += n_loose
        while pair := state.arc(Move.RIGHT):
            self._attach(*pair, UNKNOWN_LABEL)
            state = state.after(Move.RIGHT)
        if vocabulary is None:
            self._found.forms = ["".join(words) for words in self._pieces]
        else:
            self._found.forms = [self._form(vocabulary.join(pieces)) for pieces in self._pieces]
        return self._found

    def _form(self, form: str) -> str:
        """A word of pieces: those of single bytes can spell what no word may hold."""
        if form.strip(" ") and not any(bad in form for bad in _BAD):
            return form
        if not self._repair:
            raise Broken(f"pieces spell {quoted(form)}, which is no word of CoNLL-U")
        self._found.n_repairs += 1
        for bad in _BAD:
            form = form.replace(bad, " ")
        return form.strip(" ") or "_"
