"""What `synmt train` says on stderr before the first update: data, model, and machine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from synmt_cli import console
from synmt_cli.errors import counted

if TYPE_CHECKING:
    from synmt_cli.core.run.config import Choice
    from synmt_cli.core.run.directory import Run
    from synmt_cli.core.training.length import Length
    from synmt_cli.core.training.loop import Trainer
    from synmt_cli.core.training.session import Session


def settled(session: Session, choice: Choice, place: Run | None = None) -> Session:
    """The session with its final settings. Says what it reads, and which settings nobody named."""
    report_left_out(session)
    session, notes = session.settled(choice, place)
    for line in notes:
        console.info(line)
    warn_of_tokenizer(session)
    return session


def report_left_out(session: Session) -> None:
    """Says how many pairs are trained on, and how many records are left out or have no tree."""
    from synmt_cli.core.data import unseen_labels
    from synmt_cli.core.run.building import grammar, needs

    rules = grammar(session.config, session.vocabularies)
    for name, corpus in (("training", session.train), ("dev", session.dev)):
        if corpus is None:
            continue
        parts = ""
        if rules is not None:
            n_arcs = int(rules.is_arc[corpus.target.values].sum())
            parts = f" ({corpus.n_tokens - n_arcs:,} pieces, {n_arcs:,} transitions)"
        console.info(f"{len(corpus):,} {name} pairs, {corpus.n_tokens:,} target tokens{parts}")
        for reason, n in sorted(corpus.left_out.items()):
            console.warn(f"{n:,} {name} records left out: {reason}")
        if corpus.n_treeless and needs(session.config, training=corpus is session.train):
            problem = "have no tree: their pieces stand for themselves"
            console.warn(f"{corpus.n_treeless:,} of {len(corpus):,} {name} pairs {problem}")
    if session.dev is not None:
        for line in unseen_labels.warnings(session.dev.n_of_label, session.dev.encoding):
            console.warn(f"{session.inputs.dev}: {line}")


def warn_of_tokenizer(session: Session) -> None:
    """Says that BLEU in validations will mean little for targets without spaces between words."""
    from synmt_cli.core.text import scripts

    training = session.config.training
    if session.dev is None or training.metric != "bleu":
        return
    if writing := scripts.misread(session.dev.references, training.tokenize):
        advice = writing.advice(training.tokenize, "--set training.tokenize=")
        console.warn(f"the targets of {session.inputs.dev} have {advice}")


def report_beginning(session: Session, trainer: Trainer) -> None:
    """Says which model's weights a run begins with, and what is new to that model."""
    if pretrained := session.inputs.pretrained:
        labels = session.train.encoding.labels
        for line in pretrained.introduction(trainer.model, trainer.vocabularies, labels):
            console.info(line)
        console.info(f"preset {session.config.preset}, except for its [model]")


def announce(session: Session, trainer: Trainer, *, is_new: bool) -> Length:
    """Says what will run, and what a new run begins with; returns how long it will be.

    Warns if bf16, which another machine may have chosen, is slow.
    """
    from synmt_cli.core.run.device import has_bf16
    from synmt_cli.core.training.length import Length

    if is_new:
        report_beginning(session, trainer)
    length = Length.of(session.train, trainer.settings)
    for line in described(trainer, length):
        console.info(line)
    if trainer.settings.precision == "bf16" and not has_bf16(trainer.device):
        console.warn(
            "this device has no bf16 and emulates it, which can take several times as long as fp32 "
            "(training.precision)"
        )
    return length


def described(trainer: Trainer, length: Length) -> Iterator[str]:
    """Yields lines for people that say what will run."""
    n_parameters, n = sum(p.numel() for p in trainer.model.parameters()), passes(length)
    yield (
        f"{n_parameters:,} parameters; {counted(length.updates, 'update')} of about "
        f"{length.tokens:,.0f} target tokens, {n} pass{'es' * (n != '1')} over the data"
    )
    why = f" ({trainer.why})" if trainer.why else ""
    yield f"{machine(trainer)}, precision {trainer.settings.precision}{why}"


def passes(length: Length) -> str:
    """The number of passes over the data, rounded for people."""
    return f"{length.passes:,.0f}" if length.passes >= 10 else f"{length.passes:.2g}"


def machine(trainer: Trainer) -> str:
    """The device, and how many threads or processes use it."""
    import torch

    name = str(trainer.device)
    if trainer.device.type == "cuda":
        name = f"{name} ({torch.cuda.get_device_name(trainer.device)})"
    elif (n := torch.get_num_threads()) > 1:
        name = f"{name} with {n} threads"
    return f"{trainer.ranks.size} processes, {name}" if trainer.ranks.size > 1 else name
