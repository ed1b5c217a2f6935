"""Penn brackets, a line each."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synmt_cli.core.transitions.brackets import text, without_words
from synmt_cli.errors import DataError
from synmt_cli.formats.penn import Constituent, from_text

LINE = "(ROOT (S (NP (DT The) (NN dog)) (VP (VBZ sees) (NP (PRP it))) (. .)))"
LABELS = st.text("ABNPSV-12,:$'`", min_size=1)
WORDS = st.text("abzÄ.-'&語\u00a0", min_size=1).filter(lambda word: "-" not in word)


def test_words_are_items_and_their_parts_of_speech_are_apart():
    tree = from_text(LINE)
    assert tree.words == ["The", "dog", "sees", "it", "."]
    assert tree.tags == ["DT", "NN", "VBZ", "PRP", "."]
    opened = ["ROOT", "S", "NP", 0, 1, None, "VP", 2, "NP", 3, None, None, 4, None, None]
    assert tree.items == opened


def test_without_words_it_is_the_form_of_currey_and_heafield():
    """The published data of Bugliarello and Okazaki (2020) has this form."""
    line = "(ROOT (S (NP (DT A) (NN dog)) (VP (VBZ sees) (NP (PRP it)))))"
    taken_out = "(ROOT (S (NP ) (VP (NP ) ) ) )"
    assert text(without_words(from_text(line).items)) == taken_out
    assert text(without_words(from_text(taken_out).items)) == taken_out


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("(NP (-LRB- -LRB-) (NN a) (-RRB- -RRB-))", ["(", "a", ")"]),
        (r"(NP (CD 1\/2) (SYM \*) (-LRB- -LSB-))", ["1/2", "*", "["]),
        ("(NP (NP (NN a)) (SBAR (WHNP (-NONE- 0)) (S (-NONE- *T*-1))))", ["a"]),
        ("(S (NN a\u00a0b\u2028))", ["a\u00a0b\u2028"]),
        ("(S(NP(NN a))\t(. .))", ["a", "."]),
    ],
)
def test_words_are_those_of_the_text(line, words):
    tree = from_text(line)
    assert (tree.words, len(tree.tags)) == (words, len(words))


def test_an_outermost_bracket_without_a_label_is_root():
    assert from_text("( (S (NN a)))") == from_text("(ROOT (S (NN a)))")


def test_a_line_may_hold_several_trees():
    assert from_text("(S (NN a)) (S (NN b))") == Constituent(
        ["S", 0, None, "S", 1, None], ["a", "b"], ["NN", "NN"]
    )


@pytest.mark.parametrize("line", ["", " \t", "()", "(())", "( ( ) )"])
def test_where_a_parser_failed_there_is_no_tree(line):
    assert from_text(line) is None


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("(S (NP (NN a))", "1 bracket not closed"),
        ("(S (NP (NN a", "3 brackets not closed"),
        ("(S (NN a)))", "')' outside all brackets at character 11"),
        ("a (S (NN a))", "'a' outside all brackets at character 1"),
        ("(S a b)", "the word 'b' without a bracket of its own at character 6"),
        ("(S (NN a) b)", "the word 'b' without a bracket of its own at character 11"),
        ("(S a (NN b))", "a bracket after a word at character 6"),
        ("(S (NP ((NN a))))", "a bracket without a label at character 9"),
        ("(S ())", "an empty bracket at character 5"),
        ("(((NN a)))", "a bracket without a label at character 3"),
        ("\u202e(S", r"'\u202e' outside all brackets at character 1"),
    ],
)
def test_what_is_no_tree_is_named_with_its_place(line, problem):
    with pytest.raises(DataError) as error:
        from_text(line, "f", 7)
    assert str(error.value) == f"f:7: {problem}"


def written(tree):
    """The line of (label, parts), where a part is such a tree or a word."""
    label, parts = tree
    shown = (f"(X {part})" if isinstance(part, str) else written(part) for part in parts)
    return f"({label} {' '.join(shown)})"


def listed(tree):
    """The items of such a tree, by the recursive definition; a word stays as it is."""
    label, parts = tree
    below = [item for p in parts for item in ([(p,)] if isinstance(p, str) else listed(p))]
    return [label, *below, None]


TREES = st.recursive(
    st.tuples(LABELS, st.lists(WORDS, max_size=3)),
    lambda below: st.tuples(LABELS, st.lists(WORDS | below, max_size=4)),
)


@given(st.lists(TREES, min_size=1, max_size=3))
def test_what_is_written_is_read(trees):
    found = from_text(" ".join(map(written, trees)))
    items = [(found.words[i],) if isinstance(i, int) else i for i in found.items]
    assert items == [item for tree in trees for item in listed(tree)]


def test_depth_and_length_have_no_limit():
    n = 100_000
    tree = from_text("(X " * n + "(N a)" + ")" * n)
    assert tree.items == [*["X"] * n, 0, *[None] * n]
    assert len(from_text("(S " + "(N a) " * n + ")").words) == n
