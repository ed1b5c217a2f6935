"""Structural probes: distances and losses against loops, and trees that the states hold."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
import torch
from scipy import sparse, stats
from support.small_runs import RECORDS, opened

from synmt_cli.core.analysis.structural_probe import (
    ProbedSentence,
    figures,
    fit,
    loss,
    parted,
    predicted,
    squared_distances,
    word_states,
)
from synmt_cli.core.analysis.tree_geometry import (
    DepthScores,
    DistanceScores,
    geometry,
    path_lengths,
    rank_correlation,
    spanning_tree,
)
from synmt_cli.core.trees.heads import ROOT
from synmt_cli.core.trees.shapes import random_tree

TREES = [random_tree(n, Random(n).random) for n in (2, 3, 7, 12)]


@pytest.mark.parametrize("heads", TREES)
def test_path_lengths_are_those_of_a_walk(heads):
    def above(word):
        return [word, *(above(heads[word]) if heads[word] != ROOT else [])]

    found = path_lengths(heads)
    for i in range(len(heads)):
        for j in range(len(heads)):
            a, b = above(i)[::-1], above(j)[::-1]
            shared = sum(x == y for x, y in zip(a, b, strict=False))
            assert found[i, j] == len(a) + len(b) - 2 * shared


@pytest.mark.parametrize("heads", TREES)
def test_the_spanning_tree_of_path_lengths_is_the_tree(heads):
    edges = {(min(i, h), max(i, h)) for i, h in enumerate(heads) if h != ROOT}
    assert spanning_tree(path_lengths(heads)) == edges


def test_spanning_trees_and_correlations_are_scipys():
    random = np.random.default_rng(1)
    for n in (2, 5, 30):
        distances = random.random((n, n))
        distances += distances.T
        theirs = sparse.csgraph.minimum_spanning_tree(np.triu(distances, 1)).nonzero()
        assert spanning_tree(distances) == {*zip(*map(np.ndarray.tolist, theirs), strict=True)}
        a, b = random.integers(0, 4, n), random.random(n)
        a[0] = 5
        assert rank_correlation(a, b) == pytest.approx(stats.spearmanr(a, b).statistic)
    assert rank_correlation(np.ones(4), np.arange(4)) == 0


def sentence(heads, states, upos=None):
    n = len(heads)
    return ProbedSentence(states, geometry(heads, upos or ["X"] * n, range(n)))


def test_the_loss_is_that_of_explicit_loops():
    generator = torch.Generator().manual_seed(2)
    batch = [sentence(h, torch.randn(len(h), 5, generator=generator)) for h in TREES]
    projection = torch.randn(5, 3, generator=generator)
    by_distance = by_depth = 0.0
    for one in batch:
        n, x = len(one.states), one.states @ projection
        for i in range(n):
            by_depth += abs(float(x[i] @ x[i]) - one.gold.depths[i]) / n / len(batch)
            for j in range(n):
                d = float((x[i] - x[j]) @ (x[i] - x[j]))
                by_distance += abs(d - one.gold.distances[i, j]) / n**2 / len(batch)
        found = predicted(one.states, projection, "distance")
        assert found == pytest.approx(torch.cdist(x[None], x[None])[0].numpy() ** 2, abs=1e-4)
    assert float(loss(projection, batch, "distance")) == pytest.approx(by_distance, rel=1e-5)
    assert float(loss(projection, batch, "depth")) == pytest.approx(by_depth, rel=1e-5)
    assert squared_distances(torch.ones(1, 3, 2)).eq(0).all()


def embedded(heads, width=12, rotation=None):
    """States whose squared distances are path lengths: a unit step of its own for each arc.

    Pythagoras: a path of n arcs takes n steps at right angles. The squared norms are depths.
    """
    states = torch.zeros(len(heads), width)
    for word in range(len(heads)):
        above = word
        while heads[above] != ROOT:
            states[word, above] = 1
            above = heads[above]
    return states if rotation is None else states @ rotation


@pytest.fixture(scope="module")
def perfect():
    generator = torch.Generator().manual_seed(3)
    rotation = torch.linalg.qr(torch.randn(12, 12, generator=generator))[0]
    random = Random(4)

    def some(n):
        trees = [random_tree(random.randrange(5, 13), random.random) for _ in range(n)]
        return [sentence(heads, 10 * embedded(heads, rotation=rotation)) for heads in trees]

    return {"tr": some(200), "va": some(30), "te": some(30)}


def test_a_probe_finds_trees_that_the_states_hold(perfect):
    """The states are scaled and rotated, and B has to undo that."""
    distances, depths = DistanceScores(), DepthScores()
    by_distance, by_depth = (fit(perfect, kind, 12, 1) for kind in ("distance", "depth"))
    for one in perfect["te"]:
        distances.add(one.gold, predicted(one.states, by_distance.projection, "distance"))
        depths.add(one.gold, predicted(one.states, by_depth.projection, "depth"))
    found = figures([distances], [depths], None).means
    assert (found["uuas"], found["root"]) == (100, 100)
    assert found["distance_spearman"] > 0.95
    assert found["depth_spearman"] > 0.95


def test_the_seed_decides_and_others_see_nothing(perfect):
    few = {split: of[:20] for split, of in perfect.items()}
    state = torch.random.get_rng_state()
    one, same, other = (fit(few, "depth", 2, seed) for seed in (5, 5, 6))
    assert torch.equal(one.projection, same.projection)
    assert not torch.equal(one.projection, other.projection)
    assert torch.equal(state, torch.random.get_rng_state())


def test_the_projection_that_is_best_on_dev_is_kept():
    """Training on words that are deeper than those of dev first helps on dev, and then hurts."""
    chain, star = (sentence([ROOT, *rest], 10 * torch.eye(4)) for rest in ((0, 1, 2), (0, 0, 0)))
    found = fit({"tr": [chain] * 200, "va": [star]}, "depth", 4, 1)
    assert float(loss(found.projection, [star], "depth")) == pytest.approx(found.loss, rel=1e-6)


def test_sentences_are_parted_by_chance_and_each_is_in_one_part():
    parts = parted(range(57), 1)
    assert {split: len(part) for split, part in parts.items()} == {"te": 5, "va": 5, "tr": 47}
    drawn = [*parts["te"], *parts["va"], *parts["tr"]]
    assert sorted(drawn) == [*range(57)] != drawn
    assert parted(range(57), 2) != parts == parted(range(57), 1)


def test_punctuation_is_in_no_edge_and_no_root():
    heads, upos = [1, ROOT, 1], ["PUNCT", "VERB", "NOUN"]
    gold = geometry(heads, upos, range(3))
    distances, depths = DistanceScores(), DepthScores()
    distances.add(gold, np.array([[0, 9, 0], [9, 0, 9], [0, 9, 0.0]]))
    depths.add(gold, np.array([0.0, 1, 2]))
    assert (distances.edges, depths.roots) == ([(1, 1)], [True])
    assert (distances.spearman, depths.spearman) == (None, None)  # needs 5 to 50 words
    only = geometry([1, ROOT], ["PUNCT", "PUNCT"], range(2))
    distances.add(only, np.zeros((2, 2)))
    assert distances.edges == [(1, 1)]


@pytest.mark.parametrize(("upos", "words"), [("PUNCT", [0, 1]), ("VERB", [0])])
def test_a_root_that_cannot_be_found_is_not_missed(upos, words):
    """Such a root is punctuation, or a later word of a multiword token, which has no pieces."""
    depths = DepthScores()
    depths.add(geometry([1, ROOT], ["NOUN", upos], words), np.arange(len(words), dtype=float))
    assert depths.roots == []


def test_the_standard_error_is_that_of_the_mean_over_seeds():
    """The first seed alone may find no root at all, and would then seem certain."""
    of_seeds = [DepthScores([False] * 8), DepthScores([True] * 4 + [False] * 4)]
    edges = [DistanceScores([(0, 2), (0, 2)]), DistanceScores([(2, 2), (0, 2)])]
    for i, j in ((0, 1), (1, 0)):
        found = figures([edges[i], edges[j]], [of_seeds[i], of_seeds[j]], None)
        assert found.means["root"] == 25
        assert found.errors["root"] == pytest.approx(100 * (0.25 * 0.75 / 8) ** 0.5)
        assert found.errors["uuas"] == pytest.approx((0 + edges[1].standard_error) / 2)


def test_correlations_are_averaged_by_length_first():
    scores = DepthScores()
    six = [ROOT, 0, 1, 2, 3, 4]
    for heads, sign in ((six[:5], 1), (six, 1), (six, 1), (six, -1), ([ROOT, 0], -1)):
        gold = geometry(heads, ["X"] * len(heads), range(len(heads)))
        scores.add(gold, sign * gold.depths)
    assert scores.spearman == pytest.approx((1 + (1 + 1 - 1) / 3) / 2)


def test_a_word_left_out_is_still_on_the_path():
    gold = geometry([ROOT, 0, 1], ["X"] * 3, [0, 2])
    assert gold.distances.tolist() == [[0, 2], [2, 0]]
    assert gold.depths.tolist() == [0, 2]


def test_a_word_is_the_mean_of_its_pieces():
    run = opened()
    record = RECORDS[0]
    ((_, side),) = run.batches([record])
    states = run.model.encode(side).states[0]
    found = word_states(states, [-1, 4, 4], [4])
    assert torch.allclose(found, states[1:3].mean(0, keepdim=True))
