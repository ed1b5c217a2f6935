"""The Average Weight of Syntax Logits (AWSL). Xie et al. (2021), section 4.3, eq. 7.

    w      = 1 / N^2 sum_ij |e_ij| / (|e_ij| + |e^s_ij|)          eq. 7, as it is printed
    AWSL_l = mean of w over sentences and heads of layer l

e is the scaled dot product of queries and keys, e^s what the variant adds to it: for GPS its
second term. As printed, w is the share of the normal logits; the measure's name, the text and
Figure 3 mean the share of syntax, |e^s| / (|e| + |e^s|) = 1 - w. Reports give both.

The paper does not say which scores and pairs count. We take scores before the mask and the
softmax, without dropout, and the pairs (i, j), i = j included, of tokens that have a place in
the tree of the same sentence, so neither end of sentence nor padding; a pair with e = e^s = 0
does not count. For variants that do not add to the scores, e^s is the change that they make:
(D - 1) e for PASCAL. Syntax is what reads the tree of the source, in translation or, as sisa, in
training alone: what other variants add, such as rel, is a part of e.
"""

from collections.abc import Callable, Iterable, Sequence

import torch
from torch import Tensor

from synmt_cli.core.analysis import records_with_trees
from synmt_cli.core.analysis.opened_run import OpenedRun
from synmt_cli.core.analysis.witness import witnessed, witnessed_at
from synmt_cli.core.model.layers import Encoder
from synmt_cli.core.model.modifier import Modifier, Side
from synmt_cli.core.model.transformer import Transformer
from synmt_cli.core.run.device import widest
from synmt_cli.formats.record import Record
from synmt_cli.formats.reports.analysis.awsl import AwslReport, LayerWeights, RunWeights


def weigh(before: Tensor, after: Tensor, valid: Tensor) -> tuple[Tensor, Tensor]:
    """The share of syntax in each sentence and head, and the number of pairs it averages.

    before, after: (B, H, T, T), scores without and with syntax. valid: (B, T, T) bool.
    Returns (B, H) twice.
    """
    normal = before.double().abs()
    syntax = (after.double() - before.double()).abs()
    both = normal + syntax  # (B, H, T, T)
    counted = valid[:, None] & (both > 0)  # (B, H, T, T)
    n = counted.sum((-2, -1))  # (B, H)
    return (syntax / both).where(counted, 0.0).sum((-2, -1)) / n.clamp(min=1), n


def valid_pairs(side: Side) -> Tensor:
    """Whether both tokens of a pair are in the tree of the same sentence, (B, T, T) bool."""
    valid = side.same_sentence
    return valid if side.pad is None else valid & ~(side.pad[:, :, None] | side.pad[:, None, :])


def reads_trees(modifier: Modifier) -> bool:
    """Whether a modifier of an encoder reads the tree of the source, if only in training."""
    return bool(modifier.needs)


def acting(encoder: Encoder, layer: int) -> list[str]:
    """The variants that read trees and change the scores of a layer."""
    own = [m for m in encoder.modifiers if isinstance(m, Modifier) and layer in m.layers]
    return [m.name for m in own if m.changes_scores and reads_trees(m)]


class AwslMeter:
    """Sums the weights of one encoder's layers over batches."""

    def __init__(self, model: Transformer) -> None:
        size, table = model.size, model.output.weight
        self._encoder = model.encoder
        # The sums stay on the device until `layers` is called.
        shape = size.encoder_layers, size.n_heads
        self._sums = torch.zeros(shape, dtype=widest(table.device), device=table.device)
        self._n = torch.zeros_like(self._sums)  # sentences with a pair that counts
        self.n_sentences = 0

    @torch.inference_mode()
    def add(self, side: Side) -> None:
        """Encodes a batch and counts it. side has the feature `sentence`."""
        valid = valid_pairs(side)
        syntax: dict[int, Tensor] = {}  # e^s of each layer so far, (B, H, T, T)

        def before(layer: int, scores: Tensor) -> None:
            syntax[layer] = syntax.get(layer, 0.0) - scores.double()

        def after(layer: int, scores: Tensor) -> None:
            syntax[layer] += scores.double()

        def compare(layer: int, scores: Tensor) -> None:
            without = scores.double()
            if layer in syntax:
                without = without - syntax.pop(layer)
            shares, n = weigh(without, scores, valid)  # (B, H)
            self._sums[layer] += shares.sum(0)
            self._n[layer] += (n > 0).sum(0)

        with (
            witnessed(self._encoder, after=compare),
            witnessed_at(self._encoder, reads_trees, before, after),
        ):
            self._encoder(side)
        self.n_sentences += len(side.ids)

    def layers(self) -> list[LayerWeights]:
        """The weights so far, layer 0 first."""
        layers = []
        both = zip(*torch.stack((self._sums, self._n)).cpu(), strict=True)
        for layer, (sums, n) in enumerate(both):
            heads = [_weight(*one) for one in zip(sums, n, strict=True)]
            whole = _weight(sums.sum(), n.sum())
            layers.append(LayerWeights(layer, acting(self._encoder, layer), whole, heads))
        return layers


def _weight(total: Tensor, n: Tensor) -> float | None:
    return float(total / n) if n else None


def measure(
    runs: Sequence[OpenedRun],
    records: Iterable[Record],
    max_pieces: int,
    on_records: Callable[[int], None],
) -> AwslReport:
    """The AWSL of each run over the same records. on_records: receives how many more were read."""
    meters = [AwslMeter(run.model) for run in runs]

    def add_to(meter: AwslMeter) -> records_with_trees.Add:
        return lambda _, side: meter.add(side)

    to = [(run, add_to(meter)) for run, meter in zip(runs, meters, strict=True)]
    left_out = records_with_trees.feed(to, records, max_pieces, on_records)
    weights = [
        RunWeights(run.name, run.variant, meter.n_sentences, meter.layers())
        for run, meter in zip(runs, meters, strict=True)
    ]
    return AwslReport(weights, left_out)
