"""`synmt map`: a filter over the processes of this machine or the CPUs of a cluster."""

import contextlib
from collections.abc import Iterator
from typing import Annotated

from synmt_cli import console, pool
from synmt_cli.commands import Manual, options
from synmt_cli.commands.options import argument, option
from synmt_cli.errors import UsageError, quoted

# Not likelihood: how its work is cut changes the last digits.
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
    input="That of the command.",
    output="That of the command, byte for byte.",
    memory=f"That of the command with -j N. With --ray at most {pool.IN_FLIGHT} N + 2 chunks, and "
    "the models once here and once on each worker.",
    examples=(
        "synmt map -j 2 -- parse -m en.udpipe test.en > test.parsed.conllu",
        "synmt map -j 2 --chunk 4 -- featurize --spm spm.model --tgt test.de test.en.conllu"
        " | head -1",
        "synmt map -j 0 -- vocab encode -m spm.model test.en -o test.pieces.en",
    ),
    see_also=("parse", "featurize", "translate"),
)


def map(
    command: Annotated[
        list[str],
        argument("COMMAND", f"After --, with its options and files: {', '.join(FILTERS)}."),
    ],
    jobs: options.Jobs,
    ray: Annotated[
        str,
        option(
            "--ray ADDRESS",
            "Use a Ray cluster instead of this machine: HOST:PORT, or auto for the one here.",
        ),
    ] = "",
    chunk: Annotated[
        int,
        option(
            "--chunk N",
            "Units of work sent to a worker at once, at most; 0 leaves it to the command.",
            min=0,
        ),
    ] = 0,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Run a command over many processes, with the output that it gives alone, byte for byte.

    Everything after -- is a line-by-line command of synmt (not synmt filter) with its own options
    and files, which are read and written here; its messages and exit status are its own. Only the
    work on each unit of input is done by the workers. A lost worker costs only time: another one
    does its chunk again. A chunk that has lost three workers ends the run (74), which names its
    lines.

    Without --ray the workers are processes of this machine, as with the command's own -j; a lost
    one is not replaced, the others do its work. With --ray they are actors of a Ray cluster, one
    for each CPU, or N on all machines together; a lost one is replaced on any machine that has
    room. A machine is ready when `ray start --address HOST:PORT` has run there, in an environment
    with synmt and Ray; this one must be part of the cluster too. Each machine needs the models
    (vocabularies, run directories) under the same path: before a worker begins, it compares its
    files, its synmt and its Python with those here, and a difference ends the run (78), naming the
    machine. translate runs on CPUs (on a machine with a GPU give it --device cpu), with one thread
    per worker unless its --threads says otherwise. Whoever reaches the ports of a Ray cluster can
    run code on it as you: keep it in a network that you trust (docs/scaling.md).

    A unit of work is a line for parse, delinearize, vocab and featurize --from text, about 64 KiB
    of trees for featurize and linearize, and a part of a window for translate. A chunk is sent with
    what has arrived, so slow input is not held back. Small chunks spread the work better, large
    ones cost less transfer: the chunks of --ray are four times those of -j.
    """
    from synmt_cli import cli

    name = _name(command)
    arguments = command[len(name.split()) :]
    inner = cli.load(name)
    with contextlib.ExitStack() as stack:
        console.command, own = f"synmt {name}", console.command  # names it in usage errors
        context = stack.enter_context(inner.make_context(console.command, arguments))
        console.command = own
        if "jobs" in options.given(context):
            raise UsageError(f"-j is given to {name}: give it to map")
        context.params["jobs"] = jobs
        executor = stack.enter_context(_executor(ray, chunk))
        stack.enter_context(pool.executing(executor))
        console.command = f"synmt {name}"
        inner.invoke(context)
        console.command = own


def _name(command: list[str]) -> str:
    """The command that is asked for. Raises UsageError."""
    for n in (1, 2):
        if (name := " ".join(command[:n])) in FILTERS:
            return name
    is_group = any(name.startswith(f"{command[0]} ") for name in FILTERS)
    asked = " ".join(command[: 1 + is_group])
    raise UsageError(f"map cannot run {quoted(asked)}; it can run {', '.join(FILTERS)}")


@contextlib.contextmanager
def _executor(ray: str, chunk: int) -> Iterator[pool.Executor]:
    if not ray:
        yield pool.Local(chunk)
        return
    from synmt_cli.pool.cluster import Cluster
    from synmt_cli.pool.connection import connected

    with connected(ray) as module, Cluster(module, chunk, console.warn) as cluster:
        yield cluster
