"""`synmt average`: several checkpoints, one model."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from synmt_cli import console
from synmt_cli.commands import Manual, completion, options
from synmt_cli.commands.options import argument, option
from synmt_cli.errors import UsageError, counted

if TYPE_CHECKING:
    from synmt_cli.core.run.averaging import Member
    from synmt_cli.core.run.directory import Run

MANUAL = Manual(
    input="Checkpoints of a run directory: `runs/pascal/checkpoints/step-3000`.",
    output="A run directory, which translate -m takes like any other. It has no checkpoints.",
    memory="The model twice, whatever the number of checkpoints.",
    examples=(
        "synmt average -m runs/pascal --last 2 -o runs/mean",
        "synmt average -m runs/pascal step-2 step-3 -o runs/two",
        "synmt average -m runs/base -o runs/base.mean && synmt translate -m runs/base.mean test.en"
        " > mean.de",
    ),
    see_also=("train", "translate", "info", "check"),
)


def average(
    model: options.RunModel,
    output: Annotated[str, option("-o, --output RUN", "New run directory.")],
    checkpoints: Annotated[
        list[str] | None,
        argument(
            "CHECKPOINT",
            "best, last, step-N, or a folder of another run; none means all checkpoints of RUN.",
            autocompletion=completion.checkpoint,
        ),
    ] = None,
    n_last: Annotated[
        int | None, option("--last N", "Average the last N checkpoints.", min=1)
    ] = None,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Average several checkpoints into one model: the mean of their weights.

    A model averaged over the end of its training usually translates better than its last
    checkpoint (Vaswani et al. 2017, section 6.1: the last 5, or 20 of a big model). train keeps
    the last 2 unless training.keep says more; it is an error if there are fewer than --last. While
    a model still changes fast, the mean may be worse than its last checkpoint: a warning says so
    where perplexity on dev fell by a quarter or more between the first and the last of them.

    The new run has the configuration, vocabularies and labels of RUN, and the mean as its model.
    Checkpoints may also come from other runs, if model, variant, vocabulary and labels are the same
    (78 if not). Each checkpoint's digest is checked first; a damaged one ends the command (65). The
    folder of -o must not exist, and appears when it is complete.
    """
    if checkpoints and n_last is not None:
        raise UsageError("name checkpoints or give --last, not both")

    options.refuse_no_folder("--output", output)

    from synmt_cli.core.run import averaging
    from synmt_cli.core.run.directory import Run

    run = Run(Path(model))
    run.tables()  # first of all: is it a run?
    chosen = averaging.members(run, checkpoints or averaging.last(run, n_last))
    doubt = _doubt(run, chosen)
    averaging.average(run, chosen, Path(output))
    names = ", ".join(one.name for one in chosen)
    n = counted(len(chosen), "checkpoint")
    console.info(f"averaged {n} ({names}) into {output}")
    if doubt:
        console.warn(f"{doubt}: their mean may translate worse than the last one")


def _doubt(run: Run, chosen: Sequence[Member]) -> str:
    """Why the mean may be a bad model; "" if it is not, or if checkpoints are of another run."""
    from synmt_cli.core.inspection.course import apart
    from synmt_cli.core.inspection.models import course_of

    own = os.path.realpath(run.folder)
    steps = [one.step for one in chosen if os.path.realpath(one.run.folder) == own]
    known = sorted(step for step in steps if step is not None)
    if len(known) < len(chosen):
        return ""
    return apart(course_of(run).points, known[0], known[-1])
