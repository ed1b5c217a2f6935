"""Updates: the batches that pass through the model, and how processes share them."""

from __future__ import annotations

import statistics
from collections import Counter
from itertools import islice

import numpy as np
import pytest
from support import launches

from synmt_cli.core.distributed.ranks import Ranks
from synmt_cli.core.distributed.sharding import Shards, Share
from synmt_cli.core.run.config import Training
from synmt_cli.core.training.batches import of_epoch
from synmt_cli.core.training.updates import Updates, shared_out


class Process:
    """One of several processes, with only what shares out work."""

    def __init__(self, kind, rank, size):
        self.ranks, self.kind = Ranks(rank, size), kind

    def parts(self, shares):
        made = object.__new__(self.kind)
        made.ranks = self.ranks
        return made.parts(shares)


def updates(size, kind=Share, **settings):
    """A corpus, and the first update of each process."""
    corpus = launches.corpus(40)
    given = Training(**{"batch_tokens": 200, "accumulate": 3, **settings})
    return corpus, [
        next(Updates(corpus, given, Process(kind, rank, size)).since(0, 0)) for rank in range(size)
    ]


def lines(corpus, update):
    """The pairs that count, by the text of their targets."""
    for batch, counts in update.batches:
        if counts:
            for ids, length in zip(batch.target_out, batch.lengths, strict=True):
                yield " ".join(map(str, ids[: length - 1].tolist()))


@pytest.mark.parametrize("micro", [0, 90, 10_000])
@pytest.mark.parametrize("size", [1, 2, 3, 4, 7])
def test_every_pair_of_an_update_passes_once(size, micro):
    corpus, (whole,) = updates(1)
    _, each = updates(size, micro_tokens=micro)
    found = [line for update in each for line in lines(corpus, update)]
    assert sorted(found) == sorted(lines(corpus, whole))
    assert {update.n_tokens for update in each} == {whole.n_tokens}


def test_updates_over_lengths_are_those_of_an_epoch_and_the_first_few_have_its_mean_length():
    corpus = launches.corpus(400)
    made = Updates(corpus, Training(batch_tokens=100, accumulate=2), Process(Share, 0, 1))
    n = sum(1 for _ in of_epoch(corpus, made.settings, 0))
    epoch = list(islice(made.since(0, 0), -(-n // 2)))
    over = list(islice(made.over_lengths(), len(epoch) + 1))
    length = [
        update.n_tokens / sum(len(b.target_out) for b, _ in update.batches) for update in over
    ]
    assert Counter(map(tokens, over[:-1])) == Counter(map(tokens, epoch))
    assert tokens(over[-1]) == tokens(over[0])  # it begins again
    assert length[0] == statistics.median_low(length[:-1])
    assert statistics.mean(length[1:7]) == pytest.approx(statistics.mean(length[:-1]), rel=0.1)


def tokens(update):
    """All target tokens of an update, as a key for a Counter."""
    return tuple(str(batch.target_out.tolist()) for batch, _ in update.batches)


def test_processes_take_whole_batches_as_long_as_there_are_enough():
    batches = [np.arange(9 * i, 9 * i + 9) for i in range(17)]
    shares = shared_out(batches, 8, lambda rows: [rows])
    assert [[len(rows) for rows in own] for own in shares] == [[9, 9, 2]] + [[9, 9, 1]] * 7
    assert shared_out(batches, 1, list) == [batches]


def test_micro_tokens_bound_each_pass_and_join_batches():
    _, (few,) = updates(1, micro_tokens=90)
    for batch, _ in few.batches:
        n_pairs = len(batch.target_out)
        longest = max(batch.target_out.size(1), batch.source.ids.size(1))
        assert n_pairs * longest <= 90 or n_pairs == 1
    assert len(updates(1, micro_tokens=10_000)[1][0].batches) == 1


def test_processes_with_shards_make_as_many_passes_as_the_first():
    _, each = updates(3, Shards, accumulate=1, batch_sentences=2)
    assert [len(update.batches) for update in each] == [1, 1, 1]
    assert [counts for update in each for _, counts in update.batches] == [True, True, False]
