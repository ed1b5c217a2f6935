"""A process that runs the program in forks of itself, without loading torch each time.

`Forked` starts one process that has loaded what commands need and has computed nothing. Each
command runs in a fork of it, from `main` to its own exit status, with standard streams that are
files, as for a user but without the second in which Python loads. Signals can be
sent to it: `signals=[(0.5, signal.SIGKILL)]` kills it after half a second.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from support.program import ENVIRONMENT

SERVER = """
import importlib, json, os, sys, threading
for name in sys.argv[1:]:
    importlib.import_module(name)
from synmt_cli.__main__ import main
for line in sys.stdin:
    order = json.loads(line)
    child = os.fork()
    if child == 0:
        os.chdir(order["cwd"])
        for number, name in enumerate(("stdin", "stdout", "stderr")):
            how = os.O_RDWR if number else os.O_RDONLY
            os.dup2(os.open(os.path.join(order["streams"], name), how), number)
        sys.argv = ["synmt", *order["arguments"]]
        main()
    timers = [threading.Timer(when, os.kill, (child, n)) for when, n in order["signals"]]
    for timer in timers:
        timer.start()
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    for timer in timers:  # its number is its own until it is waited for: no other can be hit
        timer.cancel()
        timer.join()
    status = os.waitpid(child, 0)[1]
    print(os.waitstatus_to_exitcode(status), flush=True)
"""
LOADED = (
    "torch",
    "torch._dynamo",
    "sentencepiece",
    "typer._adapters",
    "synmt_cli.commands.train",
    "synmt_cli.core.decoding.ensemble",
)


class Forked:
    """`forked("translate", ...)` is like the fixture `run`; leaving the context ends it."""

    def __enter__(self):
        self._streams = tempfile.TemporaryDirectory()
        self._server = subprocess.Popen(
            [sys.executable, "-c", SERVER, *LOADED],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **ENVIRONMENT},
        )
        return self

    def __exit__(self, *error):
        self._server.communicate()  # the end of its input ends it
        self._streams.cleanup()

    def __call__(self, *arguments, stdin=b"", cwd=".", signals=()):
        folder = Path(self._streams.name)
        for name, content in (("stdin", stdin), ("stdout", b""), ("stderr", b"")):
            (folder / name).write_bytes(content)
        arguments = [*map(str, arguments)]
        order = {"arguments": arguments, "cwd": str(cwd), "streams": str(folder)}
        order["signals"] = [(when, int(number)) for when, number in signals]
        self._server.stdin.write(json.dumps(order).encode() + b"\n")
        self._server.stdin.flush()
        status = int(self._server.stdout.readline())
        out, messages = ((folder / name).read_bytes() for name in ("stdout", "stderr"))
        return subprocess.CompletedProcess(arguments, status, out, messages)
