"""`synmt map`: a filter over the processes of this machine or the CPUs of a cluster."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Annotated

import typer

from synmt_cli import console, pool
from synmt_cli.commands.manual import Manual
from synmt_cli.errors import UsageError, printable, quoted

FILTERS = (
    "parse",
    "featurize",
    "linearize",
    "delinearize",
    "translate",
    "vocab encode",
    "vocab decode",
)

MANUAL = Manual(
    input="As the filter's.",
    output="As the filter's, byte for byte.",
    memory=f"As the filter's with -j N. With --ray at most {pool.IN_FLIGHT} N + 2 chunks, and "
    "here as on each worker the models once.",
    examples=(
        "synmt map -j 2 -- parse -m en.udpipe test.en > test.parsed.conllu",
        "synmt map -j 2 --chunk 4 -- featurize --spm spm.model --tgt test.de test.en.conllu"
        " | head -1",
        "synmt map -- vocab encode -m spm.model test.en -o test.pieces.en",
    ),
    see_also=("parse", "featurize", "translate"),
)


def map(
    command: Annotated[
        list[str],
        typer.Argument(
            metavar="COMMAND", help=f"Behind --, with all its own: {', '.join(FILTERS)}."
        ),
    ],
    ray: Annotated[
        str,
        typer.Option(
            "--ray",
            metavar="ADDRESS",
            help="A Ray cluster instead of this machine: HOST:PORT, or auto for the one here.",
        ),
    ] = "",
    jobs: Annotated[
        int,
        typer.Option(
            "-j", "--jobs", metavar="N", min=0, help="Workers in all; 0 uses every core there is."
        ),
    ] = 0,
    chunk: Annotated[
        int,
        typer.Option(
            "--chunk",
            metavar="N",
            min=0,
            help="Pieces of work that travel together, at most; 0 leaves it to the filter.",
        ),
    ] = 0,
) -> None:
    """Run a filter over many processes: the same bytes as alone, in the order of the input.

    Everything behind -- is a command of synmt with its own options and files, which are read
    and written here; its messages and exit status are its own. Only what it does with each
    piece of work is done by others. A worker that is lost costs nothing but time: its chunk is
    done again, by another. A chunk that costs three workers ends the run (74), which names its
    lines.

    Without --ray the workers are processes of this machine, as with the filter's own -j; they
    are not replaced, the others do their work. With --ray they are actors of a Ray cluster, one
    for each CPU, or N on all machines together, replaced on any machine that has room. A machine
    is ready when `ray start --address HOST:PORT` has run there, in an environment with synmt and
    Ray; this one must be a part of the cluster too. Each needs the models (vocabularies, run
    directories) under the same path: before it works a worker compares its files, its synmt and
    its Python with those here, and one that differs ends the run (78), naming the machine.
    translate is done on CPUs, one thread a worker unless its --threads says otherwise.

    A piece of work is a line of parse, delinearize and vocab, some 64 KiB of trees of featurize
    and linearize, and a part of a window of translate. A chunk goes out with what has arrived,
    so slow input is not held back. Small chunks share work better, large ones travel less: with
    --ray it is four times the one of -j.
    """
    from synmt_cli import cli

    name = _name(command)
    arguments = command[len(name.split()) :]
    inner = cli.load(name)
    with contextlib.ExitStack() as stack:
        context = stack.enter_context(inner.make_context(f"synmt {name}", arguments))
        source = context.get_parameter_source("jobs")
        if source is not None and source.name != "DEFAULT":
            raise UsageError(f"-j is given to {name}: give it to map")
        context.params["jobs"] = jobs
        executor = stack.enter_context(_executor(ray, chunk))
        stack.enter_context(pool.executing(executor))
        console.command = f"synmt {name}"
        inner.invoke(context)


def _name(command: list[str]) -> str:
    """The filter that is asked for. Raises UsageError."""
    for n in (1, 2):
        if (name := " ".join(command[:n])) in FILTERS:
            return name
    known = ", ".join(FILTERS)
    raise UsageError(f"map cannot run {quoted(printable(command[0]))}; it can run {known}")


@contextlib.contextmanager
def _executor(ray: str, chunk: int) -> Iterator[pool.Executor]:
    if not ray:
        yield pool.Local(chunk)
        return
    from synmt_cli.pool.cluster import Cluster
    from synmt_cli.pool.connection import connected

    with connected(ray) as module, Cluster(module, chunk, console.warn) as cluster:
        yield cluster
