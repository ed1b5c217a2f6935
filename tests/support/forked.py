"""Processes that run the program in forks of themselves, without loading its modules each time.

`Forked` starts two processes (fork_server.py) that have loaded what commands need and have
computed nothing: one with torch, and one without it for the commands that do not load it, since a
small process forks in half the time. They listen on sockets for orders: arguments, folder,
environment, and three open files as standard streams. The command then runs from `main` to its own
exit status, as for a user but without the second or two in which Python and torch load.

Tests send orders directly, by `forked("translate", ...)`; lines of shell do so through `synmt`, a
small program in `forked.folder` that passes on its own arguments and streams.
"""

from __future__ import annotations

import importlib.util
import os
import pkgutil
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path

import synmt_cli
from support import order
from support.program import ENVIRONMENT

START = "import sys; from support.fork_server import serve; serve(sys.argv[1], sys.argv[2:])"
CLIENT = """#!{python} -IS
import os, sys
sys.path.insert(0, {tests!r})
from support import order
status = order.send({folder!r}, sys.argv[1:], os.getcwd(), dict(os.environ), (0, 1, 2))
if status < 0:
    os.kill(os.getpid(), -status)
os._exit(status)
"""
TESTS = str(Path(__file__).parents[1])
EXTRAS = ("jinja2", "matplotlib.figure", "matplotlib.backends.backend_svg")
MODULES = [
    *("sentencepiece", "sacrebleu", "typer._adapters"),
    *(one.name for one in pkgutil.walk_packages(synmt_cli.__path__, "synmt_cli.")),
    *(name for name in EXTRAS if importlib.util.find_spec(name.partition(".")[0])),
]
LOADED = {
    order.WITHOUT_TORCH: MODULES,
    order.WITH_TORCH: ["torch", "torch._dynamo", *MODULES],
}


class Forked:
    """`forked("translate", ...)` is like the fixture `run`; leaving the context ends it.

    `signals=[(0.5, signal.SIGKILL)]` are sent to the command, each after so many seconds.
    `forked.folder` holds a `synmt` for the search path of a shell.
    """

    def __enter__(self):
        with ExitStack() as stack:
            self.folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            for name, modules in LOADED.items():
                stack.enter_context(_started(self.folder / name, modules))
            self._stack = stack.pop_all()
        client = CLIENT.format(python=sys.executable, tests=TESTS, folder=str(self.folder))
        (self.folder / "synmt").write_text(client)
        (self.folder / "synmt").chmod(0o755)
        return self

    def __exit__(self, *error):
        self._stack.close()

    def __call__(self, *arguments, stdin=b"", cwd=".", signals=(), timeout=300):
        arguments = [*map(str, arguments)]
        environment = {**os.environ, **ENVIRONMENT}
        with (
            tempfile.TemporaryFile() as source,
            tempfile.TemporaryFile() as out,
            tempfile.TemporaryFile() as messages,
        ):
            source.write(stdin)
            source.seek(0)
            streams = [file.fileno() for file in (source, out, messages)]
            where, sent = os.path.abspath(cwd), [(when, int(number)) for when, number in signals]
            status = order.send(self.folder, arguments, where, environment, streams, sent, timeout)
            out.seek(0)
            messages.seek(0)
            return subprocess.CompletedProcess(arguments, status, out.read(), messages.read())


@contextmanager
def _started(address, modules):
    """A fork server, entered as soon as it can be reached: orders wait until it has loaded."""
    environment = {**os.environ, **ENVIRONMENT, "MPLCONFIGDIR": str(address.parent)}
    environment["PYTHONPATH"] = TESTS
    server = subprocess.Popen([sys.executable, "-c", START, address, *modules], env=environment)
    try:
        while not address.exists():
            assert server.poll() is None
            time.sleep(0.01)
        yield
    finally:
        server.kill()
        server.wait()
