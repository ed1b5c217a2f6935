"""The commands, a module for each: a function, whose signature is its options, and a MANUAL."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Manual:
    """The sections of a help and man page that a command's options do not give.

    input, output: the content of the streams, each with one real line. memory: the bound that
    the command promises. examples: shell lines that run; tests run them in a folder with the
    files that tests/conftest.py makes. see_also: other commands.
    """

    input: str
    output: str
    examples: tuple[str, ...]
    memory: str = ""
    see_also: tuple[str, ...] = ()
