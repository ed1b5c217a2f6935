"""The Average Weight of Syntax Logits (AWSL). Xie et al. (2021), section 4.3, eq. 7.

    w      = 1 / N^2 sum_ij |e_ij| / (|e_ij| + |e^s_ij|)          eq. 7, as it is printed
    AWSL_l = mean of w over sentences and heads of layer l

e is the scaled dot product of queries and keys, e^s what the variant adds to it: for GPS its
second term. As printed, w is the share of the normal logits; the measure's name, the text and
Figure 3 mean that of syntax, |e^s| / (|e| + |e^s|) = 1 - w. Both are given.

The paper does not say, and we take: scores before the mask and the softmax; the pairs (i, j),
i = j among them, of tokens that have a place in the tree of the same sentence, so no end of
sentence and no padding; a pair where both are 0 does not count; dropout is off. For variants
that do not add to the scores e^s is what they change them by: (D - 1) e for PASCAL.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import torch
from torch import Tensor

from synmt_cli.core.analysis.opened_run import Opened
from synmt_cli.core.analysis.witness import Witness, watched
from synmt_cli.core.model.modifier import Modifier, Side
from synmt_cli.core.model.transformer import Transformer
from synmt_cli.formats.record import Record
from synmt_cli.formats.reports.awsl import LayerWeights, RunWeights, SyntaxWeight

NEEDS = ("sentence",)


def weigh(before: Tensor, after: Tensor, valid: Tensor) -> tuple[Tensor, Tensor]:
    """The share of syntax in each sentence and head, and how many pairs it is the mean of.

    before, after: (B, H, T, T), scores without and with syntax. valid: (B, T, T) bool.
    Returns (B, H) twice.
    """
    normal, syntax = before.double().abs(), (after.double() - before.double()).abs()
    both = normal + syntax
    counted = valid[:, None] & (both > 0)
    n = counted.sum((-2, -1))
    return (syntax / both).where(counted, 0.0).sum((-2, -1)) / n.clamp(min=1), n


def valid_pairs(side: Side) -> Tensor:
    """Which tokens have a place in the tree of the same sentence, (B, T, T) bool."""
    sentence = side.features["sentence"]
    if side.pad is not None:
        sentence = sentence.masked_fill(side.pad, -1)
    return (sentence[:, :, None] == sentence[:, None, :]) & (sentence >= 0)[:, :, None]


class Meter:
    """Sums the weights of one encoder's layers over batches."""

    def __init__(self, model: Transformer) -> None:
        self._encoder, size = model.encoder, model.size
        self._sums = torch.zeros(size.encoder_layers, size.n_heads, dtype=torch.float64)
        self._n = torch.zeros_like(self._sums)  # sentences with a pair that counts
        self.n_sentences = 0

    @torch.inference_mode()
    def add(self, side: Side) -> None:
        """Encodes a batch and counts it in. side has the feature `sentence`."""
        valid = valid_pairs(side)
        before: dict[int, Tensor] = {}

        def compare(layer: int, after: Tensor) -> None:
            shares, n = weigh(before.pop(layer), after, valid)
            self._sums[layer] += shares.sum(0).cpu()
            self._n[layer] += (n > 0).sum(0).cpu()

        n_layers = len(self._encoder.layers)
        first, last = Witness(n_layers, before.__setitem__), Witness(n_layers, compare)
        with watched(self._encoder, first, last):
            self._encoder(side)
        self.n_sentences += len(side.ids)

    def layers(self) -> list[LayerWeights]:
        """What was found, layer 0 first."""
        found = []
        for layer, (sums, n) in enumerate(zip(self._sums, self._n, strict=True)):
            heads = [_weight(*one) for one in zip(sums, n, strict=True)]
            whole = _weight(sums.sum(), n.sum())
            found.append(LayerWeights(layer, self._acting(layer), whole, heads))
        return found

    def _acting(self, layer: int) -> list[str]:
        """The variants that change this layer's scores."""
        return [
            m.name
            for m in self._encoder.modifiers
            if isinstance(m, Modifier)
            and layer in m.layers
            and type(m).scores is not Modifier.scores
        ]


def _weight(total: Tensor, n: Tensor) -> SyntaxWeight | None:
    if not n:
        return None
    share = float(total / n)
    return SyntaxWeight(share, 1.0 - share)


class Measure:
    """The AWSL of one run over a stream of records."""

    def __init__(self, run: Opened, max_pieces: int) -> None:
        self._run, self._max_pieces = run, max_pieces
        self._meter = Meter(run.model)
        self.left_out: Counter[str] = Counter()

    def add(self, records: Sequence[Record]) -> None:
        """Counts records in, or why they are left out."""
        kept = []
        for record in records:
            if reason := _unfit(record, self._max_pieces):
                self.left_out[reason] += 1
            else:
                kept.append(self._run.prepared(record))
        for _, side in self._run.batches(kept):
            self._meter.add(side)

    def result(self) -> RunWeights:
        """What was found so far."""
        run = self._run
        return RunWeights(run.name, run.variant, self._meter.n_sentences, self._meter.layers())


def _unfit(record: Record, max_pieces: int) -> str:
    """Why there is nothing to measure, or ""."""
    if record.status != "ok":
        return record.status
    if all(word < 0 for word in record.piece_word or ()) or not record.heads:
        return "without a tree"
    if len(record.pieces or ()) > max_pieces:
        return f"of more than {max_pieces:,} pieces"
    return ""
