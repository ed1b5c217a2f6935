"""The fast search for the largest numbers finds what torch finds."""

from __future__ import annotations

import pytest
import torch

from synmt_cli.core.decoding.top_k import top


@pytest.mark.parametrize("n", [5, 64, 700, 8000])
@pytest.mark.parametrize("k", [1, 5])
def test_equals_topk(n, k):
    x = torch.randn(3, 4, n)
    x[..., ::2] = -torch.inf  # forbidden tokens
    x[0, 0, :5] = torch.arange(5.0) + 9  # several in one group
    x[0, 1, -5:] = torch.arange(5.0) + 9  # in the rest, too few for a group
    torch.testing.assert_close(top(x, k), tuple(x.topk(k)), rtol=0, atol=0)
