"""Chooses bf16 or fp32: for one run, when it begins, or for many runs that are compared.

On a GPU bf16 is taken where the hardware has it. On a processor with bf16 instructions it can be
faster or slower than fp32, depending on the processor, the model and its batches, so both are
timed.
"""

import time
from collections.abc import Iterable
from itertools import islice

import torch

from synmt_cli import signals
from synmt_cli.core.data.batch import Batch
from synmt_cli.core.data.corpus import Corpus
from synmt_cli.core.model.transformer import Transformer
from synmt_cli.core.run import device as devices
from synmt_cli.core.run.config import Precision, Training
from synmt_cli.core.training.batches import of_epoch, passes
from synmt_cli.core.training.device import generators
from synmt_cli.core.training.gradient import backward
from synmt_cli.core.training.loss import arc_loss

LEAST = 1000  # updates; a shorter run ends before timing would pay
PAYS = 1.1  # how many times as fast bf16 has to be: timing is not exact
ROUNDS = 3  # timed batches of each precision at most, after one that is not timed
PRODUCTS = 5  # timed products of matrices in each precision, of which the fastest counts
ENOUGH = 2.0  # seconds of timed batches: a large model's first is enough
STOPPED = "stopped while bf16 was timed; the same command starts again"


def choose(
    model: Transformer,
    corpus: Corpus,
    settings: Training,
    n_updates: int,
    device: torch.device,
    request: signals.Request | None = None,
) -> tuple[Precision, str]:
    """fp32 or bf16, and why. The model, on `device`, and the generators stay as they were.

    Raises Stopped on `request`, between two batches.
    """
    untimed = _untimed(device)
    if untimed is not None:
        return untimed
    if n_updates < LEAST:
        return "fp32", f"runs under {LEAST:,} updates are not timed"
    random = generators.states(device)
    was_training = model.training
    model.train()
    try:
        whole = islice(of_epoch(corpus, settings, 0), ROUNDS + 1)
        # With micro_tokens the last pass of each batch, which has its longest pairs.
        batches = [corpus.batch(passes(corpus, settings, [rows])[-1]) for rows in whole]
        first = signals.until(request, batches, STOPPED)
        slow, n = _seconds(model, first, settings, device, "fp32")
        again = signals.until(request, batches[: n + 1], STOPPED)
        fast, n_fast = _seconds(model, again, settings, device, "bf16")
    finally:
        model.zero_grad()
        model.train(was_training)
        generators.restore(random, device)
    return decided(slow / n / (fast / n_fast))


def for_all(device: torch.device) -> tuple[Precision, str]:
    """fp32 or bf16 for models that are still to be made, and why: it times a matrix product.

    It does so with one thread, since each training has one when many run at a time.
    """
    untimed = _untimed(device)
    if untimed is not None:
        return untimed
    seconds = {"fp32": float("inf"), "bf16": float("inf")}
    with devices.one_thread():
        for _ in range(PRODUCTS):  # in turn, since other jobs slow both
            for name, least in seconds.items():
                seconds[name] = min(least, _seconds_of_product(name, device))
    return decided(seconds["fp32"] / seconds["bf16"])


def _untimed(device: torch.device) -> tuple[Precision, str] | None:
    """The choice where the device decides it without timing, and why; else None."""
    has_bf16 = devices.has_bf16(device)
    if device.type != "cpu":
        why = "this device has it" if has_bf16 else "this device has no bf16"
        return ("bf16" if has_bf16 else "fp32"), why
    return None if has_bf16 else ("fp32", "this processor has no bf16")


def decided(speed: float) -> tuple[Precision, str]:
    """The precision where bf16 is `speed` times as fast as fp32, and why."""
    what = f"bf16 is {speed:.1f} times as fast as fp32 here"
    return ("bf16", what) if speed >= PAYS else ("fp32", what)


def _seconds(
    model: Transformer,
    batches: Iterable[Batch],
    settings: Training,
    device: torch.device,
    precision: Precision,
) -> tuple[float, int]:
    """The time of forward and backward passes through all batches but the first; their number."""
    begin, number, arcs = 0.0, 0, arc_loss(model, settings)
    for number, batch in enumerate(batches):
        if number <= 1:  # the first one also prepares memory and threads
            begin = time.perf_counter()
        with devices.precision(precision, device):
            backward(model, batch, settings.label_smoothing, 1.0, settings.prefix_share, arcs)
        if number and time.perf_counter() - begin > ENOUGH:
            break
    return time.perf_counter() - begin, max(number, 1)


def _seconds_of_product(precision: str, device: torch.device) -> float:
    """The time of one layer's product and its gradients, conversions to bf16 counted."""
    states = torch.ones(1024, 512, device=device, requires_grad=True)
    weight = torch.ones(512, 512, device=device, requires_grad=True)
    begin = time.perf_counter()
    with devices.precision(precision, device):
        torch.nn.functional.linear(states, weight).sum().backward()
    return time.perf_counter() - begin
