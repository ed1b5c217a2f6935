"""An order to a `Forked`: run the program with these arguments and streams. Loads little."""

import json
import socket


def send(address, arguments, folder, environment, streams, signals=(), timeout=None):
    """Waits for the command. Returns its exit status, negative for a signal as in subprocess."""
    body = {"arguments": arguments, "cwd": folder, "environment": environment, "signals": signals}
    data = json.dumps(body).encode()
    with socket.socket(socket.AF_UNIX) as server:
        server.settimeout(timeout)
        server.connect(address)
        server.sendall(len(data).to_bytes(4, "big"))
        socket.send_fds(server, [data], streams)
        return int.from_bytes(server.recv(4, socket.MSG_WAITALL), "big", signed=True)
