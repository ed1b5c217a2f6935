"""The gradient of one batch.

    L = (label-smoothed cross-entropy + the modifiers' losses) / target tokens of the update

where arcs may have a weight of their own.

A decoder that re-reads its prefix reads each prefix of the target as a sequence of its own. Many
are packed into one pass (model/prefixes.py), since a GPU takes as long to start the work of one
as of all. The encoder runs once. Each pass differentiates down to the keys and values of the
source and is then forgotten, so memory is that of one pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from synmt_cli.core.data.batch import Batch
from synmt_cli.core.model.layers import Memory
from synmt_cli.core.model.prefixes import draw, longest_first, packed_passes, tokens_per_pass
from synmt_cli.core.model.transformer import Transformer
from synmt_cli.core.run.device import widest
from synmt_cli.core.training.loss import ArcLoss, cross_entropy


@dataclass(frozen=True, slots=True)
class Sums:
    """Sums over target tokens, on the device: nobody waits for it. losses: by variant."""

    smoothed: Tensor
    nll: Tensor
    losses: dict[str, Tensor]

    def stacked(self, names: Sequence[str]) -> Tensor:
        """smoothed, nll and the losses of these names, 0 where there is none; (2 + names,)."""
        zero = torch.zeros_like(self.nll)
        own = [self.smoothed, self.nll, *(self.losses.get(name, zero) for name in names)]
        return torch.stack(own).to(widest(zero.device))


def backward(
    model: Transformer,
    batch: Batch,
    smoothing: float,
    scale: float | Tensor,
    prefix_share: float = 1.0,
    arcs: ArcLoss | None = None,
) -> Sums:
    """Adds the gradient of scale * L to that of the parameters. batch: on the model's device.

    prefix_share: the chance that a re-reading decoder is trained on the prefixes of a length,
    drawn once for all targets of the batch; prefixes that are drawn count 1 / prefix_share
    times, so that gradient and sums are unbiased. arcs: `loss.arc_loss` of the model, which
    models that write trees need: their logits are corrected for the weight of arcs. Nothing here
    waits for the device. Raises ValueError without the arcs that the model is corrected for.
    """
    if arcs is None and model.output_bias is not None:
        raise ValueError(
            "the model corrects for the weight of arcs; pass arcs=arc_loss(model, ...)"
        )
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
    return Sums(entropy.smoothed.detach(), entropy.nll, _by_name(losses))


def _by_name(losses: Iterable[tuple[str, Tensor]]) -> dict[str, Tensor]:
    """The sum of the losses of each name, without their gradient."""
    found: dict[str, Tensor] = {}
    for name, loss in losses:
        found[name] = found[name] + loss.detach() if name in found else loss.detach()
    return found


def _from_prefixes(
    model: Transformer,
    batch: Batch,
    memory: Memory,
    smoothing: float,
    scale: float | Tensor,
    prefix_share: float,
    arcs: ArcLoss | None,
) -> Sums:
    drawn = draw(max(batch.lengths), prefix_share)
    lengths, order = longest_first(batch.lengths, batch.target_out.device)
    target, target_out = batch.target[order], batch.target_out[order]
    ordered = memory.of(order)
    projected = model.decoder.keys_values(ordered)
    sources = [(k.detach().requires_grad_(), v.detach().requires_grad_()) for k, v in projected]
    smoothed = nll = torch.zeros((), device=target_out.device)
    # Passes may take as much memory as a batch that is read only once.
    n_cells = max(tokens_per_pass(target_out.device, model.size.d_model), target_out.numel())
    for one in packed_passes(lengths, target_out.size(1), drawn, n_cells):
        here = one.to(order.device)
        states = model.reread(here, target, sources, ordered.allowed)  # (R, 2, D)
        entropy = cross_entropy(
            states.flatten(0, 1),
            model.output.weight,
            target_out.take(here.predicted),
            smoothing,
            here.ends,
            arcs,
        )
        _differentiate([entropy.smoothed * (scale / prefix_share)], [None])
        smoothed = smoothed + entropy.smoothed.detach() / prefix_share
        nll = nll + entropy.nll / prefix_share
    roots: list[Tensor] = [loss * scale for loss in memory.losses.values()]
    gradients: list[Tensor | None] = [None for _ in roots]
    for pair, leaves in zip(projected, sources, strict=True):
        for tensor, leaf in zip(pair, leaves, strict=True):
            if leaf.grad is not None:  # None where no prefix was drawn
                roots.append(tensor)
                gradients.append(leaf.grad)
    _differentiate(roots, gradients)
    return Sums(smoothed, nll, _by_name(memory.losses.items()))


def _differentiate(roots: list[Tensor], gradients: list[Tensor | None]) -> None:
    """Adds to the gradients of the leaves. Autocast is off: it is for the forward pass alone."""
    if roots:
        with torch.autocast(roots[0].device.type, enabled=False):
            torch.autograd.backward(roots, gradients)
