"""Records to batches: every pair once, nothing over the budget, one padding side."""

import dataclasses
from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from synmt_cli.core.data import corpus as corpora
from synmt_cli.core.data.batch import fill
from synmt_cli.core.data.corpus import Corpus
from synmt_cli.core.data.encoding import Encoding
from synmt_cli.core.data.labels import Labels
from synmt_cli.core.data.ragged import Ragged
from synmt_cli.core.text.vocabulary import BOS, EOS, PAD

ROWS = [[5, 6, 7, EOS], [8, EOS], [9, 10, EOS]]
TARGETS = [[11], [12, 13, 14], [15, 16]]


def corpus(sources=ROWS, targets=TARGETS):
    features = {"depth": Ragged.of([[i + 1 for i in range(len(r))] for r in sources], np.int64)}
    source, target = Ragged.of(sources, np.int64), Ragged.of(targets, np.int64)
    return Corpus(source, target, features, {}, Encoding(features, Labels()), [], Counter())


def test_a_batch_pads_right_and_shifts_the_target():
    batch = corpus().batch(np.array([1, 0]))
    assert batch.source.ids.tolist() == [[8, EOS, PAD, PAD], [5, 6, 7, EOS]]
    assert batch.source.pad.tolist() == [[False, False, True, True], [False] * 4]
    assert batch.source.features["depth"].tolist() == [[1, 2, 0, 0], [1, 2, 3, 4]]
    assert batch.target.ids.tolist() == [[BOS, 12, 13, 14], [BOS, 11, PAD, PAD]]
    assert batch.target_out.tolist() == [[12, 13, 14, EOS], [11, EOS, PAD, PAD]]
    assert corpus().n_tokens_of(np.array([1, 0])) == 6


def test_a_batch_without_padding_has_no_mask():
    assert corpus().batch(np.array([2])).source.pad is None
    assert torch.equal(corpus().batch(np.array([2])).source.ids, torch.tensor([ROWS[2]]))


lengths = st.lists(st.tuples(st.integers(1, 30), st.integers(1, 30)), min_size=1, max_size=60)


@given(lengths, st.integers(1, 100), st.integers(0, 3))
def test_an_epoch_holds_every_pair_once_within_the_budget(pairs, budget, epoch):
    made = corpus([[4] * s for s, _ in pairs], [[4] * t for _, t in pairs])
    batches = list(made.epoch(budget, 7, epoch))
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(pairs)))
    for rows in batches:
        longest = max(max(pairs[i][0], pairs[i][1] + 1) for i in rows)
        assert len(rows) * longest <= budget or len(rows) == 1
    again = made.epoch(budget, 7, epoch)
    assert [b.tolist() for b in again] == [b.tolist() for b in batches]


def test_another_epoch_and_another_seed_are_another_order():
    made = corpus([[4] * 5] * 50, [[4] * 5] * 50)
    orders = {str([b.tolist() for b in made.epoch(20, s, e)]) for s in (1, 2) for e in (0, 1)}
    assert len(orders) == 4


def test_little_is_padding():
    random = np.random.default_rng(0)
    made = [[4] * n for n in random.integers(4, 40, 3000)]
    full = corpus(made, [row[:-1] or [4] for row in made])
    cells = sum(b.target_out.numel() for b in map(full.batch, full.epoch(2000, 1, 0)))
    assert full.n_tokens / cells > 0.95


def test_nothing_is_cut_from_nothing():
    assert fill(np.array([], int), np.array([], int), 10) == []


@pytest.mark.parametrize("dtype", [np.int64, np.float32])
def test_ragged_gives_back_its_rows(dtype):
    ragged = Ragged.of([[1, 2], [], [3]], dtype)
    assert ragged.padded(np.array([2, 1, 0]), 9).tolist() == [[3, 9], [9, 9], [1, 2]]


def test_batches_may_be_limited_by_sentences_too():
    lengths = np.array([2, 2, 2, 9, 2, 2, 2])
    order = np.arange(7)
    assert [len(rows) for rows in fill(order, lengths, 1000, 3)] == [3, 3, 1]
    assert [len(rows) for rows in fill(order, lengths, 10, 3)] == [3, 1, 3]


@given(st.integers(1, 60), st.integers(0, 3), st.integers(0, 3))
def test_windows_hold_every_pair_once_whatever_they_are(n, seed, epoch):
    made = corpus([[4] * (1 + i % 5) for i in range(n)], [[4]] * n)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(corpora, "WINDOW", 8)
        patch.setattr(corpora, "BLOCK", 4)
        batches = list(made.epoch(20, seed, epoch))
    assert sorted(np.concatenate(batches).tolist()) == list(range(n))


def test_windows_are_of_other_pairs_in_another_epoch(monkeypatch):
    made = corpus([[4] * 5] * 64, [[4]] * 64)
    monkeypatch.setattr(corpora, "WINDOW", 16)
    monkeypatch.setattr(corpora, "BLOCK", 4)
    firsts = {frozenset(np.concatenate(list(made.epoch(20, 1, e))[:4]).tolist()) for e in range(5)}
    assert len(firsts) == 5
    assert all(len({row // 4 for row in first}) == 4 for first in firsts)  # whole blocks


def test_models_with_and_without_trees_see_the_same_sentences():
    """Transitions do not count, so any budget gives the same batches as for the pieces alone."""
    random = np.random.default_rng(5)
    n_pieces = random.integers(1, 20, 80)
    sources = [[4] * n for n in random.integers(1, 20, 80)]
    plain = corpus(sources, [[5] * n for n in n_pieces])
    trees = corpus(sources, [[5] * (2 * n - 1) for n in n_pieces])
    trees = dataclasses.replace(trees, n_pieces=n_pieces)
    for epoch in range(3):
        pairs = zip(plain.epoch(60, 1, epoch), trees.epoch(60, 1, epoch), strict=True)
        assert all(one.tolist() == other.tolist() for one, other in pairs)
    assert trees.n_tokens_of(np.arange(3)) == sum(2 * n_pieces[:3])
