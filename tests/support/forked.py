"""A process that runs the program in forks of itself, without loading torch each time.

`Forked` starts one process that has loaded what commands need and has computed nothing. It
listens on a socket for orders: arguments, folder, environment, and three open files as standard
streams. A keeper forks from it for each order, and the command from the keeper, from `main` to its
own exit status, as for a user but without the second or two in which Python and torch load.

Tests order directly, `forked("translate", ...)`, and lines of shell through `synmt`, a small
program in `forked.folder` that hands on its own arguments and streams.
"""

from __future__ import annotations

import importlib.util
import os
import pkgutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import synmt_cli
from support import order
from support.program import ENVIRONMENT

SERVER = """
import importlib, json, os, socket, sys, threading

def command(order, streams):
    os.chdir(order["cwd"])
    os.environ.clear()
    os.environ.update(order["environment"])
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    os.closerange(3, 64)
    # The server's own know other files, what can be sought. Python closes none of them either.
    sys.stdin = sys.__stdin__ = open(0, closefd=False)
    sys.stdout = sys.__stdout__ = open(1, "w", closefd=False)
    again = {"buffering": 1, "errors": "backslashreplace", "closefd": False}
    sys.stderr = sys.__stderr__ = open(2, "w", **again)
    sys.argv = ["synmt", *order["arguments"]]
    main()

def keeper(client):
    size = int.from_bytes(client.recv(4, socket.MSG_WAITALL), "big")
    body, streams, _, _ = socket.recv_fds(client, size, 3, socket.MSG_WAITALL)
    order = json.loads(body)
    child = os.fork()
    if child == 0:
        command(order, streams)
    for stream in streams:
        os.close(stream)  # or a pipe would not end with the command
    timers = [threading.Timer(when, os.kill, (child, n)) for when, n in order["signals"]]
    for timer in timers:
        timer.start()
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    for timer in timers:  # its number is its own until it is waited for: no other can be hit
        timer.cancel()
        timer.join()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    client.sendall(status.to_bytes(4, "big", signed=True))

server = socket.socket(socket.AF_UNIX)
server.bind(sys.argv[1] + ".new")
server.listen(64)
os.rename(sys.argv[1] + ".new", sys.argv[1])  # who finds it can connect
for name in sys.argv[2:]:
    importlib.import_module(name)
from synmt_cli.__main__ import main
children = set()
while True:
    client, _ = server.accept()
    children.add(pid := os.fork())
    if pid == 0:
        server.close()
        keeper(client)
        os._exit(0)
    client.close()
    children -= {child for child in children if os.waitpid(child, os.WNOHANG)[0]}
"""
CLIENT = """#!{python} -IS
import os, sys
sys.path.insert(0, {tests!r})
from support import order
status = order.send({address!r}, sys.argv[1:], os.getcwd(), dict(os.environ), (0, 1, 2))
if status < 0:
    os.kill(os.getpid(), -status)
os._exit(status)
"""
LOADED = [
    *("torch", "torch._dynamo", "sentencepiece", "sacrebleu", "typer._adapters"),
    *(one.name for one in pkgutil.walk_packages(synmt_cli.__path__, "synmt_cli.")),
]
EXTRAS = ("jinja2", "matplotlib.figure", "matplotlib.backends.backend_svg")
LOADED += [name for name in EXTRAS if importlib.util.find_spec(name.partition(".")[0])]


class Forked:
    """`forked("translate", ...)` is like the fixture `run`; leaving the context ends it.

    `signals=[(0.5, signal.SIGKILL)]` are sent to the command, each after so many seconds.
    `forked.folder` holds a `synmt` for the search path of a shell.
    """

    def __enter__(self):
        self._temporary = tempfile.TemporaryDirectory()
        self.folder = Path(self._temporary.name)
        self._address = str(self.folder / "socket")
        self._server = subprocess.Popen(
            [sys.executable, "-c", SERVER, self._address, *LOADED],
            env={**os.environ, **ENVIRONMENT, "MPLCONFIGDIR": str(self.folder)},
        )
        while not os.path.exists(self._address):  # orders wait until it has loaded
            assert self._server.poll() is None
            time.sleep(0.01)
        tests = str(Path(__file__).parents[1])
        client = CLIENT.format(python=sys.executable, tests=tests, address=self._address)
        (self.folder / "synmt").write_text(client)
        (self.folder / "synmt").chmod(0o755)
        return self

    def __exit__(self, *error):
        self._server.kill()
        self._server.wait()
        self._temporary.cleanup()

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
            folder, sent = os.path.abspath(cwd), [(when, int(number)) for when, number in signals]
            status = order.send(
                self._address, arguments, folder, environment, streams, sent, timeout
            )
            out.seek(0)
            messages.seek(0)
            return subprocess.CompletedProcess(arguments, status, out.read(), messages.read())
