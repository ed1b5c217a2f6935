"""The words of a Penn tree in the text: which one each subword piece belongs to.

Treebank tools write some tokens in another way than the text has them; SPELLINGS are those
that are one to one. White space may stand between tokens.
"""

from __future__ import annotations

from collections.abc import Sequence

from synmt_cli.core.segments.alignment import Mismatch, piece_words
from synmt_cli.core.text.vocabulary import Vocabulary
from synmt_cli.errors import quoted

SPELLINGS = {
    "``": ('"', "“", "„", "«"),
    "''": ('"', "”", "“", "»"),
    "`": ("'", "‘", "‚"),
    "'": ("’", "‘"),
    "--": ("–", "—"),
    "...": ("…",),
}


def leaves_of_pieces(
    text: str, leaves: Sequence[str], pieces: Sequence[str], vocabulary: Vocabulary
) -> list[int]:
    """The leaf that each piece of a text overlaps most, -1 for none. Raises Mismatch."""
    own, offsets = vocabulary.encode(text)
    if own != pieces:
        raise Mismatch("pieces are not those that the vocabulary gives src")
    return piece_words(offsets, spans(text, leaves), range(len(leaves)))


def spans(text: str, leaves: Sequence[str]) -> list[tuple[int, int]]:
    """[begin, end) of each leaf in the characters of the text. Raises Mismatch.

    >>> spans('He said "no".', ["He", "said", "``", "no", "''", "."])
    [(0, 2), (3, 7), (8, 9), (9, 11), (11, 12), (12, 13)]
    """
    found = []
    at = 0
    for leaf in leaves:
        at = _behind_spaces(text, at)
        forms = (leaf, *SPELLINGS.get(leaf, ()))
        form = next((form for form in forms if text.startswith(form, at)), None)
        if form is None:
            raise Mismatch(f"the tree's word {quoted(leaf)} is not at character {at + 1} of src")
        found.append((at, at + len(form)))
        at += len(form)
    if (at := _behind_spaces(text, at)) < len(text):
        raise Mismatch(f"the tree has no word for {quoted(text[at:])} at character {at + 1} of src")
    return found


def _behind_spaces(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at
