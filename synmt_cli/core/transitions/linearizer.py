"""Trees of CoNLL-U as transitions over words or subword pieces (Choshen and Abend 2021).

One tree makes one sequence (trees/arc_standard.py), so a line without a tree, with a tree that
is not projective, or with several sentences has none: its status is not `ok`.

As words the tokens are forms; as pieces each word is split by itself, whatever stands beside
it, so that no piece belongs to two words. Either way a form comes back character by character.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import Literal, NamedTuple

from synmt_cli.core.segments.alignment import record_of
from synmt_cli.core.segments.comments import recorded_status
from synmt_cli.core.text.vocabulary import SPACE, Vocabulary
from synmt_cli.core.trees.arc_standard import Move, oracle
from synmt_cli.core.trees.heads import contracted
from synmt_cli.core.trees.projective import projective
from synmt_cli.errors import DataError, quoted
from synmt_cli.formats.conllu import FORM, Sentence
from synmt_cli.formats.record import FAILED, OK
from synmt_cli.formats.transitions import GLUE, LEFT, RIGHT, arc_tokens, escape, is_symbol

LONGEST_LIFTED = 1_000  # words of a tree that is made projective: that takes longer than linear
N_CACHED = 2**16  # words whose pieces are remembered
NOT_PROJECTIVE = "the tree is not projective"
OnNonprojective = Literal["drop", "keep", "error"]
Multiword = Literal["words", "token"]


class Linear(NamedTuple):
    """The transitions of one line, and why there are none unless its status is ok.

    n_lifted: words that got another head to make the tree projective.
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
    """Why a line has no transitions."""


class Linearizer:
    """What to make of each tree.

    vocabulary: of the pieces; None: words. on_nonprojective: no transitions, those of the tree
    made projective, or an error. split: direction and label as two tokens. glue: say which
    words stand without a space behind the one before. multiword: a multiword token as its
    words, or as one word that depends as the highest of them does.
    """

    def __init__(
        self,
        vocabulary: Vocabulary | None = None,
        on_nonprojective: OnNonprojective = "drop",
        split: bool = False,
        glue: bool = False,
        multiword: Multiword = "words",
    ) -> None:
        self.vocabulary, self.on_nonprojective = vocabulary, on_nonprojective
        self.split, self.glue, self.multiword = split, glue, multiword
        self._pieces = lru_cache(N_CACHED)(self._pieces_of)
        self._arc = lru_cache(N_CACHED)(self._arc_of)

    def linear(self, sentences: Sequence[Sentence]) -> Linear:
        """The transitions of one line.

        Raises DataError for a tree that is not projective, if that is to be an error.
        """
        status, reason = recorded_status(sentences[0])
        if status != OK:
            return Linear([], status, reason)
        try:
            return self._of_line(sentences)
        except _NoSequence as problem:
            return Linear([], FAILED, str(problem))

    def _of_line(self, sentences: Sequence[Sentence]) -> Linear:
        if len(sentences) > 1:
            raise _NoSequence(f"{len(sentences)} sentences, but transitions make one tree")
        (sentence,) = sentences
        words = _words(sentence, self.multiword == "token" and bool(sentence.ranges))
        heads, n_lifted = words.heads, 0
        if (moves := oracle(heads)) is None:
            heads, n_lifted = self._lifted(heads, sentence)
            moves = oracle(heads)
            assert moves is not None
        glued = _glued(sentence, len(words.forms)) if self.glue else None
        return Linear(self._tokens(words, moves, glued), n_lifted=n_lifted)

    def _lifted(self, heads: list[int], sentence: Sentence) -> tuple[list[int], int]:
        """What takes the place of a tree that is not projective. Raises _NoSequence, DataError."""
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
                tokens += self._arc(LEFT if move is left else RIGHT, deprels[word])
            else:
                tokens += self._pieces(forms[word], glued is not None and glued[word])
        return tokens

    def _arc_of(self, direction: str, label: str) -> tuple[str, ...]:
        return arc_tokens(direction, label, self.split)

    def _pieces_of(self, form: str, glued: bool) -> tuple[str, ...]:
        """The tokens of a word. Raises _NoSequence for one that pieces cannot tell."""
        before = (GLUE,) if glued else ()
        if self.vocabulary is None:
            return (*before, escape(form))
        if " " in form or SPACE in form:  # sentencepiece writes both alike, or drops them
            raise _NoSequence(f"word {quoted(form)} has a space or ▁, which in pieces begin words")
        found = self.vocabulary.pieces(form) if not glued else self.vocabulary.inner_pieces(form)
        inside = found if glued else [found[0].removeprefix(SPACE), *found[1:]] if found else []
        begins = bool(found) and (glued or found[0].startswith(SPACE))
        if not begins or any(SPACE in piece for piece in inside) or not any(inside):
            raise _NoSequence(f"the vocabulary makes no pieces of the word {quoted(form)}")
        # Where the vocabulary has no such symbol, a piece may have the name of one.
        return (*before, *(c for one in found for c in (one if is_symbol(one) else [one])))


def _words(sentence: Sentence, contract: bool) -> _Words:
    """The words of a sentence; with `contract` each multiword token is one."""
    forms, deprels = sentence.forms, sentence.deprels
    heads = [head - 1 for head in sentence.heads]
    if not contract:
        return _Words(forms, heads, deprels)
    is_first = [True] * len(forms)
    for first, last, row in sentence.ranges:
        forms[first - 1 : last] = [row[FORM]] * (last - first + 1)
        is_first[first:last] = [False] * (last - first)
    nodes = [n - 1 for n in accumulate(is_first)]
    words, heads = contracted(heads, nodes)
    return _Words([forms[word] for word in words], heads, [deprels[word] for word in words])


def _glued(sentence: Sentence, n_words: int) -> list[bool]:
    """Whether each word stands without a space behind the one before. Raises _NoSequence.

    The words of a multiword token are glued if together they are as it is written (`do n't`),
    else there is a space between them (`zu dem` for `zum`). n_words: fewer than the sentence's
    if multiword tokens are words.
    """
    found, tokens = record_of([sentence], "")
    if found.spans is None:
        raise _NoSequence(found.reason or "no text")
    is_contracted = n_words < len(found.spans)
    spans = tokens.spans if is_contracted else found.spans
    glued = [False, *(before[1] == span[0] for before, span in pairwise(spans))]
    forms = sentence.forms
    for first, last, row in () if is_contracted else sentence.ranges:
        inside = "".join(forms[first - 1 : last]) == row[FORM]
        glued[first:last] = [inside] * (last - first)
    return glued
