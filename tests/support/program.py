"""The program as a user runs it, and the folder of real data."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
DATA = Path(os.environ.get("SYNMT_DATA", ROOT.parent / "shared" / "data"))
# Tests run on the CPU even where there is a GPU; `make test-gpu` runs those that are marked gpu.
HAS_GPU = os.environ.get("SYNMT_TEST_GPU", "") == "1"
ENVIRONMENT = {
    **({} if HAS_GPU else {"CUDA_VISIBLE_DEVICES": ""}),
    "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    "OMP_NUM_THREADS": "1",
    "TORCHINDUCTOR_CACHE_DIR": os.sep,  # a folder that exists, so that torch makes none
}


def shell(script, folder, timeout=None, first=None):
    """Runs lines of shell in a folder, as a user would; `synmt` is the installed program.

    first: a folder to search for programs before all others
    """
    path = ENVIRONMENT["PATH"] if first is None else f"{first}:{ENVIRONMENT['PATH']}"
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=folder,
        env={**os.environ, **ENVIRONMENT, "PATH": path},
        capture_output=True,
        timeout=timeout,
        check=False,
    )


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
