"""Tokens of transitions: every word comes back, and none is taken for an arc."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from synmt_cli.formats.transitions import (
    LEFT,
    RIGHT,
    Arc,
    arc,
    arc_tokens,
    escape,
    is_symbol,
    to_line,
    unescape,
)

PARTS = st.sampled_from(
    ["LEFT-ARC", "RIGHT-ARC", "ARC", ":", "<+>", "\\", " ", "\r", "\ufeff", "s"]
)
WORDS = st.lists(PARTS | st.characters(exclude_characters="\n"), min_size=1).map("".join)


@given(WORDS)
@example("LEFT-ARC:det")
@example("\\LEFT-ARC:det")
@example("RIGHT-ARC")
@example("ARC:")
@example("<+>")
@example("\\<+>")
@example("XARC:a\\")
@example("aLEFT-ARC:a b")
def test_a_word_comes_back_and_is_no_symbol(word):
    token = escape(word)
    assert unescape(token) == word
    assert not is_symbol(token)
    assert arc(token) is None
    assert " " not in token
    assert not token.endswith("\r")


@given(WORDS, st.sampled_from([LEFT, RIGHT]))
def test_a_label_comes_back(label, direction):
    (whole,) = arc_tokens(direction, label)
    assert arc(whole) == Arc(direction, label)
    first, second = arc_tokens(direction, label, split=True)
    assert (arc(first), arc(second)) == (Arc(direction, None), Arc(None, label))
    assert all(is_symbol(token) and " " not in token for token in (whole, first, second))


@pytest.mark.parametrize("token", ["SHIFT", "LEFT", "left-arc:det", "ARC", "a<+>", "nsubj", ":"])
def test_ordinary_words_are_written_as_they_are(token):
    assert escape(token) == token


def test_pieces_are_escaped_in_lines_and_arcs_are_not():
    tokens = ["▁a\\", "\r", "LEFT-ARC:a\\sb"]
    assert to_line(tokens, of_pieces=True) == "▁a\\\\ \\r LEFT-ARC:a\\sb"
    assert to_line(tokens, of_pieces=False) == " ".join(tokens)
    assert to_line([], of_pieces=True) == ""


@pytest.mark.parametrize("token", ["\\", "\\x", "a\\", "\\Lion", "\\ARC"])
def test_a_backslash_alone_is_refused(token):
    with pytest.raises(ValueError, match="is none of"):
        unescape(token)
