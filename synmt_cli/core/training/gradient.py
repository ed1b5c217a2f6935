"""The gradient of one batch.

    L = (label-smoothed cross-entropy + the modifiers' losses) / target tokens of the update

A decoder that re-reads its prefix needs a copy of the target for each of its prefixes. Copies of
one length are read together, so that there is neither padding nor a mask, and a pass is what
decoding does at that length. The encoder runs once; each pass sends its gradient down to the
keys and values of the source at once and is forgotten, so memory is that of one pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from synmt_cli.core.data.batch import Batch, to_device
from synmt_cli.core.model.layers import Memory
from synmt_cli.core.model.transformer import Transformer
from synmt_cli.core.text.vocabulary import PAD
from synmt_cli.core.training.loss import cross_entropy

CELLS = 2**14  # tokens of prefixes that are read at a time


@dataclass(slots=True)
class Sums:
    """Sums over target tokens. losses: the modifiers', by variant."""

    smoothed: float = 0.0
    nll: float = 0.0
    losses: dict[str, float] = field(default_factory=dict)

    def add(self, other: Sums) -> None:
        """Adds what another batch gave."""
        self.smoothed += other.smoothed
        self.nll += other.nll
        for name, value in other.losses.items():
            self.losses[name] = self.losses.get(name, 0.0) + value

    def to_list(self, names: Sequence[str]) -> list[float]:
        """As numbers, with the losses of these names."""
        return [self.smoothed, self.nll, *(self.losses.get(name, 0.0) for name in names)]

    @classmethod
    def of(cls, numbers: Sequence[float], names: Sequence[str]) -> Sums:
        """What `to_list` wrote."""
        smoothed, nll, *losses = numbers
        return cls(smoothed, nll, dict(zip(names, losses, strict=True)))

    @property
    def total(self) -> float:
        """All that is trained on."""
        return self.smoothed + sum(self.losses.values())


def backward(
    model: Transformer, batch: Batch, smoothing: float, scale: float, prefix_share: float = 1.0
) -> Sums:
    """Adds the gradient of scale * L to that of the parameters. batch: on the model's device.

    prefix_share: the chance of each length to be among those of a re-reading decoder's
    prefixes that are trained on, for all targets of the batch; they count 1 / prefix_share
    times, so that gradient and sums are unbiased.
    """
    memory = model.encode(batch.source)
    if model.rereads:
        return _from_prefixes(model, batch, memory, smoothing, scale, prefix_share)
    states, others = model.decode(batch.target, memory)
    real = batch.target_out != PAD
    found = cross_entropy(states[real], model.output.weight, batch.target_out[real], smoothing)
    losses = [*memory.losses.items(), *others.items()]
    total = sum((loss for _, loss in losses), found.smoothed) * scale
    _differentiate([total], [None])
    return _sums(found.smoothed, found.nll, losses)


def _from_prefixes(
    model: Transformer,
    batch: Batch,
    memory: Memory,
    smoothing: float,
    scale: float,
    prefix_share: float,
) -> Sums:
    lengths = (batch.target_out != PAD).sum(1)
    order = lengths.argsort(descending=True, stable=True)  # so that a slice has the longer ones
    target, after = batch.target.select(order), batch.target_out[order]
    allowed = None if memory.allowed is None else memory.allowed[order]
    above = model.decoder.keys_values(Memory(memory.states[order], allowed))
    sources = [(k.detach().requires_grad_(), v.detach().requires_grad_()) for k, v in above]
    sums = Sums(losses={name: loss.item() for name, loss in memory.losses.items()})
    for n, rows in passes(lengths[order].tolist(), prefix_share):
        states = model.decoder.reread(
            target.prefixes(rows, n),
            [(k[rows], v[rows]) for k, v in sources],
            None if allowed is None else allowed[rows],
        )
        found = cross_entropy(states, model.output.weight, after[rows, n - 1], smoothing)
        _differentiate([found.smoothed * (scale / prefix_share)], [None])
        sums.smoothed += found.smoothed.item() / prefix_share
        sums.nll += found.nll.item() / prefix_share
    roots: list[Tensor] = [loss * scale for loss in memory.losses.values()]
    gradients: list[Tensor | None] = [None for _ in roots]
    for pair, leaves in zip(above, sources, strict=True):
        for tensor, leaf in zip(pair, leaves, strict=True):
            if leaf.grad is not None:  # None where no prefix was drawn
                roots.append(tensor)
                gradients.append(leaf.grad)
    _differentiate(roots, gradients)
    return sums


def _differentiate(roots: list[Tensor], gradients: list[Tensor | None]) -> None:
    """Adds to the gradient of the leaves. Outside autocast: types are those of the forward pass."""
    if roots:
        with torch.autocast(roots[0].device.type, enabled=False):
            torch.autograd.backward(roots, gradients)


def passes(lengths: list[int], prefix_share: float = 1.0) -> Iterator[tuple[int, slice]]:
    """Yields n, and rows whose prefix of n tokens is read; lengths fall.

    >>> list(passes([3, 1]))
    [(1, slice(0, 2, None)), (2, slice(0, 1, None)), (3, slice(0, 1, None))]
    """
    drawn = torch.rand(lengths[0]).lt(prefix_share).tolist() if prefix_share < 1 else None
    n_rows = len(lengths)
    for n in range(1, lengths[0] + 1):
        while lengths[n_rows - 1] < n:
            n_rows -= 1
        if drawn is None or drawn[n - 1]:
            size = max(1, CELLS // n)
            yield from ((n, slice(i, min(i + size, n_rows))) for i in range(0, n_rows, size))


def _sums(smoothed: Tensor, nll: Tensor, losses: list[tuple[str, Tensor]]) -> Sums:
    sums = Sums(smoothed.item(), nll.item())
    for name, loss in losses:
        sums.add(Sums(losses={name: loss.item()}))
    return sums


def moved(batch: Batch, device: torch.device) -> Batch:
    """The batch on a device."""
    return Batch(
        to_device(batch.source, device),
        to_device(batch.target, device),
        batch.target_out.to(device, non_blocking=True),
        batch.n_tokens,
    )
