"""The figures of `synmt train --dry-run`: what a training will take."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from synmt_cli import console, pool
from synmt_cli.commands import train_notes

if TYPE_CHECKING:
    from synmt_cli.core.run.config import Choice
    from synmt_cli.core.training.loop import Trainer
    from synmt_cli.core.training.session import Session

TRIAL = 5.0, 20  # seconds and updates at most that are timed
ALONE = 0.75  # of the processor's time: with less, another forecast would differ much


def show(session: Session, choice: Choice, folder: str) -> None:
    """Prints the figures of --dry-run. folder: that of a run, new or begun; "" without one."""
    from synmt_cli.core.distributed.ranks import Ranks
    from synmt_cli.core.run.directory import Run
    from synmt_cli.core.training.device.memory_estimate import estimate

    place = Run(Path(folder)) if folder else None
    session = train_notes.settled(session, choice, place)
    trainer = session.trainer(place, Ranks(), is_trial=True)
    length = train_notes.announce(session, trainer, is_new=not (place and place.steps()))
    figures = estimate(trainer.model, session.train, trainer.settings)
    memory = figures.pop("memory")
    for name, value in figures.items():
        typer.echo(f"{name}\t{value}")
    typer.echo(f"memory (about)\t{memory / 2**20:.0f} MiB")
    typer.echo(f"updates\t{length.updates}")
    typer.echo(f"passes over the data\t{train_notes.passes(length)}")
    typer.echo(f"preset\t{session.config.preset}")
    typer.echo(f"device\t{train_notes.machine(trainer)}")
    typer.echo(f"precision\t{trainer.settings.precision}")
    seconds, share = timed(trainer)
    typer.echo(f"seconds per update\t{seconds:.3g}")
    typer.echo(f"time without validations\t{forecast(seconds * length.updates, share)}")


def timed(trainer: Trainer) -> tuple[float, float]:
    """The seconds of an update, and the share of the processor's time that other work left to it.

    The share is 1 where it cannot be told: on a GPU, and with more threads than processors, which
    wait for each other.
    """
    import torch

    # With a processor for each thread, this one computes all the time, unless other work has it.
    begin, worked = time.perf_counter(), time.thread_time()
    seconds = trainer.seconds_of_update(*TRIAL)
    share = (time.thread_time() - worked) / (time.perf_counter() - begin)
    is_told = trainer.device.type == "cpu" and torch.get_num_threads() <= pool.n_processes(0)
    return seconds, share if is_told else 1.0


def forecast(seconds: float, share: float) -> str:
    """How long a training takes, also without other work if that makes a great difference.

    >>> forecast(7200, 0.95)
    '2.0 h'
    >>> forecast(7200, 0.5)
    '2.0 h (1.0 h without other work, which took 50% of the processor)'
    """
    now = console.duration(seconds)
    alone = console.duration(seconds * share)
    if share > ALONE or alone == now:
        return now
    return f"{now} ({alone} without other work, which took {1 - share:.0%} of the processor)"
