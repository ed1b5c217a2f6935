"""The program in the process of the tests: for hundreds of runs that fail or end soon.

A run takes some hundredths of a second less than in a fork (support/forked.py), but what it
leaves in the process stays there: signals, and how a process ends, are tested in forks.
"""

from __future__ import annotations

import os
import subprocess

from synmt_cli import cli, console
from synmt_cli.io import memory


class InProcess:
    """`call("translate", ...)` is like the fixture `run`. capture: the fixture capfdbinary."""

    def __init__(self, capture):
        self._capture = capture

    def __call__(self, *arguments, stdin=b"", signals=()):
        assert not signals
        arguments = [*map(str, arguments)]
        self._capture.readouterr()  # drop what was written before
        console.set_level(console.NORMAL)  # as in a process of its own
        before = os.dup(0)
        with memory.unnamed_file() as file:
            file.write(stdin)
            file.seek(0)
            os.dup2(file.fileno(), 0)
            try:
                status = cli._run(arguments)
            finally:
                os.dup2(before, 0)
                os.close(before)
        return subprocess.CompletedProcess(arguments, status, *self._capture.readouterr())
