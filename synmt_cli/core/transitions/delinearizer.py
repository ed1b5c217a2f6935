"""Turns transitions back into words, trees and text: the inverse of linearizer.py.

A broken sequence can be repaired to the nearest tree: no piece is touched, and as few arcs as
possible are left out or put in. An arc that finds fewer than two words is left out, and all words
that remain in the end need one more arc, except one. As with unmatched brackets, the number
of these repairs is the same whatever else is done. Arcs are put in at the end, as RIGHT-ARC:dep: a
word without a head depends on the one before it that has none either.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from synmt_cli.core.text.vocabulary import SPACE, Vocabulary
from synmt_cli.core.transitions.grammar import move_of_piece
from synmt_cli.core.trees.arc_standard import Configuration, Move, StackWord
from synmt_cli.core.trees.heads import ROOT
from synmt_cli.core.trees.relations import ROOT_LABEL, UNSPECIFIED
from synmt_cli.errors import quoted
from synmt_cli.formats.transitions import GLUE, LEFT, Arc, arc, is_symbol, unescape

_BAD = ("\t", "\n", "\0")  # cannot be in a form or label of CoNLL-U


class Broken(Exception):
    """A sequence does not make a tree; the message says why. Its tokens are numbered from 1."""


def begins_like_pieces(tokens: Sequence[str]) -> bool:
    """Whether the first token that is not a symbol begins with ▁, as in every line of pieces.

    A word may begin with it, too, so that this is a reason for a hint and not for an error.

    >>> begins_like_pieces(["▁dog", "s"]), begins_like_pieces(["dog", "▁s"])
    (True, False)
    """
    return next((one for one in tokens if not is_symbol(one)), "").startswith(SPACE)


@dataclass(slots=True)
class Delinearized:
    """A sentence with its tree. glued: whether each word stands right after the one before.

    heads: 0-based, -1 is the root. n_repairs: tokens that were left out, put in, or read as
    something else.
    """

    forms: list[str] = field(default_factory=list)
    glued: list[bool] = field(default_factory=list)
    heads: list[int] = field(default_factory=list)
    deprels: list[str] = field(default_factory=list)
    n_repairs: int = 0

    @property
    def text(self) -> str:
        """The line: a single space between words, but none before a glued word."""
        words = zip(self.forms, self.glued, strict=True)
        return "".join(form if glued else f" {form}" for form, glued in words)[1:]


@dataclass(frozen=True, slots=True)
class Delinearizer:
    """Makes sentences of tokens.

    vocabulary: of the pieces; None if tokens are words. of_pieces: tokens are pieces, but their
    vocabulary is not known; a word is then written as its pieces, with their marks.
    """

    vocabulary: Vocabulary | None = None
    repair: bool = False
    of_pieces: bool = False

    def sentence(self, tokens: Sequence[str], escaped: bool = True) -> Delinearized:
        """The sentence of a sequence, without words if there are no tokens. Raises Broken.

        escaped: whether pieces are escaped, as in lines of text; words always are. With
        `repair`, Broken is raised only for a token that nothing can be made of.
        """
        of_pieces = self.of_pieces or self.vocabulary is not None
        escaped = escaped or not of_pieces
        builder = _Builder(self.repair)
        for number, token in enumerate(tokens, 1):
            try:
                half = arc(token, self.repair)
                text = unescape(token) if escaped and half is None else token
            except ValueError as problem:
                raise Broken(f"token {number}: {problem}") from None
            if half is not None:
                _check(number, half.label or "label")
                builder.add_arc(number, half)
            elif token == GLUE:
                builder.add(number, Move.GLUE, "")
            else:
                is_repaired = self.repair and of_pieces  # by _form, with its word
                _check(number, text, is_repaired)
                begins = Move.CONTINUE if builder.awaits_glued else Move.BEGIN
                move = move_of_piece(text) if of_pieces else begins
                builder.add(number, move, text)
        return builder.finish(len(tokens), self.vocabulary)


def _check(number: int, text: str, is_repaired: bool = False) -> None:
    if not text:
        raise Broken(f"token {number} is empty")
    if not is_repaired and any(bad in text for bad in _BAD):
        raise Broken(f"token {number}: {quoted(text)} has a TAB, LF or NUL")


class _Builder:
    """Builds a sentence move by move. The number of a token is for messages."""

    def __init__(self, repair: bool) -> None:
        self._repair = repair
        self._configuration = Configuration()
        self._direction: tuple[int, Move] | None = None  # of an arc whose label is still to come
        self._words: dict[int, int] = {}  # by the position of their first move
        self._pieces: list[list[str]] = []  # of each word
        self._sentence = Delinearized()

    @property
    def awaits_glued(self) -> bool:
        """Whether the next word is glued."""
        return self._configuration.last == Move.GLUE

    def add_arc(self, number: int, half: Arc) -> None:
        """Takes an arc, or one half of it."""
        if half.direction is not None:
            self._settle()
            move = Move.LEFT if half.direction == LEFT else Move.RIGHT
            if half.label is None:
                self._configuration = self._open_to(number, move)
                self._direction = number, move
            else:
                self.add(number, move, half.label)
        elif self._direction is None:
            self._refuse(number, f"the label {quoted(half.label or '')} has no direction before it")
        elif half.label is None:
            self._settle()
        else:
            _, move = self._direction
            self._direction = None
            self.add(number, move, half.label)

    def _settle(self) -> None:
        """If a direction is still without its label, gives it the label UNSPECIFIED."""
        if self._direction is not None:
            number, move = self._direction
            self._direction = None
            self._refuse(number, "a direction without a label after it")
            self.add(number, move, UNSPECIFIED)

    def add(self, number: int, move: Move, text: str) -> None:
        """Takes a word, a piece, a GLUE, or an arc with its label."""
        self._settle()
        before = self._open_to(number, move)
        if not before.allows(move):
            self._refuse(number, self._problem(move, text))
        if pair := before.arc(move):
            self._attach(*pair, text)
        self._configuration = before.after_any(move)
        word = self._configuration.top
        if word is None or move not in (Move.BEGIN, Move.CONTINUE):
            return
        if word.begin not in self._words:
            self._words[word.begin] = len(self._pieces)
            self._pieces.append([])
            self._sentence.glued.append(before.last == Move.GLUE)
            self._sentence.heads.append(ROOT)
            self._sentence.deprels.append(ROOT_LABEL)
        self._pieces[self._words[word.begin]].append(text)

    def _open_to(self, number: int, move: Move) -> Configuration:
        """The configuration without a word that was opened before this token and did not come."""
        configuration = self._configuration.open_to(move)
        if configuration is not self._configuration:
            what = f"{GLUE} glues nothing" if self.awaits_glued else f"{SPACE} begins no word"
            self._refuse(number - 1, what)
        return configuration

    def _attach(self, head: StackWord, dependent: StackWord, label: str) -> None:
        word = self._words[dependent.begin]
        self._sentence.heads[word] = self._words[head.begin]
        self._sentence.deprels[word] = label

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
        self._sentence.n_repairs += 1

    def finish(self, n_tokens: int, vocabulary: Vocabulary | None) -> Delinearized:
        """The sentence after the last of n_tokens. Raises Broken."""
        self._settle()
        configuration = self._open_to(n_tokens + 1, Move.FINISH)
        n_headless = max(configuration.n_words - 1, 0)  # besides the root
        if n_headless and not self._repair:
            raise Broken(f"{n_headless + 1} words are left without a head, only one is the root")
        self._sentence.n_repairs += n_headless
        while pair := configuration.arc(Move.RIGHT):
            self._attach(*pair, UNSPECIFIED)
            configuration = configuration.after(Move.RIGHT)
        if vocabulary is None:
            self._sentence.forms = ["".join(texts) for texts in self._pieces]
        else:
            self._sentence.forms = [self._form(vocabulary.join(pieces)) for pieces in self._pieces]
        return self._sentence

    def _form(self, form: str) -> str:
        """A word made of pieces: pieces of single bytes can spell what no word may hold."""
        if form.strip(" ") and not any(bad in form for bad in _BAD):
            return form
        if not self._repair:
            raise Broken(f"pieces spell {quoted(form)}, which is not a word of CoNLL-U")
        self._sentence.n_repairs += 1
        for bad in _BAD:
            form = form.replace(bad, " ")
        return form.strip(" ") or "_"
