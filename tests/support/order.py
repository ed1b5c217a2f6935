"""An order to a `Forked`: run the program with these arguments and streams. Loads little."""

import json
import os
import socket

# Names of the two processes of a `Forked`, and of their sockets
WITHOUT_TORCH, WITH_TORCH = "without-torch", "with-torch"
COMMANDS_WITH_TORCH = {
    *("analyze", "average", "check", "export", "init"),
    *("likelihood", "train", "translate", "tune", "variants"),
}


def send(forked, arguments, folder, environment, streams, signals=(), timeout=None):
    """Waits for the command. Returns its exit status, negative for a signal as in subprocess.

    forked: the folder of the `Forked`
    folder: where the command runs
    """
    body = {"arguments": arguments, "cwd": folder, "environment": environment, "signals": signals}
    data = json.dumps(body).encode()
    name = WITH_TORCH if COMMANDS_WITH_TORCH.intersection(arguments) else WITHOUT_TORCH
    with socket.socket(socket.AF_UNIX) as server:
        server.settimeout(timeout)
        server.connect(os.path.join(forked, name))
        server.sendall(len(data).to_bytes(4, "big"))
        socket.send_fds(server, [data], streams)
        return int.from_bytes(server.recv(4, socket.MSG_WAITALL), "big", signed=True)
