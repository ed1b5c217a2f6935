"""The training loop. It yields events; commands decide what to show."""

import contextlib
import dataclasses
import math
import os
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from synmt_cli import signals
from synmt_cli.core.data.batch import Batch
from synmt_cli.core.data.corpus import Corpus
from synmt_cli.core.distributed.ranks import Ranks
from synmt_cli.core.distributed.sharding import Shards, Share
from synmt_cli.core.model.transformer import Transformer
from synmt_cli.core.run import device as devices
from synmt_cli.core.run import tensors
from synmt_cli.core.run.config import Training
from synmt_cli.core.run.directory import Run
from synmt_cli.core.text.vocabulary import Vocabularies
from synmt_cli.core.training.device import compiled, generators
from synmt_cli.core.training.device.loss_scale import LossScale
from synmt_cli.core.training.device.prefetch import prefetch
from synmt_cli.core.training.device.transfer import Transfer
from synmt_cli.core.training.events import (
    Ended,
    Event,
    Pulse,
    Report,
    Restored,
    Saved,
    Validated,
    perplexity_of,
)
from synmt_cli.core.training.gradient import Sums, backward
from synmt_cli.core.training.loss import arc_loss
from synmt_cli.core.training.saving import checkpoint
from synmt_cli.core.training.saving.best_model import BestModel
from synmt_cli.core.training.saving.checkpoint import TrainingState
from synmt_cli.core.training.schedule import inverse_square_root
from synmt_cli.core.training.updates import Update, Updates
from synmt_cli.core.training.validation import Abandoned, Measured, Validation
from synmt_cli.errors import ConfigError, SynmtError

# A GPU is not waited for between two reports: the losses of updates stay on it, and are read
# where something is reported, validated or saved. Only there is one found that is not a number.
REPORT_EVERY = 50  # updates; fixed, so that the reports of a resumed run are the same
LIMITS = ("max_steps", "max_epochs")  # ends after which a run can go on, with a higher limit


class _Deadline(signals.Request):
    """Asks for an end once perf_counter reaches a time."""

    def __init__(self, end: float) -> None:
        self._end = end

    def __bool__(self) -> bool:
        return time.perf_counter() >= self._end


def _diverged(what: str) -> ConfigError:
    """The error for a figure that is not a number. what: says which, and at which step."""
    return ConfigError(
        f"{what}; lower training.lr or raise training.warmup; saved checkpoints are whole"
    )


@dataclass
class Trainer:
    """One training run in progress. dev: None makes the last weights the best.

    ranks: the processes that train together; all go through the same events. watch: is told of
    each update, and of each part of a validation. guard: raises where nothing may be saved any
    more. why: the reason for the precision, maybe "".
    """

    run: Run
    settings: Training
    model: Transformer
    vocabularies: Vocabularies
    train: Corpus
    dev: Corpus | None
    device: torch.device
    ranks: Ranks = field(default_factory=Ranks)
    state: TrainingState = field(default_factory=TrainingState)
    watch: Callable[[Pulse], None] = lambda pulse: None
    guard: Callable[[], None] = lambda: None
    why: str = ""

    def __post_init__(self) -> None:
        kind = Shards if self.settings.shard and self.ranks.size > 1 else Share
        self.share = kind(self.model, self.ranks, self.device)
        self._has_pairs = False  # whether any line has two sentences, if layers are compiled
        if self.settings.compile:
            compiled.compile_layers(self.model, self.device)
            sentence = self.train.features.get("sentence")
            self._has_pairs = sentence is not None and bool(sentence.values.max(initial=0) > 0)
        self._best_model = BestModel(self.run, self.share, self.vocabularies.fingerprint)
        self.updates = Updates(self.train, self.settings, self.share)
        self.optimizer = torch.optim.Adam(
            self.share.groups(),
            lr=self.settings.lr,
            betas=self.settings.betas,
            eps=self.settings.eps,
            weight_decay=self.settings.weight_decay,
            fused=self.device.type in ("cpu", "cuda"),
        )
        self._scale: LossScale | None = None
        if self.settings.precision == "fp16":
            if not self.optimizer.defaults["fused"]:
                raise ConfigError(f"training.precision: fp16 is not for the device {self.device}")
            self._scale = LossScale(self.device)
        self._losses = sorted(self.model.encoder.loss_names() | self.model.decoder.loss_names())
        self._arcs = arc_loss(self.model, self.settings)
        self._draw_anew()
        # Spent by this process in updates since the last report, and in waiting for their data.
        self._seconds = 0.0
        self._timed = 0  # target tokens of those updates
        self._norms: list[Tensor] = []  # of the gradients since then, where they were computed
        self._unread: list[tuple[int, int, Tensor]] = []  # step, tokens and sums of updates
        self._nll = math.nan  # mean of the updates that were read last
        self._transfer = Transfer(self.device)
        self._saved: tuple[int, str] | None = None  # step and end of the newest checkpoint

    def resume(self) -> bool:
        """Loads the newest checkpoint. False where there is none. Raises SynmtError."""
        newest = max(self.run.steps(), default=-1)
        self.ranks.refuse_unequal(newest, f"checkpoints in {self.run.folder}")
        if newest < 0:
            self._refuse_to_replace_model()
            return False
        self.state = checkpoint.load(
            self.run, newest, self.share, self.optimizer, self.vocabularies.fingerprint
        )
        self._saved = self.state.step, self.state.finished
        if self._scale is not None and self.state.scale:
            self._scale = LossScale(self.device, self.state.scale, self.state.scale_age)
        # Limits and patience may have changed; a validation that is owed decides about patience.
        is_over = self._is_out_of_patience() and not self._owes_validation()
        self.state.finished = "patience" if is_over else ""
        self.state.random = self.ranks.own(self.state.random)
        if not self.state.random:  # saved by another number of processes
            self._draw_anew()
        return True

    def _refuse_to_replace_model(self) -> None:
        """Raises ConfigError if there is a model that training from the beginning would replace.

        A model of the first step that saves is allowed: the run may have been killed before it
        wrote the checkpoint.
        """
        settings = self.settings
        first = min(settings.save_every, settings.max_steps)
        if self.dev is not None:
            first = min(first, settings.validate_every)
        if os.path.lexists(self.run.model):
            step = tensors.stated_step(self.run.model)
            if step is None or not step.isdecimal() or int(step) > first:
                raise ConfigError(
                    f"{self.run.folder} has a model but no checkpoint from which "
                    "training could go on; name another --run"
                )

    def _draw_anew(self) -> None:
        """Seeds dropout, differently in each of several processes and at each step that resumes.

        A single process that begins goes on with the generator that drew its weights.
        """
        if self.ranks.size > 1 or self.state.step:
            seed = self.settings.seed, self.state.step, self.ranks.rank
            torch.manual_seed(int(np.random.default_rng(seed).integers(2**63)))
        self.state.random = generators.states(self.device)

    def seconds_of_update(self, budget: float, most: int) -> float:
        """The mean time of up to `most` updates of all lengths, after a first. Changes the model.

        budget: seconds after which no further batch begins, nor an update that would end later.
        The time of an update that takes longer is estimated from its batches so far. Nothing is
        saved.
        """
        self.model.train()
        ahead = prefetch(map(self._transfer.send, self.updates.over_lengths()))
        with contextlib.closing(ahead) as updates:
            if self.settings.compile:  # the first update waits for the compiler
                self._update(next(updates), signals.Request())
                self._wait()
            begin, times = time.perf_counter(), [0.0]
            for update in updates:
                end = _Deadline(begin + budget)
                start = time.perf_counter()
                n_passed = self._update(update, end)
                self._wait()
                seconds = time.perf_counter() - start
                times.append(seconds * len(update.batches) / n_passed)
                if time.perf_counter() - begin + seconds > budget or len(times) > most + 1:
                    break
        measured = times[2:] or times[1:]
        return sum(measured) / len(measured)

    def _wait(self) -> None:
        """Waits until the device has done all its work."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def events(self, request: signals.Request, time_limit: float | None) -> Iterator[Event]:
        """Trains until it is over, `request` asks for an end, or time_limit seconds have passed."""
        deadline = time.monotonic() + time_limit if time_limit else math.inf
        generators.restore(self.state.random, self.device)
        self.model.train()
        with contextlib.closing(self._updates_since(self.state.epoch, self.state.batch)) as updates:
            yield from self._go_on(updates, request, deadline)

    def _updates_since(self, epoch: int, batch: int) -> Generator[Update]:
        """The updates from this batch on, prepared and sent to the device ahead of time."""
        return prefetch(map(self._transfer.send, self.updates.since(epoch, batch)))

    def _go_on(
        self, updates: Iterator[Update], request: signals.Request, deadline: float
    ) -> Iterator[Event]:
        """Trains on the updates; validates and saves where it is due."""
        try:
            yield from self._restore_model(request)
        except Abandoned:
            yield Ended(self.state.step, "signal", False)
            return
        if self._owes_validation():
            yield from self._validate_and_save(request)
        while not self.state.finished:
            if self.ranks.any(bool(request) or time.monotonic() >= deadline):
                # The limit of any process counts, since their clocks began at different times.
                reason = "signal" if self.ranks.any(bool(request)) else "time limit"
                yield from self._save()
                yield Ended(self.state.step, reason, False)
                return
            if self._advance(updates, request):
                yield from self._reports()
                if self.state.finished or self._is_due():
                    yield from self._validate_and_save(request)
        yield Ended(self.state.step, self.state.finished, True)

    def _is_due(self) -> bool:
        """Whether a run saves at this step anyway; never before the first update."""
        every = [self.settings.save_every]
        if self.dev is not None:
            every.append(self.settings.validate_every)
        return self.state.step > 0 and any(self.state.step % n == 0 for n in every)

    def _advance(self, updates: Iterator[Update], request: signals.Request) -> bool:
        """Makes one update, or notes that training is over. False if an end was asked for."""
        state, settings = self.state, self.settings
        if state.step < settings.max_steps:
            with self._timed_as_updates():
                update = next(updates, None)
                n_passed = self._update(update, request) if update is not None else 0
            if update is None:
                state.finished = "max_epochs"
            elif n_passed < len(update.batches):
                return False
            else:
                self._timed += update.n_tokens
                self._show("")
        if state.step >= settings.max_steps:
            state.finished = "max_steps"
        return True

    def _update(self, update: Update, request: signals.Request) -> int:
        """Makes one update. Returns how many of its batches passed through the model.

        These are all, unless an end was asked for in the middle: then nothing changed.
        """
        dtype = devices.widest(self.device)
        sums = torch.zeros(2 + len(self._losses), dtype=dtype, device=self.device)
        self.optimizer.zero_grad()
        for number, (batch, counts) in enumerate(self._transfer.receive(update).batches):
            if request and number and self.ranks.size == 1:
                return number  # the state, generators included, is that of the last update
            if counts:
                sums += self._backward(batch, 1 / update.n_tokens).stacked(self._losses)
            else:  # leaves the generators as if nothing had been passed
                random = generators.states(self.device)
                self._backward(batch, 0.0)
                generators.restore(random, self.device)
        step = self.state.step + 1
        self._unread.append((step, update.n_tokens, self.share.reduce(sums)))
        if self.device.type == "cpu":  # nobody waits for a CPU
            self._read_losses()
        self._apply(step)
        self.state.step = step
        self.state.epoch, self.state.batch = update.epoch, update.batch
        self.state.random = generators.states(self.device)
        return len(update.batches)

    @contextlib.contextmanager
    def _timed_as_updates(self) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self._seconds += time.perf_counter() - start

    def _read_losses(self) -> None:
        """Adds the losses of updates to the state. Raises ConfigError if one is not a number."""
        state = self.state
        if not self._unread:
            return
        steps, tokens, sums = zip(*self._unread, strict=True)
        self._unread = []
        for step, n_tokens, numbers in zip(steps, tokens, torch.stack(sums).tolist(), strict=True):
            loss = numbers[0] + sum(numbers[2:])
            self._refuse_infinite("the loss", loss, step)
            self._refuse_infinite("the negative log-likelihood", numbers[1], step)
            state.add(numbers, self._losses, n_tokens)
        self._nll = state.nll / state.tokens

    def _show(self, doing: str) -> None:
        step, epoch = self.state.step, self.state.epoch + 1
        self.watch(Pulse(step, epoch, self._nll, self._tokens_per_second(), doing))

    def _tokens_per_second(self) -> float:
        return self._timed / self._seconds if self._seconds else 0.0

    def _backward(self, batch: Batch, scale: float) -> Sums:
        settings = self.settings
        if settings.compile:
            batch = compiled.alike(batch, self._has_pairs)
        with (
            devices.precision(settings.precision, self.device),
            self.share.passing(),
            compiled.explained(settings.compile),
            compiled.paused(settings.compile and not compiled.has_program(batch)),
        ):
            return backward(
                self.model,
                batch,
                settings.label_smoothing,
                scale if self._scale is None else self._scale.scale * scale,
                settings.prefix_share,
                self._arcs,
            )

    def _apply(self, step: int) -> None:
        if self._scale is None:
            self._norms.append(self.share.clip(self.settings.clip_norm))
        else:
            self.share.divide(self._scale.scale)
            is_lost, norm = self._scale.update(self.share.clip(self.settings.clip_norm))
            self._norms.append(norm)
            # The fused step reads it, and does nothing if it is 1.
            self.optimizer.found_inf = is_lost  # type: ignore[attr-defined]
        for group in self.optimizer.param_groups:
            group["lr"] = self._lr(step)
        self.optimizer.step()

    def _lr(self, step: int) -> float:
        settings = self.settings
        return inverse_square_root(step, settings.lr, settings.warmup, settings.initial_lr)

    def _reports(self) -> Iterator[Report]:
        state = self.state
        if state.step % REPORT_EVERY:
            return
        self._read()
        if not state.tokens:
            return
        yield Report(
            state.step,
            state.epoch + 1,
            state.loss / state.tokens,
            state.nll / state.tokens,
            {name: loss / state.tokens for name, loss in state.losses.items()},
            state.gradient_norm / REPORT_EVERY,
            self._lr(state.step),
            self._tokens_per_second(),
        )
        state.clear_sums()
        self._seconds, self._timed = 0.0, 0

    def _read(self) -> None:
        """Adds the losses and the norms of the gradients to the state. Raises ConfigError.

        A GPU has then made all updates.
        """
        with self._timed_as_updates():
            self._read_losses()
            norms = torch.stack(self._norms).tolist() if self._norms else []
        first = self.state.step - len(norms) + 1
        for step, norm in enumerate(norms, first):
            self._refuse_infinite("the norm of the gradient", norm, step)
            self.state.gradient_norm += norm  # one by one, so reading times do not matter
        self._norms = []

    def _refuse_infinite(self, what: str, value: float, step: int) -> None:
        """Raises ConfigError for a figure of an update that is not a number."""
        if not math.isfinite(value):
            raise _diverged(
                f"{what} is {value} at step {step} (learning rate {self._lr(step):.2g})"
            )

    def _owes_validation(self) -> bool:
        """True if the run was stopped in the middle of a validation."""
        step = self.state.step
        due = step > 0 and step % self.settings.validate_every == 0
        return due and self.state.validated != step and self.dev is not None

    def _restore_model(self, request: signals.Request) -> Iterator[Event]:
        """Writes a lost model again: the best weights if they are kept, else the newest ones.

        Raises Abandoned if an end was asked for before the newest ones were validated.
        """
        state = self.state
        saved = self._saved is not None and (self.dev is None or state.best_value is not None)
        is_lost = self.ranks.is_first and not os.path.lexists(self.run.model)
        if not self.ranks.any(saved and is_lost):
            if saved and self.ranks.is_first:
                self._best_model.refuse_damaged()
            return
        best = state.step if self.dev is None else state.best_step
        is_kept = self.ranks.any(self.ranks.is_first and best in self.run.steps())
        if best == state.step:
            self._save_best()
            yield Restored(best)
        elif is_kept:
            self._best_model.copy(best)
            yield Restored(best)
        else:
            again, stale = state.validated == state.step, state.stale
            state.best_value = None
            validated = self._validate(False, request)
            state.stale = stale
            yield Restored(state.step)
            if not again:  # metrics.jsonl has it
                yield validated
            yield from self._save()

    def _validate_and_save(self, request: signals.Request) -> Iterator[Event]:
        self._read()
        regular = self.state.step % self.settings.validate_every == 0
        wanted = regular or self.state.finished in LIMITS
        if self.dev is not None and wanted and self.state.validated != self.state.step:
            try:
                yield self._validate(regular, request)
            except Abandoned:
                self.state.finished = ""  # the resumed run validates and ends
                return
        if self._is_out_of_patience():
            self.state.finished = self.state.finished or "patience"
        yield from self._save()

    def _is_out_of_patience(self) -> bool:
        return 0 < self.settings.patience <= self.state.stale

    def _validate(self, regular: bool, request: signals.Request) -> Validated:
        """Measures the model on dev, and saves its weights if they are the best.

        regular: whether it is one of those that are made every so many updates.
        """
        state, settings = self.state, self.settings
        with self.share.gathered(), compiled.paused(settings.compile):
            measured = self._measured(request)
        found = measured or Measured(0.0, 0.0)
        decisive = found.nll, found.value, float(measured is None)
        nll, value, is_abandoned = self.ranks.from_first(decisive)
        if is_abandoned:
            raise Abandoned
        if not math.isfinite(nll + value):
            raise _diverged(f"the loss on dev is {nll} at step {state.step}")
        state.validated, self._saved = state.step, None  # no checkpoint knows of it yet
        best = state.is_best(value, nll)
        if best:
            self._save_best()
        state.note_validation(value, nll, regular)
        return Validated(
            state.step,
            state.epoch + 1,
            nll,
            perplexity=perplexity_of(nll),
            metric=settings.metric,
            value=value,
            best=best,
            closed=found.closed,
            **found.figures,
        )

    def _measured(self, request: signals.Request) -> Measured | None:
        """The figures on dev, in the first process; None elsewhere, or if it was abandoned."""
        if self.dev is None or not self.ranks.is_first:
            return None
        target = self.vocabularies.target
        one = Validation(
            self.model, self.dev, target, self.settings, self.device, request, self._show
        )
        try:
            return one.run()
        except Abandoned:
            return None

    def _save_best(self) -> None:
        with self._guarded():
            self._best_model.save(self.state.step)

    @contextlib.contextmanager
    def _guarded(self) -> Iterator[None]:
        """Guards a write: if it fails because the folder is another's now, says so instead."""
        self.guard()
        try:
            yield
        except SynmtError:
            self.guard()
            raise

    def _save(self) -> Iterator[Saved]:
        if self._saved == (self.state.step, self.state.finished):
            # `keep` may be less than before.
            checkpoint.remove_old(self.run, self.share, self.state.step, self.settings.keep)
            return
        self._read()
        if self.dev is None:
            self._save_best()
        if self._scale is not None:
            self.state.scale = self._scale.scale.item()
            self.state.scale_age = self._scale.age.item()
        self.state.for_stop = not self.state.finished and not self._is_due()
        random = self.ranks.gather(self.state.random)
        with self._guarded():
            checkpoint.save(
                self.run,
                self.share,
                self.optimizer,
                dataclasses.replace(self.state, random=random),
                self.vocabularies.fingerprint,
                self.settings.keep,
            )
        self.ranks.wait()
        self._saved = self.state.step, self.state.finished
        yield Saved(self.state.step)
