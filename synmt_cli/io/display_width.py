"""The width of text on a terminal, in columns, and text cut or padded to a width.

Wide and full-width East Asian characters take two columns (Unicode Annex 11), marks and
joiners none. Terminals differ on joined emoji and on ambiguous characters (here: one column).
"""

import unicodedata

ELLIPSIS = "…"
_NONE = {"Mn", "Me", "Cf"}  # categories of characters that take no column
_JAMO = range(0x1160, 0x1200)  # vowels and finals of a Hangul syllable, drawn on its initial


def width(text: str) -> int:
    """The columns that a text of printable characters takes.

    >>> width("dog"), width("犬だ"), width("e" + chr(0x301))
    (3, 4, 1)
    """
    return len(text) if text.isascii() else sum(map(_width, text))


def _width(character: str) -> int:
    if unicodedata.category(character) in _NONE or ord(character) in _JAMO:
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def padded(text: str, columns: int) -> str:
    """The text with spaces after it up to this width; a wider text unchanged."""
    return text + " " * (columns - width(text))


def cut(text: str, columns: int) -> str:
    """The text, or as much of it as fits with an ellipsis after it. Marks stay with letters.

    >>> cut("abcdef", 6), cut("abcdef", 4), cut("犬犬", 3)
    ('abcdef', 'abc…', '犬…')
    """
    if len(text) <= columns // 2 or width(text) <= columns:
        return text
    room = columns - 1
    for index, character in enumerate(text):
        room -= _width(character)
        if room < 0:
            return text[:index] + ELLIPSIS if columns > 0 else ""
    return text
