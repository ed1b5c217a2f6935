"""A set of digests is a set."""

import unicodedata

from hypothesis import given, settings
from hypothesis import strategies as st

from synmt_cli.core.filtering.line_hashes import MOST_BYTES, Digests, digest


@given(st.lists(st.sampled_from([bytes(16), b"\1" + bytes(15), bytes(15) + b"\1", b"\xff" * 16])))
def test_a_set_of_digests_that_meet_is_a_set(items):
    ours, theirs = Digests(), set()
    for item in items:
        # Digests that differ only in a first word of 0 or 1 count as one: 2^-63 have such a word.
        key = b"\1" + bytes(7) + item[8:] if item[:8] in (bytes(8), b"\1" + bytes(7)) else item
        assert ours.add(item) == (key not in theirs)
        theirs.add(key)
        assert item in ours
    assert len(ours) == len(theirs)


@settings(max_examples=5)
@given(st.integers(0, 10_000), st.integers(1, 7))
def test_it_grows_and_keeps_every_digest(start, step):
    ours = Digests()
    added = [digest([str(i)]) for i in range(start, start + 5000 * step, step)]
    assert all(map(ours.add, added))
    assert not any(map(ours.add, added))
    assert all(one in ours for one in added)
    assert not any(digest([f"x{i}"]) in ours for i in range(2000))
    assert 8 * len(ours._words) <= (MOST_BYTES + 1) * len(ours)


def test_lines_are_the_same_whatever_their_white_space_and_composition():
    assert digest(["ä b"]) == digest([unicodedata.normalize("NFD", " ä\u00a0 b ")])
    assert digest(["a", "b"]) != digest(["a b"]) != digest(["A b"])
    assert digest(["a", "b"]) != digest(["b", "a"])
