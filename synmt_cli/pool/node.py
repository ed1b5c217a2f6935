"""A worker on a machine of a cluster: it checks the machine, makes the function, and works."""

import contextlib
import os
import platform
import re
from collections.abc import Callable, Sequence
from typing import Any

from synmt_cli import __version__
from synmt_cli.errors import ReadError
from synmt_cli.io.digests import size_and_sha256
from synmt_cli.pool.dispatch import Outcome, outcome_of

Facts = dict[str, tuple[int, str]]  # path: size in bytes, SHA-256


class Worker:
    """The class of the actors. It returns errors, so that they travel unchanged."""

    def __init__(self, folder: str) -> None:
        with contextlib.suppress(OSError):  # paths may be absolute
            os.chdir(folder)
        self._function: Callable[[Any], Any] | None = None

    def check(self, version: str, python: str, facts: Facts) -> tuple[str, str]:
        """The name of this node, and what is wrong with it, or ""."""
        import ray as module

        ray: Any = module
        id: str = ray.get_runtime_context().get_node_id()
        name = f"node {ray.util.get_node_ip_address()} ({id[:8]})"
        return name, problem(version, python, facts)

    def load(self, make: Callable[[], Callable[[Any], Any]]) -> BaseException | None:
        """Makes the function. Returns the error if that fails."""
        try:
            self._function = make()
        except Exception as error:
            return error
        return None

    def run(self, chunk: list[Any]) -> Outcome:
        """The outcome of a chunk."""
        assert self._function is not None
        return outcome_of(self._function, chunk)


def problem(version: str, python: str, facts: Facts) -> str:
    """Why this machine cannot work for one with this synmt, Python and files, or ""."""
    if __version__ != version:
        return f"has synmt {__version__}, not {version}"
    if platform.python_version() != python:
        return f"has Python {platform.python_version()}, not {python}"
    for path, (size, digest) in facts.items():
        try:
            own = facts_of([path])[path]
        except ReadError as error:
            return f"{error}; every node needs it under that path"
        if own != (size, digest):
            return f"has another {path}: SHA-256 {own[1][:16]}…, not {digest[:16]}…"
    return ""


def unloadable(message: str) -> str:
    """The node that cannot load this module, and why, from Ray's message about an actor; or ""."""
    if "error raised in its creation task" not in message:
        return ""
    where = re.search(r"\bip=([^,)\s]+)", message)
    *_, reason = message.rstrip().split("\n")
    name = f"node {where[1]}" if where else "a node"
    return f"{name} cannot load synmt: {reason} (install it there as it is here)"


def facts_of(paths: Sequence[str]) -> Facts:
    """Size and digest of files. Raises ReadError."""
    return {path: size_and_sha256(path) for path in paths}
