"""An order to a `Forked`: run the program with these arguments and streams.

It loads little, since a new process of Python sends it for each command in a line of shell:
`_socket` and `marshal` are there at once, where `socket` and `json` take longer than the rest.
"""

import marshal
import os
import sys
from _socket import AF_UNIX, MSG_WAITALL, SCM_RIGHTS, SOL_SOCKET, socket

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
    order = {"arguments": arguments, "cwd": folder, "environment": environment, "signals": signals}
    data = marshal.dumps(order)
    numbers = b"".join(stream.to_bytes(4, sys.byteorder) for stream in streams)
    name = WITH_TORCH if COMMANDS_WITH_TORCH.intersection(arguments) else WITHOUT_TORCH
    server = socket(AF_UNIX)
    try:
        server.settimeout(timeout)
        server.connect(os.path.join(forked, name))
        server.sendall(len(data).to_bytes(4, "big"))
        n_sent = server.sendmsg([data], [(SOL_SOCKET, SCM_RIGHTS, numbers)])
        server.sendall(data[n_sent:])
        if len(answer := server.recv(4, MSG_WAITALL)) < 4:
            raise ConnectionError("the process that forks has ended")
        return int.from_bytes(answer, "big", signed=True)
    finally:
        server.close()
