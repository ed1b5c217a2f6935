"""The vectorised formulas against sacreBLEU's own, row by row."""

import numpy as np
import pytest
from sacrebleu import BLEU, CHRF, TER

from synmt_cli.core.evaluation.metrics import formulas


def random_rows(seed, n=500):
    """BLEU statistics of texts of every kind: empty, shorter than 4 words, without a match."""
    random = np.random.default_rng(seed)
    lengths = random.integers(0, 30, size=(n, 2)) * random.integers(0, 2, size=(n, 1))
    totals = np.maximum(lengths[:, :1] - np.arange(4), 0)
    matches = np.floor(totals * random.random((n, 4)) * random.integers(0, 2, size=(n, 4)))
    return np.hstack([lengths, matches, totals]).astype(float)


@pytest.mark.parametrize("effective_order", [False, True])
def test_bleu_is_sacrebleus(effective_order):
    rows = random_rows(1)
    metric = BLEU(effective_order=effective_order)
    expected = [metric._compute_score_from_stats(row.tolist()).score for row in rows]
    np.testing.assert_allclose(formulas.bleu(rows, effective_order), expected, rtol=1e-12)
    assert min(expected) == 0 < max(expected)


@pytest.mark.parametrize(("word_order", "beta", "eps"), [(0, 2, False), (1, 3, True), (2, 2, 0)])
def test_chrf_is_sacrebleus(word_order, beta, eps):
    random = np.random.default_rng(2)
    shape = (500, 6 + word_order)
    sizes = random.integers(0, 9, size=(*shape, 2)) * random.integers(0, 2, size=(500, 1, 1))
    matches = np.floor(sizes.min(axis=2) * random.random(shape))
    rows = np.concatenate([sizes, matches[..., None]], axis=2).reshape(500, -1).astype(float)
    metric = CHRF(word_order=word_order, beta=beta, eps_smoothing=eps)
    expected = [metric._compute_score_from_stats(row.tolist()).score for row in rows]
    np.testing.assert_allclose(formulas.chrf(rows, beta, eps), expected, rtol=1e-12, atol=1e-12)


def test_ter_is_sacrebleus():
    rows = np.array([[0, 0], [3, 0], [0, 7], [3, 7], [9, 7], [2, 3.5]], dtype=float)
    expected = [TER()._compute_score_from_stats(row.tolist()).score for row in rows]
    assert formulas.ter(rows).tolist() == expected


def test_mean_of_nothing_is_zero():
    assert formulas.mean(np.array([[1.5, 2.0], [0.0, 0.0]])).tolist() == [0.75, 0.0]
