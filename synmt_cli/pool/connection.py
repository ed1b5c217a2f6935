"""The connection to a Ray cluster, or the reason why there is none, in bounded time."""

import contextlib
import io
import logging
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from synmt_cli import signals
from synmt_cli.errors import ConfigError, SynmtError, Unavailable, UsageError, reason

PATIENCE = 20.0  # seconds within which a cluster must answer
_ADDRESS = re.compile(r"(?:\[[0-9a-fA-F:.]+\]|[^\s:/\[\]]+):[0-9]{1,5}")
_ATTEMPT = "import ray, sys; ray.init(address=sys.argv[1], log_to_driver=False, logging_level=50)"
_ERROR = re.compile(r"^[A-Za-z_.]+(?:Error|Exception): .*\Z", re.MULTILINE | re.DOTALL)
_NO_MODULES = "/"  # a folder in which nobody plants modules
_ADVICE = "start one by ray start --head, and join it on each machine, this one too"


@contextlib.contextmanager
def connected(address: str) -> Iterator[Any]:
    """Yields the module ray, connected to `auto` or HOST:PORT until the block ends.

    Raises Unavailable if Ray is missing or no cluster answers; UsageError, ConfigError.
    """
    if address != "auto" and not _ADDRESS.fullmatch(address):
        raise UsageError(f"--ray {address}: expected auto or HOST:PORT")
    try:
        import ray
    except ImportError as error:
        advice = "pip install 'synmt-cli[ray]' on every machine"
        raise Unavailable(f"--ray needs Ray ({error}): {advice}") from None
    _reach(address)
    # Ray prints messages about lost workers to stdout, whatever its settings.
    with contextlib.redirect_stdout(_Nowhere()):
        # Ray has every worker look for modules in the current folder.
        with contextlib.chdir(_NO_MODULES):
            ray.init(address=address, log_to_driver=False, logging_level=logging.CRITICAL)
        signals.install()  # Ray has replaced the handler of SIGTERM
        try:
            yield ray
        finally:
            ray.shutdown()


def visit(address: str) -> None:
    """Raises OSError, OverflowError or UnicodeError if nobody listens at HOST:PORT."""
    host, _, port = address.rpartition(":")
    socket.create_connection((host.strip("[]"), int(port)), timeout=5).close()


class _Nowhere(io.TextIOBase):
    """A text stream that discards what is written."""

    def write(self, text: str) -> int:
        return len(text)


def _reach(address: str) -> None:
    """Raises Unavailable or ConfigError unless a cluster accepts this process.

    Another process tries first, because Ray tries for minutes, ignoring signals.
    """
    name = "on this machine" if address == "auto" else f"at {address}"
    if address != "auto":
        try:
            visit(address)
        except (OSError, OverflowError, UnicodeError) as error:
            problem = f"no Ray cluster {name}: {reason(error)}"
            raise Unavailable(f"{problem} ({_ADVICE})") from None
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-c", _ATTEMPT, address],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            cwd=_NO_MODULES,
            timeout=PATIENCE,
            check=False,
        )
    except subprocess.TimeoutExpired:
        problem = f"no Ray cluster answers {name} within {PATIENCE:.0f} s"
        raise Unavailable(f"{problem} ({_ADVICE})") from None
    if done.returncode:
        raise refusal(done.stderr.decode("utf-8", "replace"), name)


def refusal(log: str, name: str) -> SynmtError:
    """The error for what Ray wrote to stderr: its last exception, in one line."""
    exception = _ERROR.search(log)
    problem = " ".join((exception[0] if exception else log).split())[:300]
    if "ersion mismatch" in problem:
        return ConfigError(f"the Ray cluster {name} is not of this version: {problem}")
    return Unavailable(f"no Ray cluster {name}: {problem} ({_ADVICE})")
