"""Sources with dependency trees, and facts about them found by walking along arcs.

The batch has three sources: a split word in a tree of three levels; two sentences in one
line; a piece outside the tree, and a label that training never saw. Each ends in EOS.
"""

from __future__ import annotations

from hypothesis import strategies as st

from support.models import side
from synmt_cli.core.trees.features import FEATURES, PieceTree

LABELS = ["root", "nsubj", "det", "obj"]  # ids 1-4; any other label, and none, is 0
IDS = [[4, 7, 9, 9, 6, 3], [5, 10, 8, 7, 3], [4, 9, 8, 3]]  # 3 is EOS
TREES = [
    PieceTree([1, 2, -1, 2], ["det", "nsubj", "root", "obj"], [0], [0, 1, 1, 2, 3]),
    PieceTree([1, -1, -1, 2], ["nsubj", "root", "root", "obj"], [0, 2], [0, 1, 2, 3]),
    PieceTree([-1, 0], ["root", "vocative"], [0], [0, -1, 1]),
]
OTHERS = [  # for batches of other shapes: shorter, deeper and longer sources
    ([5, 3], PieceTree([-1], ["root"], [0], [0])),
    (
        [8, 10, 4, 5, 6, 7, 8, 9, 3],
        PieceTree(
            [1, 2, 3, 4, -1, 4], ["det"] * 4 + ["root", "obj"], [0], [0, 1, 1, 1, 2, 3, 4, 5]
        ),
    ),
    ([6, 6, 6, 3], PieceTree([-1, -1, 1], ["root", "root", "nsubj"], [0, 1], [0, 1, 2])),
]
NEEDED = tuple(FEATURES)


def source(ids=IDS, trees=TREES, needs=NEEDED, **options):
    """The batch with each feature as training computes it, EOS included."""
    return side(ids, **{name: [numbers(name, tree) for tree in trees] for name in needs}, **options)


def numbers(name, tree):
    """One value of a feature for each piece and for EOS; labels as ids."""
    values = FEATURES[name].compute(tree)
    values = [*values, FEATURES[name].eos(tree)]
    if FEATURES[name].kind == "label":
        return [label_id(label) for label in values]
    if FEATURES[name].kind == "labels":
        return [[label_id(label) for label in path] for path in values]
    return values


def label_id(label):
    return LABELS.index(label) + 1 if label in LABELS else 0


def words(tree):
    """The word of each token; None for EOS and for other tokens outside the tree."""
    return [None if word == -1 else word for word in tree.piece_word] + [None]


def upward(tree, word):
    """The word, its head, the head's head, and so on up to the root."""
    found = [word]
    while tree.heads[found[-1]] != -1:
        found.append(tree.heads[found[-1]])
    return found


def depth(tree, word):
    return len(upward(tree, word)) - 1


def same_sentence(tree, one, other):
    """Whether two words are in one sentence; never where one of them is None."""
    if one is None or other is None:
        return False
    return upward(tree, one)[-1] == upward(tree, other)[-1]


def words_only(heads):
    """A tree of one sentence with one piece for each word."""
    labels = [LABELS[word % len(LABELS)] for word in range(len(heads))]
    return PieceTree(heads, labels, [0], range(len(heads)))


@st.composite
def drawn(draw):
    """Up to three sentences of up to four words of 0 to 2 pieces; some pieces belong to no word."""
    heads, sents, piece_word = [], [], []
    for _ in range(draw(st.integers(1, 3))):
        start, n = len(heads), draw(st.integers(1, 4))
        order = draw(st.permutations(range(start, start + n)))
        above = {word: draw(st.sampled_from(order[:k])) for k, word in enumerate(order) if k}
        sents.append(start)
        heads += [above.get(word, -1) for word in range(start, start + n)]
    for word in range(len(heads)):
        piece_word += [-1] * draw(st.integers(0, 1)) + [word] * draw(st.integers(0, 2))
    labels = [draw(st.sampled_from([*LABELS, "vocative"])) for _ in heads]
    return PieceTree(heads, labels, sents, piece_word)
