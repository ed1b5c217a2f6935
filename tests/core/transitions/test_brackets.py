"""Dependency trees as brackets, against their recursive definition."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synmt_cli.core.segments.alignment import Mismatch
from synmt_cli.core.transitions.brackets import (
    labels,
    leaf_spans,
    lexicalised,
    of_dependencies,
    opening,
    text,
    without_words,
)
from synmt_cli.core.trees.heads import is_projective


@st.composite
def forests(draw, max_size=12):
    """Heads of one or two sentences."""
    heads = []
    for _ in range(draw(st.integers(1, 2))):
        n, start = draw(st.integers(1, max_size)), len(heads)
        order = draw(st.permutations(range(n)))
        above = {order[0]: -1}
        for i in range(1, n):
            above[order[i]] = start + order[draw(st.integers(0, i - 1))]
        heads += [above[i] for i in range(n)]
    return heads


def bracket(heads, deprels, word):
    """The definition: left dependents, the word, right dependents."""
    below = [i for i, head in enumerate(heads) if head == word]
    inside = [bracket(heads, deprels, i) if i != word else [word] for i in sorted([*below, word])]
    return [deprels[word], *(item for part in inside for item in part), None]


@given(forests())
def test_brackets_are_the_recursive_definition(heads):
    deprels = [f"r{i % 3}" for i in range(len(heads))]
    roots = [i for i, head in enumerate(heads) if head == -1]
    expected = [item for root in roots for item in bracket(heads, deprels, root)]
    assert of_dependencies(heads, deprels) == expected


@given(forests())
def test_words_are_in_the_order_of_the_sentence_where_trees_are_projective(heads):
    words = [i for i in of_dependencies(heads, ["x"] * len(heads)) if isinstance(i, int)]
    assert sorted(words) == list(range(len(heads)))
    assert (words == sorted(words)) == is_projective(heads)


@given(forests())
def test_the_tree_can_be_read_back_with_its_words(heads):
    deprels = [f"r{i}" for i in range(len(heads))]
    found, opened = [None] * len(heads), []
    items = of_dependencies(heads, deprels)
    word_of = {deprels[i]: i for i in items if isinstance(i, int)}
    for item in items:
        if isinstance(item, str):
            found[word_of[item]] = word_of[opened[-1]] if opened else -1
            opened.append(item)
        elif item is None:
            opened.pop()
    assert found == heads


def test_words_are_taken_out():
    """John saw the dog yesterday which barked: not projective."""
    heads = [1, -1, 3, 1, 1, 6, 3]
    deprels = ["nsubj", "root", "det", "obj", "advmod", "nsubj", "acl"]
    items = of_dependencies(heads, deprels)
    assert text(without_words(items)) == (
        "(root (nsubj ) (obj (det ) (acl (nsubj ) ) ) (advmod ) )"
    )
    assert [i for i in items if isinstance(i, int)] == [0, 1, 2, 3, 5, 6, 4]
    assert labels(items) == set(deprels)


def spelled(item):
    return [opening(item) if item else "<)>"]


def test_pieces_stand_where_their_word_does():
    items = of_dependencies([1, -1, 1], ["nsubj", "root", "obj"])
    pieces = ["▁", "a", "b", "▁see", "▁", "c", "▁"]
    shown, indices = lexicalised(items, pieces, [-1, 0, 0, 1, -1, 2, -1], spelled)
    assert " ".join(shown) == "<(root> <(nsubj> ▁ a b <)> ▁see <(obj> ▁ c ▁ <)> <)>"
    assert indices == [-1, -1, 0, 1, 2, -1, 3, -1, 4, 5, 6, -1, -1]


@given(forests(), st.data())
def test_every_piece_is_there_once_and_in_order_where_trees_are_projective(heads, data):
    words = st.lists(st.integers(-1, len(heads) - 1), min_size=1, max_size=9)
    piece_word = sorted(data.draw(words.filter(lambda found: max(found) >= 0)))
    items = of_dependencies(heads, ["x"] * len(heads))
    shown, indices = lexicalised(items, list("abcdefghi"), piece_word, spelled)
    own = [i for i in indices if i >= 0]
    assert sorted(own) == list(range(len(piece_word)))
    assert own == sorted(own) or not is_projective(heads)
    assert [piece for piece in shown if len(piece) == 1] == ["abcdefghi"[i] for i in own]


def test_no_piece_with_a_word_is_refused():
    with pytest.raises(Mismatch, match="no piece belongs to a word"):
        lexicalised(["root", 0, None], ["▁"], [-1], spelled)


def test_depth_and_length_have_no_limit():
    n = 100_000
    chain = of_dependencies([-1, *range(n - 1)], ["x"] * n)
    assert chain[:2] == ["x", 0]
    assert len(chain) == 3 * n
    assert len(of_dependencies([-1, *[0] * (n - 1)], ["x"] * n)) == 3 * n


@pytest.mark.parametrize(
    ("line", "words", "found"),
    [
        ("a(b)", ["a", "(", "b", ")"], [(0, 1), (1, 2), (2, 3), (3, 4)]),
        (" „Ja“ …", ["``", "Ja", "''", "..."], [(1, 2), (2, 4), (4, 5), (6, 7)]),
        ("``a''", ["``", "a", "''"], [(0, 2), (2, 3), (3, 5)]),
        ("", [], []),
    ],
)
def test_words_of_a_tree_are_found_in_the_text(line, words, found):
    assert leaf_spans(line, words) == found


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["the", "cat"], "the tree's word 'cat' is not at character 5 of src"),
        (["the"], "the tree has no word for 'dog ' at character 5 of src"),
        (["the", "dog", "."], "the tree's word '.' is not at character 9 of src"),
    ],
)
def test_other_words_are_named(words, problem):
    with pytest.raises(Mismatch) as error:
        leaf_spans("the dog ", words)
    assert str(error.value) == problem
