"""Threads of torch wait for each other in short loops, unless a user asks for something else."""

import re

import pytest
from support.program import synmt


@pytest.mark.parametrize(
    ("given", "spins"),
    [({}, 1000), ({"GOMP_SPINCOUNT": "77"}, 77), ({"OMP_WAIT_POLICY": "passive"}, 0)],
)
def test_threads_do_not_wait_in_long_loops(given, spins):
    done = synmt("variants", env={**given, "OMP_DISPLAY_ENV": "verbose"})
    assert done.returncode == 0
    shown = re.search(rb"GOMP_SPINCOUNT = '(\d+)'", done.stderr)
    if shown is None:
        pytest.skip("torch has another OpenMP here")
    assert int(shown[1]) == spins
