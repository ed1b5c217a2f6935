"""The process that a `Forked` starts: it loads modules and then runs the program in its forks."""

from __future__ import annotations

import contextlib
import gc
import importlib
import marshal
import os
import selectors
import socket
import sys
import time


def serve(address, names):
    """Loads the modules and takes orders (order.py) at the address for ever.

    Where torch is not among them, modules that need it are left out.
    """
    server = socket.socket(socket.AF_UNIX)
    server.bind(address + ".new")
    server.listen(64)
    os.rename(address + ".new", address)  # whoever finds it can connect
    _load(names)
    _load_commands()
    gc.collect()
    gc.freeze()  # or the first collection in a fork would copy every page
    _Orders(server).take()


def _load(names):
    has_torch = "torch" in names
    if not has_torch:
        sys.modules["torch"] = None  # its import fails
    for name in names:
        try:
            importlib.import_module(name)
        except ImportError:
            if has_torch:
                raise
    if not has_torch:
        del sys.modules["torch"]


def _load_commands():
    """Builds the option parsers of all commands, which takes longer than many a command does."""
    from synmt_cli import cli

    for command in (cli.program(), *map(cli.load, cli.COMMANDS)):
        command.make_context(command.name, [], resilient_parsing=True)


class _Orders:
    def __init__(self, server):
        self._server = server
        self._watched = selectors.DefaultSelector()
        self._watched.register(server, selectors.EVENT_READ)
        self._signals = []  # (when, process, number), the next one first

    def take(self):
        while True:
            for key, _ in self._watched.select(self._send_signals()):
                if key.fileobj is self._server:
                    self._begin(self._server.accept()[0])
                else:
                    self._end(key.fileobj, *key.data)

    def _begin(self, client):
        """Reads an order and starts its command."""
        size = int.from_bytes(client.recv(4, socket.MSG_WAITALL), "big")
        body, streams, _, _ = socket.recv_fds(client, size, 3, socket.MSG_WAITALL)
        if body and len(body) < size:  # the system ends the first part where it likes
            body += client.recv(size - len(body), socket.MSG_WAITALL)
        if not size or len(body) < size:  # the client has ended
            return
        order = marshal.loads(body)
        process = os.fork()
        if process == 0:
            _run(order, streams)
        for stream in streams:
            os.close(stream)  # or a pipe would not end with the command
        now = time.monotonic()
        self._signals += [(now + after, process, number) for after, number in order["signals"]]
        self._signals.sort()
        self._watched.register(os.pidfd_open(process), selectors.EVENT_READ, (process, client))

    def _end(self, watched, process, client):
        """Sends the exit status to the client."""
        self._watched.unregister(watched)
        os.close(watched)
        # A process keeps its number until it is waited for: no signal can hit another one.
        self._signals = [one for one in self._signals if one[1] != process]
        status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        with client, contextlib.suppress(OSError):  # the client may have ended
            client.sendall(status.to_bytes(4, "big", signed=True))

    def _send_signals(self):
        """Sends the signals that are due. Returns the seconds until the next one, or None."""
        while self._signals:
            when, process, number = self._signals[0]
            if (wait := when - time.monotonic()) > 0:
                return wait
            os.kill(process, number)
            del self._signals[0]
        return None


def _run(order, streams):
    """Runs the program and ends the process, as for a user."""
    from synmt_cli.__main__ import main

    os.chdir(order["cwd"])
    os.environ.clear()
    os.environ.update(order["environment"])
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    os.closerange(3, 256)
    # The server's own streams still describe other files, as seekable or not. Like those of Python,
    # the new ones leave their descriptors open.
    sys.stdin = sys.__stdin__ = os.fdopen(0, closefd=False)
    sys.stdout = sys.__stdout__ = os.fdopen(1, "w", closefd=False)
    again = {"buffering": 1, "errors": "backslashreplace", "closefd": False}
    sys.stderr = sys.__stderr__ = os.fdopen(2, "w", **again)
    sys.argv = ["synmt", *order["arguments"]]
    main()
