"""Student's t against SciPy."""

import math

import pytest
from scipy import stats

from synmt_cli.core.evaluation.statistics.student import incomplete_beta, quantile, two_sided_p

DEGREES = [0.7, 1, 2, 3.4, 4, 9.9, 30, 1e3, 1e6, 1e9, math.inf]


@pytest.mark.parametrize("df", DEGREES)
def test_tails_and_quantiles_are_scipys(df):
    for t in (0.0, 1e-9, 0.3, 1, 1.96, 3, 12, 80):
        assert two_sided_p(t, df) == pytest.approx(2 * stats.t.sf(t, df), rel=1e-5, abs=1e-300)
        assert two_sided_p(-t, df) == two_sided_p(t, df)
    assert quantile(0.95, df) == pytest.approx(stats.t.ppf(0.975, df), rel=1e-6)


def test_incomplete_beta_is_scipys():
    for a in (0.5, 2, 40.5):
        for b in (0.5, 3.2):
            for x in (0, 1e-6, 0.1, 0.5, 0.9, 1):
                expected = stats.beta.cdf(x, a, b)
                assert incomplete_beta(a, b, x) == pytest.approx(expected, rel=1e-9, abs=1e-12)
