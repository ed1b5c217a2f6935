"""Tokens in order with heads, and the text and CoNLL-U rows that they become."""

from __future__ import annotations

from dataclasses import dataclass

from synmt_cli.synth.words import MadeWord

ENDS = frozenset((",", ".", "?"))


class MadeToken:
    """A word in its place. head: None at the root.

    tight: no space follows. fused: the word that stands for this token and the next in the text
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
    """A sentence of one language: its line of text and its tokens in order."""

    text: str
    tokens: list[MadeToken]

    def rows(self) -> str:
        """The CoNLL-U rows, each with its LF."""
        rows = []
        covered = 0  # tokens up to here are spaced by the row of their fused word
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
