"""Columns in files: what comes back is what went in, or it is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from synmt_cli.core.data.ragged import Ragged
from synmt_cli.core.data.ragged_files import Columns, mapped
from synmt_cli.errors import DataError

TYPES = {"source": np.int32, "source.middle": np.float32, "target": np.int32}
ROWS = st.lists(st.lists(st.integers(0, 70_000), max_size=5), max_size=8)


def parts_of(rows):
    """A chunk of three columns from these rows."""
    halves = [[value + 0.5 for value in row] for row in rows]
    return {
        "source": Ragged.of(rows, np.int64),
        "source.middle": Ragged.of(halves, np.float64),
        "target": Ragged.of([row[:1] for row in rows], np.int64),
    }


def filled(chunks, folder=None):
    with Columns(TYPES, folder) as columns:
        for rows in chunks:
            columns.append(parts_of(rows))
        return columns.whole(), columns.seals()


def rows_of(ragged):
    return [
        ragged.values[b:e].tolist()
        for b, e in zip(ragged.offsets, ragged.offsets[1:], strict=False)
    ]


@given(st.lists(ROWS, max_size=4))
def test_chunks_are_joined_in_memory_and_in_files(tmp_path_factory, chunks):
    folder = tmp_path_factory.mktemp("columns")
    everything = parts_of([row for rows in chunks for row in rows])
    written, seals = filled(chunks, folder)
    for found in (filled(chunks)[0], written, mapped(folder, list(TYPES), seals)):
        assert {name: rows_of(c) for name, c in found.items()} == {
            name: rows_of(c) for name, c in everything.items()
        }
        assert {name: c.values.dtype for name, c in found.items()} == TYPES


def test_columns_of_one_base_share_their_offsets(tmp_path):
    filled([[[1, 2]]], tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "source.middle.values",
        "source.offsets",
        "source.values",
        "target.offsets",
        "target.values",
    ]


@pytest.mark.parametrize("damage", ["cut", "longer", "flipped", "gone"])
def test_a_file_that_is_not_what_was_written_is_refused(tmp_path, damage):
    _, seals = filled([[[1, 2], [3]]], tmp_path)
    path = tmp_path / "source.values"
    data = bytearray(path.read_bytes())
    data[3] ^= damage == "flipped"
    path.write_bytes({"cut": data[:-1], "longer": data + b"\0"}.get(damage, data))
    if damage == "gone":
        path.unlink()
    with pytest.raises(DataError, match=r"source\.values: damaged"):
        mapped(tmp_path, list(TYPES), seals)
