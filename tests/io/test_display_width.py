"""Columns of a terminal."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synmt_cli.io.display_width import cut, padded, width


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("dog", 3),
        ("犬", 2),
        ("e\u0301", 1),
        ("\u1100\u1161\u11a8", 2),
        ("ＡＢ", 4),
        ("שלום", 4),
        ("", 0),
    ],
)
def test_width_is_that_of_a_terminal(text, columns):
    assert width(text) == columns
    assert padded(text, 6) == text + " " * (6 - columns)


@given(st.text(st.sampled_from("ab犬e\u0301ｶ각"), max_size=20), st.integers(1, 12))
def test_what_is_cut_fits_and_says_so(text, columns):
    shown = cut(text, columns)
    assert width(shown) <= columns
    assert shown == text or (shown.endswith("…") and text.startswith(shown[:-1]))
    assert (shown == text) == (width(text) <= columns)
