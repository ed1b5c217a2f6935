import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.trees import several_trees

from synmt_cli.core.trees.features import EMITTED, FEATURES, MATRICES, PieceTree, tree_of
from synmt_cli.core.trees.heads import depths
from synmt_cli.formats.record import Record

# My father bought a red car . (Omote et al. 2019, Figure 2)
OMOTE = [1, 2, -1, 5, 5, 2, 2]
TABLE_1 = """
0 -1 -2 0 0 -1 -1
1 0 -1 1 1 0 0
2 1 0 2 2 1 1
0 -1 -2 0 0 -1 -1
0 -1 -2 0 0 -1 -1
1 0 -1 1 1 0 0
1 0 -1 1 1 0 0
"""


def words_only(heads, sents=(0,)):
    return PieceTree(heads, [f"l{i}" for i in range(len(heads))], sents, range(len(heads)))


@st.composite
def pieces(draw):
    """A tree whose words have 0 to 3 pieces, with pieces of no word between them."""
    heads = draw(several_trees())
    piece_word = []
    for word in range(len(heads)):
        piece_word += [word] * draw(st.integers(0, 3)) + [-1] * draw(st.integers(0, 1))
    roots = [word for word, head in enumerate(heads) if head == -1]
    return PieceTree(
        heads, [f"l{i}" for i in range(len(heads))], sentences(heads, len(roots)), piece_word
    )


def sentences(heads, n):
    """The first word of each sentence: a word below another root than the one before begins one."""
    tops = []
    for word in range(len(heads)):
        while heads[word] != -1:
            word = heads[word]
        tops.append(word)
    starts = [word for word in range(len(heads)) if word == 0 or tops[word] != tops[word - 1]]
    assert len(starts) == n
    return starts


def test_table_1_of_omote():
    expected = [list(map(int, row.split())) for row in TABLE_1.strip().split("\n")]
    assert MATRICES["dep_rel"](words_only(OMOTE)) == expected


def test_the_middle_of_a_split_parent():
    # Bugliarello and Okazaki: the parent is split into tokens 6, 7, 8 -> 7; into 1, 2 -> 1.5.
    tree = PieceTree([2, 2, -1, 1], ["l"] * 4, [0], [0, 1, 1, 3, 3, 3, 2, 2, 2])
    assert FEATURES["parent_middle"].compute(tree) == [7, 7, 7, 1.5, 1.5, 1.5, 7, 7, 7]
    assert FEATURES["parent_first"].compute(tree) == [6, 6, 6, 1, 1, 1, 6, 6, 6]


@given(pieces())
def test_parents_against_a_loop(tree):
    def positions(word):
        def of(w):
            return [i for i, v in enumerate(tree.piece_word) if v == w]

        before = (of(w) for w in range(word, -1, -1) if of(w))
        after = (of(w) for w in range(word + 1, len(tree.heads)) if of(w))
        return next(before, None) or next(after)

    middles = FEATURES["parent_middle"].compute(tree)
    firsts = FEATURES["parent_first"].compute(tree)
    for i, word in enumerate(tree.piece_word):
        if word == -1:
            assert middles[i] == firsts[i] == i
            continue
        where = positions(word if tree.heads[word] == -1 else tree.heads[word])
        assert middles[i] == sum(where) / len(where)
        assert firsts[i] == where[0]


@given(pieces())
def test_pieces_inherit_from_their_word(tree):
    of_word = depths(tree.heads)
    for i, word in enumerate(tree.piece_word):
        has_word = word != -1
        assert FEATURES["depth"].compute(tree)[i] == (of_word[word] if has_word else 0)
        assert FEATURES["tag"].compute(tree)[i] == (tree.deprels[word] if has_word else "")
        path = FEATURES["path"].compute(tree)[i]
        assert len(path) == (of_word[word] + 1 if has_word else 0)
        assert path[-1:] == ([tree.deprels[word]] if has_word else [])


@given(pieces())
def test_structural_relations_against_the_two_rules(tree):
    depth = FEATURES["struct_abs"].compute(tree)
    found = MATRICES["struct_rel"](tree)
    for i, word_i in enumerate(tree.piece_word):
        for j, word_j in enumerate(tree.piece_word):
            related = -1 not in (word_i, word_j) and (
                tree.heads[word_i] == word_j or tree.heads[word_j] == word_i
            )
            if i == j or word_i == word_j != -1:
                expected = 0
            elif related:
                expected = depth[i] - depth[j]
            else:
                expected = (depth[i] + depth[j]) * (1 if i > j else -1)
            assert found[i][j] == expected


def test_wang_signs_the_dependent_row_by_depth_and_others_by_order():
    found = MATRICES["struct_rel"](words_only([-1, 0, 1, 2]))  # a chain: not the tree distance
    assert (found[1][0], found[0][1]) == (1, -1)
    assert (found[3][1], found[1][3]) == (4, -4)


def test_no_relation_across_sentences_or_outside_the_tree():
    tree = PieceTree([-1, 0, -1], ["a", "b", "c"], [0, 2], [0, 1, -1, 2])
    none = None
    assert MATRICES["dep_rel"](tree) == [
        [0, 1, none, none],
        [-1, 0, none, none],
        [none, none, none, none],
        [none, none, none, 0],
    ]


def test_an_end_of_sentence():
    tree = words_only([1, -1, 1])
    ends = {name: f.eos(tree) for name, f in FEATURES.items()}
    expected = {"depth": 0, "parent_middle": 3.0, "parent_first": 3, "struct_abs": 2}
    outside = {"sentence": -1, "head_word": -1, "word": -5, "path": [], "tag": ""}
    assert ends == {**expected, **outside}


@pytest.mark.parametrize("name", EMITTED)
def test_without_a_tree_each_piece_stands_for_itself(name):
    expected = {
        "parent_middle": [0.0, 1.0],
        "parent_first": [0, 1],
        "sentence": [-1, -1],
        "word": [-2, -3],  # each is a word of its own
        "head_word": [-1, -1],
        "path": [[], []],
        "tag": ["", ""],
        "struct_rel": [[0, 0], [0, 0]],
        "dep_rel": [[None, None], [None, None]],
    }
    tree = tree_of(Record("1", "a b", "failed", pieces=["▁a", "▁b"], piece_word=[-1, -1]))
    assert EMITTED[name](tree) == expected.get(name, [0, 0])
    assert tree_of(Record("1", "a b", pieces=["▁a", "▁b"])) == tree


def test_without_pieces_words_take_their_place():
    record = Record("1", "a b", words=["a", "b"], heads=[1, -1], deprels=["x", "root"])
    assert FEATURES["parent_middle"].compute(tree_of(record)) == [1.0, 1.0]
