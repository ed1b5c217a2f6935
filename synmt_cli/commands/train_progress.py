"""What `synmt train` shows and records while it trains."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import math
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from synmt_cli import console
from synmt_cli.errors import Stopped

if TYPE_CHECKING:
    from synmt_cli.core.run.directory import Run
    from synmt_cli.core.training.events import Event, Pulse, Validated
    from synmt_cli.core.training.length import Length
    from synmt_cli.core.training.loop import Trainer

METRICS = {"bleu": "BLEU", "accuracy": "accuracy"}
SOME, SETTLED = 20, 10.0  # updates and seconds after which the speed is known
COSTLY = 3, 1 / 3  # so many validations should not take more than this share of the time


class Watch:
    """Shows what training does. Says once when it will end, and once if validations take long."""

    def __init__(self, bar: console.Progress, length: Length, validate_every: int) -> None:
        self._bar, self._length, self._every = bar, length, validate_every
        self._first, self._begin, self._told = bar.done, time.monotonic(), False
        self._since: float | None = None  # when the current validation began
        self._n_validations, self._validating = 0, 0.0  # how many have ended, and their seconds

    def __call__(self, pulse: Pulse) -> None:
        """Moves the bar."""
        note = f"epoch {pulse.epoch}, {pulse.doing}"
        if not pulse.doing:
            rate = f"{pulse.tokens_per_second:,.0f} tokens/s"
            nll = "" if math.isnan(pulse.nll) else f"nll {pulse.nll:.3f}, "
            note = f"epoch {pulse.epoch}, {nll}{rate}"
            self._since = None
        elif self._since is None:
            self._since = time.monotonic()
        self._bar.advance(pulse.step - self._bar.done, note)
        is_known = pulse.step - self._first >= SOME and time.monotonic() - self._begin >= SETTLED
        if is_known and not self._told and not pulse.doing:
            self._told = True
            self._tell(pulse)

    def validated(self) -> None:
        """Notes that a validation is over."""
        now = time.monotonic()
        if self._since is not None:
            self._validating += now - self._since
        self._since = None
        self._n_validations += 1
        n, share = COSTLY
        taken = self._validating / max(now - self._begin, 1e-9)
        if self._n_validations == n and taken > share:
            console.info(
                f"validations have taken {taken:.0%} of the time: with training.validate_every "
                f"above {self._every} there are fewer, also in a resumed run"
            )

    def _tell(self, pulse: Pulse) -> None:
        seconds = (self._length.updates - pulse.step) * self._length.tokens
        seconds /= max(pulse.tokens_per_second, 1e-9)
        end = datetime.datetime.now() + datetime.timedelta(seconds=min(seconds, 1e9))
        console.info(
            f"{pulse.tokens_per_second:,.0f} tokens/s: all updates take about "
            f"{console.duration(seconds)}, until {end:%Y-%m-%d %H:%M}, without validations"
        )


def follow(
    trainer: Trainer, events: Iterable[Event], place: Run, tensorboard: str, length: Length
) -> None:
    """Shows and records every event. Raises Stopped where the run can be resumed.

    tensorboard: the folder of its events, or "".
    """
    from synmt_cli.core.training.events import Ended, Report, Restored, Saved, Validated
    from synmt_cli.core.training.saving.metrics import Metrics
    from synmt_cli.core.training.saving.tensorboard import EventFile

    step = trainer.state.step
    with contextlib.ExitStack() as stack:
        board = [contextlib.closing(EventFile(Path(tensorboard)))] if tensorboard else []
        also = [stack.enter_context(file).add for file in board]
        is_validated = trainer.state.validated == step
        metrics = Metrics(place, step, *also, is_validated=is_validated, guard=trainer.guard)
        bar = stack.enter_context(console.progress("training", length.updates, "steps", done=step))
        watch = trainer.watch = Watch(bar, length, trainer.settings.validate_every)
        for event in events:
            match event:
                case Report():
                    metrics.add({"event": "train", **dataclasses.asdict(event)})
                case Validated():
                    console.info(validation(event))
                    watch.validated()
                    fields = dataclasses.asdict(event)
                    known = {name: value for name, value in fields.items() if value is not None}
                    metrics.add({"event": "dev", **known})
                case Saved():
                    console.debug(f"saved step {event.step:,}")
                case Restored():
                    console.warn(
                        f"model.safetensors was missing: written again from step {event.step:,}"
                    )
                case Ended():
                    if not event.finished:
                        raise Stopped(
                            f"stopped at step {event.step:,} ({event.reason}) and saved; "
                            "the same command resumes"
                        )
                    how = event.reason
                    console.info(f"done at step {event.step:,} ({how}): {place.folder}")


def validation(event: Validated) -> str:
    """The line that shows a validation."""
    figures = f"perplexity {event.perplexity:.2f}"
    if event.words and event.arcs:
        figures += f" (words {event.words.perplexity:.2f}, arcs {event.arcs.perplexity:.2f})"
    if event.metric != "loss":
        figures += f", {METRICS[event.metric]} {event.value:.2f}"
    if event.closed is not None:
        figures += f" ({event.closed:,} trees closed)"
    better = ", best" if event.best else ""
    return f"step {event.step:,} (epoch {event.epoch}): dev {figures}{better}"
