"""Holm's correction and clusters, against their definitions."""

import random

import numpy as np
import pytest

from synmt_cli.core.evaluation.statistics.multiplicity import clusters, holm


@pytest.mark.parametrize("m", [1, 2, 7])
def test_holm_rejects_what_the_step_down_procedure_rejects(m):
    dice = random.Random(m)
    for _ in range(50):
        p_values = [dice.choice([dice.random(), dice.random() / 20, 0.02]) for _ in range(m)]
        corrected = holm(p_values)
        for level in (0.01, 0.05, 0.2):
            rejected = set()
            for rank, i in enumerate(sorted(range(m), key=p_values.__getitem__)):
                if p_values[i] * (m - rank) > level:
                    break
                rejected.add(i)
            assert {i for i in range(m) if corrected[i] <= level} == rejected
        assert all(a >= b for a, b in zip(corrected, p_values, strict=True))


def test_one_star_among_ten_nulls_is_as_rare_as_p_says():
    random_p = np.random.default_rng(1).random((2000, 10))
    assert np.mean(random_p.min(axis=1) < 0.05) > 0.35
    assert np.mean([min(holm(row)) < 0.05 for row in random_p.tolist()]) == pytest.approx(
        0.05, abs=0.015
    )


def test_a_cluster_begins_where_every_system_above_beats_every_one_below():
    beats = {(0, 2), (0, 3), (1, 3), (2, 3), (0, 1)}
    assert clusters([0, 1, 2, 3], lambda a, b: (a, b) in beats) == [[0], [1, 2], [3]]
    assert clusters([0, 1, 2], lambda a, b: (a, b) == (0, 2)) == [[0, 1, 2]]
    assert clusters([1, 0], lambda a, b: True) == [[1], [0]]
