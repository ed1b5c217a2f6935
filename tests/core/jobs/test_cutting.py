"""Work is cut into the lines of text that other readers of the same comments find."""

import io

from hypothesis import example, given
from hypothesis import strategies as st

from synmt_cli.core.inspection.problems import ProblemFinder
from synmt_cli.core.jobs.cutting import cut_by_line
from synmt_cli.core.jobs.work import lines
from synmt_cli.core.segments import comments
from synmt_cli.core.segments.bad_trees import failed
from synmt_cli.formats import conllu
from synmt_cli.io.reading import Source

ROW = "1\ta\t_\t_\t_\t_\t0\troot\t_\t_\n\n"
BLANKS = st.sampled_from(["", " ", "  ", "\t"])
KEYS = st.sampled_from(["synmt_line", "sent_id", "text", "synmt_lines", "x synmt_line"])
VALUES = st.sampled_from(["1", "2", "1.1", "2.1", " 1", "1\r", ""])
COMMENTS = st.builds("#{}{}{}={}\n".format, BLANKS, KEYS, BLANKS, VALUES | VALUES.map(" {}".format))
BLOCKS = st.lists(st.lists(COMMENTS, max_size=3).map("".join), min_size=1, max_size=6)


class Trickle(io.BytesIO):
    """Gives a few bytes at a time, so that blocks and lines are cut anywhere."""

    def __init__(self, data, size):
        super().__init__(data)
        self.size_of_reads = size

    def read1(self, size=-1):
        return super().read1(self.size_of_reads)


@given(BLOCKS, st.integers(1, 200), st.integers(0, 4))
@example(["#synmt_line = 1\n", "#synmt_line = 1\n"], 1, 0)
@example(["# synmt_line = 1\r\n# sent_id = 1.1\r\n"] * 2, 1, 0)
@example(["#synmt_line = 1\n", "#synmt_line = 1\n"], 2, 4)
def test_work_has_the_lines_that_comments_give(blocks, size, n_blank):
    """They do, however many further blank lines there are between sentences."""
    data = "".join(block + ROW + "\n" * n_blank for block in blocks).encode()

    def source():
        return Source("f", Trickle(data, size))

    expected = [len(line) for line in comments.lines(conllu.read(source()))]
    parts = cut_by_line(conllu.batches(source()))
    assert [len(line) for part in parts for _, line in lines(part)] == expected


@given(st.lists(st.sampled_from([ROW, ROW[:-1]]) | COMMENTS), st.integers(1, 99))
@example([ROW[:-1], "# synmt_line = 2\n", ROW, "# synmt_line = 2\n"], 9)
def test_a_lost_blank_line_does_not_make_a_block_one_of_the_next_line(parts, size):
    """Comments count only where they stand before the words, in cutting, reading and counting."""
    data = ("".join(parts) + ROW).encode()

    def source():
        return Source("f", Trickle(data, size))

    expected = [len(line) for line in comments.lines(conllu.read(source(), instead=failed))]
    work = cut_by_line(conllu.batches(source()))
    assert [len(line) for part in work for _, line in lines(part, "failed")] == expected
    search = ProblemFinder(counting=True)
    assert len(list(search.problems(source(), "conllu"))) <= sum(expected)
    assert search.n_segments == len(expected)


def test_a_file_that_is_named_twice_is_two_files():
    sources = [Source("f", io.BytesIO(f"# synmt_line = 1\n{ROW}".encode())) for _ in range(2)]
    parts = cut_by_line(batch for source in sources for batch in conllu.batches(source))
    assert [len(line) for part in parts for _, line in lines(part)] == [1, 1]
