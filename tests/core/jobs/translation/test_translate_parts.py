from collections import deque
from types import SimpleNamespace

from hypothesis import given, settings
from hypothesis import strategies as st

from synmt_cli.core.decoding.translator import windows
from synmt_cli.core.jobs.translation.job import parts_of, whole_windows


def records(lengths):
    return [
        (SimpleNamespace(id=i, pieces=["a"] * n if n else None), ("x", i + 1))
        for i, n in enumerate(lengths)
    ]


@settings(max_examples=30)
@given(st.lists(st.integers(0, 5), min_size=1, max_size=30), st.integers(1, 12), st.integers(1, 5))
def test_parts_of_windows_come_back_in_order(lengths, window, size):
    sent = deque(part for one in windows(records(lengths), window) for part in parts_of(one, size))
    results = [[[([f"{one.id}"], 1) for one, _ in part.records]] * 2 for part in sent]
    found = list(whole_windows(results, sent))
    assert [len(of_first) for of_first, _ in found] == [
        len(one) for one in windows(lengths, window)
    ]
    for k in (0, 1):
        flat = [one for each in found for one in each[k]]
        assert [record.id for record, _ in flat] == list(range(len(lengths)))
        assert [found for _, found in flat] == [([f"{i}"], 1) for i in range(len(lengths))]


def test_a_part_has_records_of_similar_length_in_the_order_of_the_input():
    parts = list(parts_of(records([3, 9, 0, 8, 4]), 2))
    assert [[len(one.pieces or ()) for one, _ in part.records] for part in parts] == [
        [9, 8],
        [3, 4],
        [0],
    ]
