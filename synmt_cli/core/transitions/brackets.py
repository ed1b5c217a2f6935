"""Trees as brackets, for models that read or write them as sequences.

    (root (nsubj (det ) ) (obj ) )

Every word of a dependency tree is a bracket labelled by its relation. Inside it stand, in this
order, the brackets of its dependents to the left, the word itself, and those of its dependents
to the right: so brackets and words come in the order of the sentence. Without words, as above,
the place of the head among its dependents is not shown. Where a tree is not projective the
dependents of each word are still in their order, but the words of the whole are not. Each
sentence of a line is a bracket of its own.

These are not the constituents of Currey and Heafield (2019); formats/penn.py reads those, and
they become the same kind of items.

As pieces, brackets are symbols (vocabulary.py): `<(nsubj>` and `<)>`. Their names are not
`(nsubj` and `)`, because a parenthesis alone is a character of text, and because
sentencepiece cuts the text it learns from where the name of a symbol stands, as in `(case`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from synmt_cli.core.trees.heads import ROOT, children
from synmt_cli.formats.penn import Item

CLOSING = "<)>"


def opening(label: str) -> str:
    """The symbol of the bracket that a label opens.

    >>> opening("nsubj:pass")
    '<(nsubj:pass>'
    """
    return f"<({label}>"


def shown(symbol: str) -> str:
    """How a text shows the bracket of a symbol; what is none, as it is.

    >>> shown("<(nsubj>"), shown("<)>"), shown("<TR>")
    ('(nsubj', ')', '<TR>')
    """
    return symbol[1:-1] if symbol == CLOSING or symbol.startswith("<(") else symbol


def of_dependencies(heads: Sequence[int], deprels: Sequence[str]) -> list[Item]:
    """The brackets of a dependency tree, its words in them. Linear in the tree.

    >>> of_dependencies([1, -1, 1], ["nsubj", "root", "obj"])
    ['root', 'nsubj', 0, None, 1, 'obj', 2, None, None]
    """
    return list(_dependencies(heads, deprels))


def _dependencies(heads: Sequence[int], deprels: Sequence[str]) -> Iterator[Item]:
    below = children(heads)
    # What is to come, the next one last: a word to be opened is shown as its complement.
    waiting: list[int | None] = []
    waiting += [~word for word, head in enumerate(heads) if head == ROOT][::-1]
    while waiting:
        item = waiting.pop()
        if item is None or item >= 0:
            yield item
            continue
        word = ~item
        yield deprels[word]
        left = [~other for other in below[word] if other < word]
        right = [~other for other in below[word] if other > word]
        waiting.append(None)
        waiting += reversed(right)
        waiting.append(word)
        waiting += reversed(left)


def without_words(items: Iterable[Item]) -> list[str | None]:
    """The brackets alone: labels and None."""
    return [item for item in items if not isinstance(item, int)]


def labels(items: Iterable[Item]) -> set[str]:
    """The labels of all brackets."""
    return {item for item in items if isinstance(item, str)}


def text(items: Iterable[str | None]) -> str:
    """Brackets as Currey and Heafield (2019) write them.

    >>> text(["ROOT", "NP", None, None])
    '(ROOT (NP ) )'
    """
    return " ".join(")" if item is None else f"({item}" for item in items)


def lexicalised(
    items: Iterable[Item],
    pieces: Sequence[str],
    piece_word: Sequence[int],
    spelled: Callable[[str | None], Sequence[str]],
) -> tuple[list[str], list[int]]:
    """Brackets with the pieces of each word in its place, and the index of each piece.

    pieces, piece_word: of the sentence; each piece occurs once. A piece of no word (-1) goes
    with the one behind it, at the end with the one before. spelled: the pieces of a label's
    bracket, of the closing one for None; their index is -1. Raises ValueError where no piece
    has a word.
    """
    of_word: dict[int, list[int]] = {}
    for piece, word in enumerate(_each_with_a_word(piece_word)):
        of_word.setdefault(word, []).append(piece)
    shown: list[str] = []
    indices: list[int] = []
    for item in items:
        if isinstance(item, int):
            own = of_word.get(item, ())
            shown += [pieces[piece] for piece in own]
            indices += own
        else:
            bracket = spelled(item)
            shown += bracket
            indices += [-1] * len(bracket)
    return shown, indices


def _each_with_a_word(piece_word: Sequence[int]) -> list[int]:
    words = list(piece_word)
    if max(words, default=-1) < 0:
        raise ValueError("no piece belongs to a word")
    for piece in range(len(words) - 2, -1, -1):
        if words[piece] < 0:
            words[piece] = words[piece + 1]
    for piece in range(1, len(words)):
        if words[piece] < 0:
            words[piece] = words[piece - 1]
    return words
