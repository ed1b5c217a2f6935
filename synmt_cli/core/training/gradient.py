"""The gradient of one batch.

    L = (label-smoothed cross-entropy + the modifiers' losses) / target tokens of the update

where arcs may have a weight of their own.

A decoder that re-reads its prefix reads each prefix of the target as a sequence of its own. Many
are packed into one pass (model/prefixes.py), since a GPU takes as long to start the work of one
as of all. The encoder runs once. Each pass differentiates down to the keys and values of the
source and is then forgotten, so memory is that of one pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from synmt_cli.core.data.batch import Batch
from synmt_cli.core.model.layers import Memory
from synmt_cli.core.model.prefixes import CELLS, draw, passes
from synmt_cli.core.model.transformer import Transformer
from synmt_cli.core.training.loss import ArcLoss, cross_entropy


@dataclass(slots=True)
class Sums:
    """Sums over target tokens. losses: the modifiers', by variant."""

    smoothed: float = 0.0
    nll: float = 0.0
    losses: dict[str, float] = field(default_factory=dict)

    def add(self, other: Sums) -> None:
        """Adds the sums of another batch."""
        self.smoothed += other.smoothed
        self.nll += other.nll
        for name, value in other.losses.items():
            self.losses[name] = self.losses.get(name, 0.0) + value

    def to_list(self, names: Sequence[str]) -> list[float]:
        """The sums as numbers, with the losses of these names."""
        return [self.smoothed, self.nll, *(self.losses.get(name, 0.0) for name in names)]

    @classmethod
    def of(cls, numbers: Sequence[float], names: Sequence[str]) -> Sums:
        """The sums that `to_list` wrote."""
        smoothed, nll, *losses = numbers
        return cls(smoothed, nll, dict(zip(names, losses, strict=True)))

    @property
    def total(self) -> float:
        """The loss that is trained on."""
        return self.smoothed + sum(self.losses.values())


def backward(
    model: Transformer,
    batch: Batch,
    smoothing: float,
    scale: float,
    prefix_share: float = 1.0,
    arcs: ArcLoss | None = None,
) -> Sums:
    """Adds the gradient of scale * L to that of the parameters. batch: on the model's device.

    prefix_share: the chance that a re-reading decoder is trained on the prefixes of a length,
    drawn once for all targets of the batch; prefixes that are drawn count 1 / prefix_share
    times, so that gradient and sums are unbiased.
    """
    memory = model.encode(batch.source)
    if model.rereads:
        return _from_prefixes(model, batch, memory, smoothing, scale, prefix_share, arcs)
    states, others = model.decode(batch.target, memory)
    entropy = cross_entropy(
        states.flatten(0, 1), model.output.weight, batch.tokens(), smoothing, batch.real, arcs
    )
    losses = [*memory.losses.items(), *others.items()]
    total = sum((loss for _, loss in losses), entropy.smoothed) * scale
    _differentiate([total], [None])
    sums = Sums(entropy.smoothed.item(), entropy.nll.item())  # read last: a GPU waits for it
    for name, loss in losses:
        sums.add(Sums(losses={name: loss.item()}))
    return sums


def _from_prefixes(
    model: Transformer,
    batch: Batch,
    memory: Memory,
    smoothing: float,
    scale: float,
    prefix_share: float,
    arcs: ArcLoss | None,
) -> Sums:
    drawn = draw(max(batch.lengths), prefix_share)
    longest_first = np.argsort(-np.array(batch.lengths), kind="stable")
    order = torch.from_numpy(longest_first).to(batch.target_out.device, non_blocking=True)
    target, target_out = batch.target[order], batch.target_out[order]
    allowed = None if memory.allowed is None else memory.allowed[order]
    projected = model.decoder.keys_values(Memory(memory.states[order], allowed))
    sources = [(k.detach().requires_grad_(), v.detach().requires_grad_()) for k, v in projected]
    sums = Sums(losses={name: loss.item() for name, loss in memory.losses.items()})
    lengths = [batch.lengths[row] for row in longest_first]
    n_cells = max(CELLS, target_out.numel())  # as much memory as a batch takes that is read once
    for one in passes(lengths, target_out.size(1), drawn, n_cells):
        here = one.to(order.device)
        states = model.decoder.reread_packed(
            here.side(target),
            here.prefixes(),
            [(k[one.targets], v[one.targets]) for k, v in sources],
            None if allowed is None else allowed[one.targets],
        )  # (R, 2, D)
        entropy = cross_entropy(
            states.flatten(0, 1),
            model.output.weight,
            target_out.take(here.following),
            smoothing,
            here.ends,
            arcs,
        )
        _differentiate([entropy.smoothed * (scale / prefix_share)], [None])
        sums.smoothed += entropy.smoothed.item() / prefix_share
        sums.nll += entropy.nll.item() / prefix_share
    roots: list[Tensor] = [loss * scale for loss in memory.losses.values()]
    gradients: list[Tensor | None] = [None for _ in roots]
    for pair, leaves in zip(projected, sources, strict=True):
        for tensor, leaf in zip(pair, leaves, strict=True):
            if leaf.grad is not None:  # None where no prefix was drawn
                roots.append(tensor)
                gradients.append(leaf.grad)
    _differentiate(roots, gradients)
    return sums


def _differentiate(roots: list[Tensor], gradients: list[Tensor | None]) -> None:
    """Adds to the gradients of the leaves. Autocast is off: it is for the forward pass alone."""
    if roots:
        with torch.autocast(roots[0].device.type, enabled=False):
            torch.autograd.backward(roots, gradients)
