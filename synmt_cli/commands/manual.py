"""The parts of a command's help and man page that its options do not give."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Manual:
    """Sections of a man page.

    input, output: the content of the streams, each with one real line. memory: the bound that
    the command promises. examples: shell lines that run; tests run them in a folder with the
    files that tests/conftest.py makes. see_also: other commands.
    """

    input: str
    output: str
    examples: tuple[str, ...]
    memory: str = ""
    see_also: tuple[str, ...] = ()
