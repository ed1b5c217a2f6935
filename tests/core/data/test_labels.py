"""Paths as rows of a tree of prefixes: nothing is lost, nothing is there twice."""

from __future__ import annotations

import tracemalloc
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.trees import path_of
from support.work import lines_run

from synmt_cli.core.data.encoding import Encoding
from synmt_cli.core.data.labels import Labels, PathTree
from synmt_cli.core.trees.features import FEATURES, tree_of
from synmt_cli.core.trees.shapes import random_tree
from synmt_cli.formats.record import Record

PATHS = st.lists(st.lists(st.integers(0, 4), max_size=6), max_size=12)


def numbered(paths):
    """A tree that has these paths, and the row of each."""
    tree = PathTree()
    return tree, np.array([tree.row(path) for path in paths], np.int64)


@given(PATHS)
def test_a_row_is_a_path_and_a_path_is_a_row(paths):
    tree, rows = numbered(paths)
    assert [tree.row(iter(path)) for path in paths] == rows.tolist()
    for path, row in zip(paths, rows, strict=True):
        for other, other_row in zip(paths, rows, strict=True):
            assert (path == other) == (row == other_row)
        assert (row == 0) == (path == [])


@given(PATHS)
def test_every_path_of_a_batch_can_be_read_back(paths):
    tree, rows = numbered(paths)
    own, found = tree.paths_of(rows)
    assert [path_of(found, row) for row in own] == paths


@given(PATHS)
def test_a_batch_has_each_prefix_of_its_paths_once_and_nothing_else(paths):
    tree, rows = numbered(paths)
    _, found = tree.paths_of(rows)
    everything = [tuple(path_of(found, row)) for row in range(len(found.labels))]
    prefixes = {tuple(path[:n]) for path in paths for n in range(len(path) + 1)} | {()}
    assert len(everything) == len(prefixes)
    assert set(everything) == prefixes


@given(PATHS)
def test_rows_are_sorted_by_length_and_sizes_count_them(paths):
    tree, rows = numbered(paths)
    _, found = tree.paths_of(rows)
    lengths = [len(path_of(found, row)) for row in range(len(found.labels))]
    assert lengths == sorted(lengths)
    assert found.sizes == [lengths.count(n) for n in range(max(lengths) + 1)]
    assert sum(found.sizes) == len(found.labels) == len(found.shorter)
    assert found.sizes[0] == 1
    assert (found.labels[0], found.shorter[0]) == (0, 0)


@given(PATHS, st.data())
def test_a_batch_does_not_know_what_else_the_tree_met(paths, data):
    tree, rows = numbered(paths)
    chosen = data.draw(st.lists(st.sampled_from(range(len(paths))))) if paths else []
    own, found = tree.paths_of(rows[chosen])
    alone, alone_rows = numbered([paths[i] for i in chosen])
    _, expected = alone.paths_of(alone_rows)
    assert found.sizes == expected.sizes
    assert [path_of(found, row) for row in own] == [paths[i] for i in chosen]


@given(PATHS, PATHS)
def test_a_tree_may_grow_between_batches(before, after):
    tree, rows = numbered(before)
    tree.paths_of(rows)
    later = np.array([tree.row(path) for path in after], np.int64)
    for own, paths in ((later, after), (rows, before)):
        mapped, found = tree.paths_of(own)
        assert [path_of(found, row) for row in mapped] == paths


@given(PATHS, PATHS, PATHS)
def test_a_tree_of_a_table_grows_as_the_tree_itself(known, more, even_more):
    tree, _ = numbered(known)
    again = PathTree(tree.table)
    for paths in (more, even_more):
        assert [again.row(path) for path in paths] == [tree.row(path) for path in paths]
        np.testing.assert_array_equal(again.table, tree.table)


def test_batches_do_not_read_a_whole_table(tmp_path):
    """Training maps the paths of millions of sentences."""
    n = 100_000
    rows = np.stack((np.arange(n), np.zeros(n), np.ones(n)), 1).astype(np.int64)
    rows[0] = 0
    rows.tofile(tmp_path / "paths")
    mapped = np.memmap(tmp_path / "paths", np.int64, "r", shape=rows.shape)
    tracemalloc.start()
    own, found = PathTree(mapped).paths_of(np.array([n - 1, 7]))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert [path_of(found, row) for row in own] == [[n - 1], [7]]
    assert most < rows.nbytes / 10


def test_rows_keep_their_shape():
    tree, rows = numbered([[1, 2], [1], [3], []])
    own, _ = tree.paths_of(rows.reshape(2, 2))
    assert own.shape == (2, 2)
    assert own[1, 1] == 0


def test_a_very_deep_path_is_no_recursion():
    """A chain of n words has n prefixes; reading it back walks them one by one."""
    tree = PathTree()
    row, shorter = tree.row([1] * 1500), tree.row([1] * 1499)
    own, found = tree.paths_of(np.array([row, shorter]))
    assert own.tolist() == [1500, 1499]
    assert found.sizes == [1] * 1501


def test_labels_have_ids_in_the_order_they_were_met():
    labels = Labels(growing=True)
    assert [labels.id(name) for name in ("nsubj", "obj", "nsubj", "", "obl")] == [1, 2, 1, 0, 3]
    assert (labels.names, len(labels)) == (["nsubj", "obj", "obl"], 3)
    known = Labels(labels.names)
    assert [known.id(name) for name in ("obl", "vocative", "")] == [3, 0, 0]
    assert known.names == labels.names


def record_of(heads, piece_word, n_labels=3):
    deprels = ["root" if head < 0 else f"l{head % n_labels}" for head in heads]
    one = Record("1", "x", words=["x"] * len(heads), heads=heads, deprels=deprels, sents=[0])
    one.pieces, one.piece_word = ["x"] * len(piece_word), piece_word
    return one


@given(st.randoms(use_true_random=False))
def test_rows_of_a_tree_are_those_of_its_paths_listed_piece_by_piece(rng):
    """Numbers, too, whatever order the pieces have and whatever words have none."""
    encoding = Encoding(["path"], Labels(growing=True))
    labels, tree = Labels(growing=True), PathTree()
    for n in (1, 6, 9):
        words = rng.choices(range(-1, n), k=n + 2)
        record = record_of(random_tree(n, rng.random), words)
        paths = [*FEATURES["path"].compute(tree_of(record)), []]
        expected = [tree.row(map(labels.id, labels_of)) for labels_of in paths]
        assert encoding.values(record) == {"path": expected}
    assert encoding.labels.names == labels.names
    np.testing.assert_array_equal(encoding.paths.table, tree.table)


def test_rows_of_a_chain_take_linear_time():
    counts = []
    for n in (100, 800):
        chain = record_of([*range(1, n), -1], [*range(n)])
        encoding = Encoding(["path"], Labels(growing=True))
        counts.append(lines_run(partial(encoding.values, chain)))
    assert counts[1] < 9 * counts[0]


def test_a_cycle_has_no_paths():
    with pytest.raises(ValueError, match="cycle"):
        Encoding(["path"], Labels()).values(record_of([1, 0], [0, 1]))
