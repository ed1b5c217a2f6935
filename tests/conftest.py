"""What every test can use: the program as a user runs it, and where real data lies."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DATA = Path(os.environ.get("SYNMT_DATA", ROOT.parent / "shared" / "data"))
ENVIRONMENT = {
    "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    "OMP_NUM_THREADS": "2",
}


def synmt(*arguments, stdin=b"", cwd=None, env=None, timeout=300):
    """Runs the installed program. Returns CompletedProcess with bytes."""
    return subprocess.run(
        [sys.executable, "-m", "synmt_cli", *map(str, arguments)],
        input=stdin,
        capture_output=True,
        cwd=cwd,
        env={**os.environ, **ENVIRONMENT, **(env or {})},
        timeout=timeout,
        check=False,
    )


@pytest.fixture
def run():
    """`run("featurize", "-", stdin=b"...")` gives stdout, stderr (bytes) and returncode."""
    return synmt


@pytest.fixture(scope="session")
def data():
    """The folder of real corpora; skips where it is absent."""
    if not DATA.is_dir():
        pytest.skip(f"no data at {DATA}; set SYNMT_DATA")
    return DATA


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request):
    """Each kind of device in turn; skips where there is none."""
    import torch

    if request.param == "cuda" and not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    return request.param
