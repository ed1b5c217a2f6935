"""Words in order, with heads: what a realisation builds, and the text and rows it becomes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

ENDS = frozenset((",", ".", "?"))


class MadeWord(NamedTuple):
    """A form and the middle of its CoNLL-U row: lemma, UPOS, XPOS and features."""

    form: str
    analysis: str


@cache
def word(form: str, lemma: str, upos: str, **features: str | int | None) -> MadeWord:
    """A word; features without a value are left out, the rest sorted as UD does.

    >>> word("dogs", "dog", "NOUN", Number="Plur")
    Word(form='dogs', analysis='dog\\tNOUN\\t_\\tNumber=Plur')
    """
    kept = sorted((name.lower(), f"{name}={value}") for name, value in features.items() if value)
    return MadeWord(form, f"{lemma}\t{upos}\t_\t{'|'.join(text for _, text in kept) or '_'}")


COMMA, PERIOD, QUESTION_MARK = (word(mark, mark, "PUNCT") for mark in ",.?")


class MadeToken:
    """A word in its place. head: None is the root.

    tight: no space follows. fused: the one word in the text that this and the next token are
    (im = in dem).
    """

    __slots__ = ("analysis", "deprel", "form", "fused", "head", "index", "tight")

    def __init__(self, word: MadeWord, deprel: str, head: MadeToken | None) -> None:
        self.form, self.analysis = word
        self.deprel, self.head = deprel, head
        self.tight = False
        self.fused = ""
        self.index = 0


@dataclass(frozen=True, slots=True)
class MadeSentence:
    """A sentence on one side: its line of text and its tokens in order."""

    text: str
    tokens: list[MadeToken]

    def rows(self) -> str:
        """The CoNLL-U rows, each with its LF."""
        rows = []
        covered = 0  # tokens whose spacing the row of their fused word shows
        for token in self.tokens:
            i = token.index
            head = token.head.index if token.head is not None else 0
            if token.fused:
                rows.append(f"{i}-{i + 1}\t{token.fused}\t_\t_\t_\t_\t_\t_\t_\t_\n")
                covered = i + 1
            space = "SpaceAfter=No" if token.tight and i > covered else "_"
            rows.append(
                f"{i}\t{token.form}\t{token.analysis}\t{head}\t{token.deprel}\t_\t{space}\n"
            )
        return "".join(rows)


def put(out: list[MadeToken], word: MadeWord, deprel: str, head: MadeToken | None) -> MadeToken:
    """Adds a token at the end of `out` and returns it."""
    token = MadeToken(word, deprel, head)
    out.append(token)
    return token


def sentence(tokens: list[MadeToken]) -> MadeSentence:
    """Numbers the tokens, sets spaces and the first capital.

    A comma is left out before another mark: the outer clause's comma closes both.
    """
    kept = [
        token
        for token, after in zip(tokens, [*tokens[1:], None], strict=True)
        if not (token.form == "," and after is not None and after.form in ENDS)
    ]
    first = kept[0]
    first.form = first.form[0].upper() + first.form[1:]
    if first.fused:
        first.fused = first.fused[0].upper() + first.fused[1:]
    parts: list[str] = []
    within = False  # this token is the second half of a fused word
    for i, token in enumerate(kept, 1):
        token.index = i
        if token.form in ENDS and parts:
            kept[i - 2].tight = True
            parts.pop()
        if not within:
            parts.append(token.fused or token.form)
            parts.append(" ")
        if token.tight:
            parts.pop()
        within = bool(token.fused)
    return MadeSentence("".join(parts).rstrip(" "), kept)
