"""Parts of a parallel text: sizes, and no line in two of them."""

from collections import Counter

from hypothesis import assume, given
from hypothesis import strategies as st

from synmt_cli.core.filtering.line_hashes import same
from synmt_cli.core.filtering.partition import REST, grouped
from synmt_cli.errors import UsageError

LINE = st.sampled_from(["a", "b", "c", "d", "e", "f", "a ", " b", "", " ", "é", "e\u0301"])
LINES = st.one_of(LINE, st.text(alphabet="abcdef", min_size=1, max_size=3))


@given(st.lists(st.tuples(LINES, LINES), min_size=1), st.integers(0, 9), st.data())
def test_parts_have_their_sizes_and_share_no_line(pairs, seed, data):
    sizes = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    try:
        parts = grouped(pairs).parts(sizes, seed)
    except UsageError:
        assume(False)
    counts = Counter(parts)
    assert [counts[number] for number in range(len(sizes))] == sizes
    for side in (0, 1):
        part_of = {}
        for pair, part in zip(pairs, parts, strict=True):
            if pair[side].strip():
                assert part_of.setdefault(same(pair[side]), part) == part
            else:
                assert part == REST


@given(st.lists(st.text("abcdefghij", min_size=5, max_size=9), unique=True, min_size=8), st.data())
def test_where_lines_differ_their_order_does_not_matter(lines, data):
    pairs = [(line, line.upper()) for line in lines]
    moved = data.draw(st.permutations(pairs))
    chosen = [
        {pair for pair, part in zip(order, grouped(order).parts([2, 3], 1), strict=True) if part}
        for order in (pairs, moved)
    ]
    assert chosen[0] == chosen[1]


def test_seeds_choose_differently_and_evenly():
    pairs = [(f"line {n}", f"zeile {n}") for n in range(100)]
    chosen = Counter()
    for seed in range(200):
        chosen.update(n for n, part in enumerate(grouped(pairs).parts([10], seed)) if part == 0)
    # Binomial(200, 0.1) has mean 20 and standard deviation 4.2.
    assert len(chosen) == 100
    assert max(chosen.values()) < 20 + 5 * 4.3
