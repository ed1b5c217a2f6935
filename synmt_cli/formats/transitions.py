r"""Transitions as tokens of a line: the names of arcs, and the escapes of words that look alike.

    John put LEFT-ARC:nsubj the coals LEFT-ARC:det RIGHT-ARC:obj out RIGHT-ARC:compound:prt

One tree a line, single spaces between tokens, an empty line for none. A token is one of

    LEFT-ARC:label, RIGHT-ARC:label     an arc
    LEFT-ARC, RIGHT-ARC, ARC:label      the same arc as two tokens, direction and label
    <+>                                 no space stands before the word that follows
    anything else                       a word, or with a vocabulary a piece

A word that looks like one of the others begins with a backslash: `\LEFT-ARC:det`, `\<+>`. In
words, pieces and labels `\s` is a space, `\r` a carriage return, `\b` a byte-order mark and `\\` a
backslash, so that every token comes back code point for code point.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple

LEFT, RIGHT, LABEL, GLUE = "LEFT-ARC", "RIGHT-ARC", "ARC", "<+>"
_DIRECTIONS = (LEFT, RIGHT)
_SYMBOL = re.compile(r"(?:LEFT-ARC|RIGHT-ARC)(?::.*)?|ARC:.*|<\+>", re.DOTALL)
_LETTERS = {"\\": "\\", " ": "s", "\r": "r", "\ufeff": "b"}
_CHARACTERS = {letter: character for character, letter in _LETTERS.items()}
_SPECIAL = re.compile("[\\\\ \r\ufeff]")
_ESCAPE = re.compile(r"\\(.?)", re.DOTALL)
_BEGINNINGS = {LEFT[0], RIGHT[0], LABEL[0], GLUE[0]}  # how tokens begin that may be symbols


class Arc(NamedTuple):
    """A token that is an arc or one half of it; the half that is missing is None."""

    direction: str | None
    label: str | None


def arc_tokens(direction: str, label: str, split: bool = False) -> tuple[str, ...]:
    r"""The tokens of an arc.

    >>> arc_tokens(LEFT, "det"), arc_tokens(RIGHT, "obj", split=True)
    (('LEFT-ARC:det',), ('RIGHT-ARC', 'ARC:obj'))
    """
    label = _escaped(label)
    return (direction, f"{LABEL}:{label}") if split else (f"{direction}:{label}",)


def is_symbol(token: str) -> bool:
    """Whether a token is neither a word nor a piece: an arc, half of one, or GLUE.

    >>> is_symbol("LEFT-ARC:det"), is_symbol("LEFT-ARC"), is_symbol("LEFT")
    (True, True, False)
    """
    return token[:1] in _BEGINNINGS and _SYMBOL.fullmatch(token) is not None


def length_in_pieces(tokens: Iterable[str]) -> int:
    """How many tokens are words or pieces.

    >>> length_in_pieces(["▁A", "▁dog", "LEFT-ARC:det"])
    2
    """
    return sum(not is_symbol(token) for token in tokens)


def arc(token: str, repair: bool = False) -> Arc | None:
    """The arc of a token, None for any other token. Raises ValueError for a bad label.

    repair: whether a label may be missing after the colon; it is then None.
    """
    name, colon, label = token.partition(":")
    if name not in _DIRECTIONS and not (name == LABEL and colon):
        return None
    is_half = not colon or (repair and not label)
    return Arc(None if name == LABEL else name, None if is_half else _label(label))


def escape(text: str) -> str:
    r"""The token of a word or piece.

    >>> print(escape("ARC:det"), escape("a b"), escape("SHIFT"))
    \ARC:det a\sb SHIFT
    """
    escaped = _escaped(text)
    return "\\" + escaped if is_symbol(text) else escaped


def unescape(token: str) -> str:
    r"""The word or piece of a token: what `escape` was given. Raises ValueError.

    >>> unescape(r"\LEFT-ARC:det")
    'LEFT-ARC:det'
    """
    if "\\" not in token:
        return token
    if token[0] == "\\" and token[1:2] in _BEGINNINGS and is_symbol(_unescaped(token[1:])):
        token = token[1:]
    return _unescaped(token)


def _escaped(text: str) -> str:
    return _SPECIAL.sub(lambda match: "\\" + _LETTERS[match[0]], text)


def _unescaped(token: str) -> str:
    try:
        return _ESCAPE.sub(lambda match: _CHARACTERS[match[1]], token)
    except KeyError as error:
        raise ValueError(f"\\{error.args[0]} is none of \\\\, \\s, \\r, \\b") from None


def _label(text: str) -> str:
    if not text:
        raise ValueError("a label is missing after the colon")
    return _unescaped(text)


def to_line(tokens: list[str], of_pieces: bool) -> str:
    """The line of a sequence. of_pieces: tokens are pieces, not yet escaped, rather than words."""
    line = " ".join(tokens)
    if of_pieces and _SPECIAL.search("".join(tokens)):
        return " ".join(one if is_symbol(one) else _escaped(one) for one in tokens)
    return line
