"""Heat maps of the file that `synmt analyze attention` writes, with a tree's edges outlined."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from synmt_cli.core.pictures.charts import MOST_MAPS, HeatMap
from synmt_cli.core.pictures.sentences import Picture
from synmt_cli.errors import DataError, UsageError, quoted
from synmt_cli.formats.attention import Attention

_BYTE = re.compile("<0x([0-9A-F]{2})>")  # a piece of --byte-fallback


def chosen(segments: Iterable[Attention], source: str, id: str = "") -> Attention:
    """The segment of this id, or the first with weights.

    Raises UsageError if no segment has the id, or the one that has it has no weights; DataError if
    no segment of the source has weights.
    """
    for one in segments:
        if one.id == id or (not id and one.weights):
            if not one.weights:
                raise UsageError(f"--id {quoted(id)}: the segment has no weights ({one.status})")
            return one
    if id:
        raise UsageError(f"--id {quoted(id)}: no segment has this id")
    raise DataError(source, None, "no segment has weights")


def maps(
    one: Attention,
    layers: Sequence[int] = (),
    heads: Sequence[int] = (),
    tree: Picture | None = None,
) -> list[HeatMap]:
    """A map of each layer and head that is asked for, of all by default. Raises UsageError.

    tree: the source's, for encoder attention; outlines each cell whose token is a piece of a word
    and whose key is a piece of the word's head.
    """
    for name, wanted, known in (
        ("--layers", layers, {layer for layer, _ in one.weights}),
        ("--heads", heads, {head for _, head in one.weights}),
    ):
        if missing := sorted(set(wanted) - known):
            there = ", ".join(map(str, sorted(known)))
            raise UsageError(f"{name} {missing[0]}: the file has {there}")
    outlined = edges(one, tree) if tree else frozenset()
    found = [
        HeatMap(f"layer {layer}, head {head}", one.tokens, one.keys, rows.tolist(), outlined)
        for (layer, head), rows in one.weights.items()
        if (not layers or layer in layers) and (not heads or head in heads)
    ]
    if len(found) > MOST_MAPS:
        raise UsageError(
            f"{len(found)} maps, and {MOST_MAPS} are the most: choose by --layers and --heads"
        )
    return found


def edges(one: Attention, tree: Picture) -> frozenset[tuple[int, int]]:
    """The cells (token, key) of a piece of a word and a piece of its head. Raises UsageError.

    A piece belongs to the token that has most of its letters, the first one in a tie, as in
    records; and to each word of a multiword token, such as the French "du".
    """
    if one.stack != "encoder":
        raise UsageError(f"--trees outlines edges in encoder attention; this is {one.stack}'s")
    words = _words_of_pieces(one.tokens, tree)
    if words is None:
        raise UsageError(
            f"--trees: the words of the tree are not those of segment {quoted(one.id)}"
        )
    heads = {dependent: arc.head for dependent, arc in tree.tree().items()}
    return frozenset(
        (i, j)
        for i, own in enumerate(words)
        for j, others in enumerate(words)
        if any(heads.get(word) in others for word in own)
    )


def _words_of_pieces(pieces: Sequence[str], tree: Picture) -> list[range] | None:
    """The words of each piece, as columns; no word without letters. None if the texts differ."""
    letters = [(char, words) for form, words in _tokens(tree) for char in _letters(form)]
    at = 0
    found: list[range] = []
    while len(found) < len(pieces):
        text, n = _spelled(pieces, len(found))
        own = _letters(text)
        here = letters[at : at + len(own)]
        if own != "".join(char for char, _ in here):
            return None
        of_tokens = Counter(words for _, words in here).most_common(1)
        found += n * [of_tokens[0][0] if of_tokens else range(0)]
        at += len(own)
    return found if at == len(letters) else None


def _spelled(pieces: Sequence[str], at: int) -> tuple[str, int]:
    """The text of the piece at this place, and 1.

    If the piece is the first byte of a character: the character, and how many pieces spell it.
    """
    piece = pieces[at]
    if piece in ("</s>", "<s>", "<pad>"):
        return "", 1
    if not (first := _BYTE.fullmatch(piece)):
        return piece, 1
    lead = int(first[1], 16)
    n = 1 + (lead >= 0xC0) + (lead >= 0xE0) + (lead >= 0xF0)
    parts = [*map(_BYTE.fullmatch, pieces[at : at + n])]
    data = bytes(int(part[1], 16) for part in parts if part)
    return data.decode(errors="replace"), len(parts)


def _tokens(tree: Picture) -> Iterator[tuple[str, range]]:
    """The tokens of the text, each with its columns."""
    multiword = {token.first: token for token in tree.tokens}
    end = 0
    for i, column in enumerate(tree.columns):
        if token := multiword.get(i):
            end = token.last + 1
            yield token.form, range(i, end)
        elif i >= end and not column.empty:
            yield column.form, range(i, i + 1)


def _letters(text: str) -> str:
    """The text without spaces, case and differences that vocabularies normalise."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return "".join(folded.replace("▁", "").split())
