"""Trees as brackets, for models that read or write them as sequences.

    (root (nsubj (det ) ) (obj ) )

Every word of a dependency tree is a bracket labelled by its relation. A bracket holds, in this
order, the brackets of the word's left dependents, the word itself, and the brackets of its right
dependents: so brackets and words come in the order of the sentence. Without words, as above,
the place of the head among its dependents is not shown. Where a tree is not projective, the
dependents of each word keep their order, but the words of the whole do not. Each sentence of a
line is a bracket of its own.

These are not the constituents of Currey and Heafield (2019). formats/penn.py reads those into
the same kind of items, and `leaf_spans` finds their words in the text.

As pieces, brackets are symbols (vocabulary.py): `<(nsubj>` and `<)>`. Their names are not
`(nsubj` and `)`, because a parenthesis alone is a character of text, and because
sentencepiece cuts the text it learns from wherever the name of a symbol stands, as in `(case`.
"""

from collections.abc import Callable, Iterable, Sequence

from synmt_cli.core.segments.alignment import Mismatch, piece_words
from synmt_cli.core.text.vocabulary import Vocabulary
from synmt_cli.core.trees.features import filled
from synmt_cli.core.trees.heads import ROOT, children
from synmt_cli.errors import quoted
from synmt_cli.formats.penn import Item

CLOSING = "<)>"
# How a text may write the tokens that treebanks write in another way, one to one.
SPELLINGS = {
    "``": ('"', "“", "„", "«"),
    "''": ('"', "”", "“", "»"),
    "`": ("'", "‘", "‚"),
    "'": ("’", "‘"),
    "--": ("–", "—"),
    "...": ("…",),
}


def opening(label: str) -> str:
    """The symbol of the bracket that a label opens.

    >>> opening("nsubj:pass")
    '<(nsubj:pass>'
    """
    return f"<({label}>"


def shown(symbol: str) -> str:
    """The bracket of a symbol as text; any other symbol unchanged.

    >>> shown("<(nsubj>"), shown("<)>"), shown("<TR>")
    ('(nsubj', ')', '<TR>')
    """
    return symbol[1:-1] if symbol == CLOSING or symbol.startswith("<(") else symbol


def of_dependencies(heads: Sequence[int], deprels: Sequence[str]) -> list[Item]:
    """The brackets of a dependency tree, with its words. Linear in the tree.

    >>> of_dependencies([1, -1, 1], ["nsubj", "root", "obj"])
    ['root', 'nsubj', 0, None, 1, 'obj', 2, None, None]
    """
    dependents = children(heads)
    roots = [word for word, head in enumerate(heads) if head == ROOT]
    items: list[Item] = []
    # (word or None, whether the word's bracket is still to be opened), the next one last
    stack: list[tuple[int | None, bool]] = [(root, True) for root in reversed(roots)]
    while stack:
        word, is_unopened = stack.pop()
        if word is None or not is_unopened:
            items.append(word)
            continue
        items.append(deprels[word])
        left = [(other, True) for other in dependents[word] if other < word]
        right = [(other, True) for other in dependents[word] if other > word]
        stack += reversed([*left, (word, False), *right, (None, False)])
    return items


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
    with the piece after it, at the end with the one before it. spelled: the pieces of the
    bracket that a label opens, or of the closing bracket for None; their index is -1. Raises
    Mismatch if no piece has a word.
    """
    if max(piece_word, default=-1) < 0:
        raise Mismatch("no piece belongs to a word")
    of_word: dict[float, list[int]] = {}
    backwards = filled([None if word < 0 else word for word in reversed(piece_word)])
    for piece, word in enumerate(reversed(backwards)):
        of_word.setdefault(word, []).append(piece)
    tokens: list[str] = []
    indices: list[int] = []
    for item in items:
        if isinstance(item, int):
            own = of_word.get(item, ())
            tokens += [pieces[piece] for piece in own]
            indices += own
        else:
            bracket = spelled(item)
            tokens += bracket
            indices += [-1] * len(bracket)
    return tokens, indices


def piece_leaves(
    text: str, leaves: Sequence[str], pieces: Sequence[str], vocabulary: Vocabulary
) -> list[int]:
    """The leaf of a Penn tree that each piece overlaps most, -1 for none. Raises Mismatch."""
    own, offsets = vocabulary.encode(text)
    if own != pieces:
        raise Mismatch("pieces are not those that the vocabulary gives src")
    return piece_words(offsets, leaf_spans(text, leaves), range(len(leaves)))


def leaf_spans(text: str, leaves: Sequence[str]) -> list[tuple[int, int]]:
    """[begin, end) of each leaf of a Penn tree in the characters of the text.

    White space may stand between leaves. Raises Mismatch where anything else does.

    >>> leaf_spans('He said "no".', ["He", "said", "``", "no", "''", "."])
    [(0, 2), (3, 7), (8, 9), (9, 11), (11, 12), (12, 13)]
    """
    spans = []
    at = 0
    for leaf in leaves:
        at = _after_spaces(text, at)
        forms = (leaf, *SPELLINGS.get(leaf, ()))
        form = next((form for form in forms if text.startswith(form, at)), None)
        if form is None:
            raise Mismatch(f"the tree's word {quoted(leaf)} is not at character {at + 1} of src")
        spans.append((at, at + len(form)))
        at += len(form)
    at = _after_spaces(text, at)
    if at < len(text):
        raise Mismatch(f"the tree has no word for {quoted(text[at:])} at character {at + 1} of src")
    return spans


def _after_spaces(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at
