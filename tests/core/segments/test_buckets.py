"""Bucket edges: each begins its bucket."""

import pytest

from synmt_cli.core.segments.buckets import Buckets, n_words, parse_edges
from synmt_cli.errors import UsageError


def test_an_edge_begins_its_bucket():
    buckets = Buckets((20, 30, 40, 50))
    lengths = (0, 19, 20, 29, 30, 49, 50, 10**6)
    assert [buckets.index(n) for n in lengths] == [0, 0, 1, 1, 2, 3, 4, 4]
    assert buckets.names == ("0-19", "20-29", "30-39", "40-49", "50+")
    assert buckets.limits == ((0, 19), (20, 29), (30, 39), (40, 49), (50, None))


def test_one_edge_makes_two_buckets():
    assert parse_edges("1").names == ("0", "1+")


@pytest.mark.parametrize(
    "edges", ["", "0,5", "5,5", "30,20", "5,", "+5", "1_0", "٣", "5 ", "x", "-1"]
)
def test_edges_that_do_not_rise_are_refused(edges):
    with pytest.raises(UsageError):
        parse_edges(edges)


def test_words_are_between_white_space():
    assert [n_words(line) for line in ("", " ", "a", " a  b\t", "a\u00a0b")] == [0, 0, 1, 2, 2]
