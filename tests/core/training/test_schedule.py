"""The learning rate against the paper's formula."""

import pytest

from synmt_cli.core.training.schedule import inverse_square_root


@pytest.mark.parametrize("step", [1, 10, 4000, 4001, 100_000])
def test_it_is_the_papers_formula_up_to_the_first_rate(step):
    warmup, d_model = 4000, 512
    paper = d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)  # Vaswani et al., eq. 3
    peak = d_model**-0.5 * warmup**-0.5
    assert inverse_square_root(step, peak, warmup, initial=0.0) == pytest.approx(paper)


def test_it_begins_at_the_first_rate_and_meets_the_peak():
    assert inverse_square_root(0, 1.0, 10, 0.5) == 0.5
    assert inverse_square_root(10, 1.0, 10, 0.5) == 1.0
    assert inverse_square_root(1, 1.0, 0) == 1.0
