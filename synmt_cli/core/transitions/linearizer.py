"""Trees of CoNLL-U as transitions over words or subword pieces (Choshen and Abend 2021).

One tree makes one sequence (trees/arc_standard.py). A line without a tree, with a tree that is
not projective, or with several sentences has no sequence, and its status is not `ok`.

A token is a word, written as its form, or a piece of one. Each word is split by itself, whatever
its neighbours are, so that no piece belongs to two words. Either way a form comes back character
by character, unless the vocabulary normalizes text.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import accumulate, pairwise
from typing import Literal, NamedTuple

from synmt_cli.core.segments.alignment import record_of
from synmt_cli.core.segments.comments import status_of_line
from synmt_cli.core.text.vocabulary import SPACE, Vocabulary
from synmt_cli.core.trees.arc_standard import Move, oracle
from synmt_cli.core.trees.heads import contracted
from synmt_cli.core.trees.projective import projective
from synmt_cli.errors import DataError, quoted
from synmt_cli.formats.conllu import FORM, Sentence
from synmt_cli.formats.record import FAILED, OK
from synmt_cli.formats.transitions import GLUE, LEFT, RIGHT, arc_tokens, escape, is_symbol

LONGEST_LIFTED = 1_000  # words of a tree to make projective, which takes more than linear time
N_CACHED = 2**16  # words whose pieces are remembered
NOT_PROJECTIVE = "the tree is not projective"
OnNonprojective = Literal["drop", "keep", "error"]
Multiword = Literal["words", "token"]


class Linearized(NamedTuple):
    """The transitions of one line, or why it has none: its status is then not `ok`.

    n_lifted: how many words got another head to make the tree projective.
    """

    tokens: list[str]
    status: str = "ok"
    reason: str | None = None
    n_lifted: int = 0


class _Words(NamedTuple):
    forms: list[str]
    heads: list[int]  # 0-based
    deprels: list[str]


class _NoSequence(Exception):
    """A line has no transitions; the message says why."""


@dataclass
class Linearizer:
    """Makes transitions of trees.

    vocabulary: of the pieces; None if tokens are words. on_nonprojective: whether such a tree has
    no transitions, has those of the tree made projective, or is an error. split: whether direction
    and label are two tokens. glue: whether to mark words that have no space before them. multiword:
    whether a multiword token is its words, or one word that depends as the highest of them does.
    """

    vocabulary: Vocabulary | None = None
    on_nonprojective: OnNonprojective = "drop"
    split: bool = False
    glue: bool = False
    multiword: Multiword = "words"

    def __post_init__(self) -> None:
        self._word_tokens = lru_cache(N_CACHED)(self._tokens_of_word)
        self._arc_tokens = lru_cache(N_CACHED)(partial(arc_tokens, split=self.split))

    def linearize(self, sentences: Sequence[Sentence]) -> Linearized:
        """The transitions of one line.

        Raises DataError for a tree that is not projective if `on_nonprojective` is `error`.
        """
        status, reason = status_of_line(sentences)
        if status != OK:
            return Linearized([], status, reason)
        try:
            return self._of_line(sentences)
        except _NoSequence as problem:
            return Linearized([], FAILED, str(problem))

    def _of_line(self, sentences: Sequence[Sentence]) -> Linearized:
        if len(sentences) > 1:
            raise _NoSequence(f"{len(sentences)} sentences, but transitions make one tree")
        (sentence,) = sentences
        words = _words(sentence, self.multiword == "token" and bool(sentence.ranges))
        n_lifted = 0
        moves = oracle(words.heads)
        if moves is None:
            heads, n_lifted = self._lifted(words.heads, sentence)
            moves = oracle(heads)
            assert moves is not None
        glued = _glued(sentence, len(words.forms)) if self.glue else None
        return Linearized(self._tokens(words, moves, glued), n_lifted=n_lifted)

    def _lifted(self, heads: list[int], sentence: Sentence) -> tuple[list[int], int]:
        """`projective` applied to a tree that is not projective. Raises _NoSequence, DataError."""
        if self.on_nonprojective == "error":
            raise DataError(sentence.source, sentence.line, NOT_PROJECTIVE)
        if self.on_nonprojective == "drop":
            raise _NoSequence(NOT_PROJECTIVE)
        if len(heads) > LONGEST_LIFTED:
            raise _NoSequence(f"{NOT_PROJECTIVE}, and longer than {LONGEST_LIFTED:,} words")
        return projective(heads)

    def _tokens(
        self, words: _Words, moves: list[tuple[Move, int]], glued: list[bool] | None
    ) -> list[str]:
        forms, deprels = words.forms, words.deprels
        tokens: list[str] = []
        begin, left = Move.BEGIN, Move.LEFT
        for move, word in moves:
            if move is not begin:
                tokens += self._arc_tokens(LEFT if move is left else RIGHT, deprels[word])
            else:
                tokens += self._word_tokens(forms[word], glued is not None and glued[word])
        return tokens

    def _tokens_of_word(self, form: str, glued: bool) -> tuple[str, ...]:
        """The tokens of a word. Raises _NoSequence for one that pieces cannot spell."""
        tokens = [GLUE] if glued else []
        if self.vocabulary is None:
            return (*tokens, escape(form))
        if " " in form or SPACE in form:  # sentencepiece writes both alike, or drops them
            raise _NoSequence(f"word {quoted(form)} has a space or ▁, which in pieces begin words")
        if not (glued or self.vocabulary.making.dummy_prefix):
            problem = "the vocabulary was trained with --add_dummy_prefix=false"
            raise _NoSequence(f"{problem}: it puts no ▁ before a word")
        pieces = self.vocabulary.inner_pieces(form) if glued else self.vocabulary.pieces(form)
        # A single mark, at the beginning of the word; none if the word is glued.
        before, mark, rest = "".join(pieces).rpartition(SPACE)
        if before or bool(mark) == glued or not rest:
            raise _NoSequence(f"the vocabulary makes no pieces of the word {quoted(form)}")
        for piece in pieces:
            # A piece may look like a symbol that the vocabulary does not have: then its
            # characters are the tokens.
            tokens += piece if is_symbol(piece) else [piece]
        return tuple(tokens)


def _words(sentence: Sentence, contract: bool) -> _Words:
    """The words of a sentence; with `contract` each multiword token is one word."""
    forms, deprels = sentence.forms, sentence.deprels
    heads = [head - 1 for head in sentence.heads]
    if not contract:
        return _Words(forms, heads, deprels)
    begins_token = [True] * len(forms)
    for first, last, row in sentence.ranges:
        forms[first - 1 : last] = [row[FORM]] * (last - first + 1)
        begins_token[first:last] = [False] * (last - first)
    tokens = [n - 1 for n in accumulate(begins_token)]
    words, heads = contracted(heads, tokens)
    return _Words([forms[word] for word in words], heads, [deprels[word] for word in words])


def _glued(sentence: Sentence, n_words: int) -> list[bool]:
    """Whether each word stands right after the one before, without a space. Raises _NoSequence.

    The words of a multiword token are glued if together they are as it is written (`do n't`),
    else there is a space between them (`zu dem` for `zum`). n_words: fewer than the sentence's
    if multiword tokens are words.
    """
    record, tokens = record_of([sentence], "")
    if record.spans is None:
        raise _NoSequence(record.reason or "no text")
    is_contracted = n_words < len(record.spans)
    spans = tokens.spans if is_contracted else record.spans
    glued = [False, *(before[1] == span[0] for before, span in pairwise(spans))]
    if not is_contracted:
        forms = sentence.forms
        for first, last, row in sentence.ranges:
            is_spelled = "".join(forms[first - 1 : last]) == row[FORM]
            glued[first:last] = [is_spelled] * (last - first)
    return glued
