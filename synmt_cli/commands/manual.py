"""What a command's help and man page say beyond its options, and the options all share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import typer

from synmt_cli import console


@dataclass(frozen=True)
class Manual:
    """The parts of a man page that no option table holds.

    input, output: what the streams carry, each with one real line. memory: the bound that
    the command promises. examples: shell lines that run (tests run them in a folder with
    the files that tests/conftest.py makes). see_also: other commands.
    """

    input: str
    output: str
    examples: tuple[str, ...]
    memory: str = ""
    see_also: tuple[str, ...] = ()


def _quiet(value: bool) -> None:
    if value:
        console.set_level(console.QUIET)


def _verbose(value: bool) -> None:
    if value:
        console.set_level(console.VERBOSE)


Files = Annotated[
    list[str] | None, typer.Argument(metavar="FILE", help="Input files; none or - is stdin.")
]
Out = Annotated[
    str,
    typer.Option(
        "-o", "--output", metavar="FILE", help="Write here, whole or not at all; - is stdout."
    ),
]
Jobs = Annotated[
    int, typer.Option("-j", "--jobs", metavar="N", min=0, help="Processes; 0 uses every core.")
]
LineBuffered = Annotated[
    bool, typer.Option("--line-buffered", help="Write each record as soon as it is ready.")
]
Strict = Annotated[bool, typer.Option("--strict", help="End at the first failed segment (65).")]
Seed = Annotated[int, typer.Option("--seed", metavar="N", help="Seed of every random choice.")]
Kind = Annotated[
    Literal["auto", "text", "jsonl", "conllu"],
    typer.Option("--from", help="What the input is; auto looks at the first record."),
]
RunParser = Annotated[
    str, typer.Option("--parser", metavar="MODEL", help="Parser for text instead of the run's own.")
]
Checkpoint = Annotated[
    str, typer.Option("--checkpoint", metavar="NAME", help="best, last or step-N.")
]
Device = Annotated[str, typer.Option("--device", metavar="NAME", help="auto, cpu, cuda, cuda:1.")]
Threads = Annotated[
    int, typer.Option("--threads", metavar="N", min=0, help="Threads; 0 leaves it to torch.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show errors only.", callback=_quiet)]
Verbose = Annotated[
    bool, typer.Option("--verbose", "-v", help="Show more detail.", callback=_verbose)
]
