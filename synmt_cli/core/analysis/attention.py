"""The attention weights of a trained model, sentence by sentence.

    encoder   each source token over the source
    decoder   each target token over the target up to itself, when the target is forced
    cross     each target token over the source, when the target is forced

Weights are those behind mask and softmax: of each head, in every layer, without dropout.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from synmt_cli.core.analysis.opened_run import Opened
from synmt_cli.core.analysis.witness import Witness, watched, watched_across
from synmt_cli.core.data.ragged import Array, Ragged
from synmt_cli.core.model.modifier import Side
from synmt_cli.core.text.vocabulary import BOS, PAD
from synmt_cli.errors import UsageError, printable
from synmt_cli.formats.attention import Attention
from synmt_cli.formats.record import Record

StackName = Literal["encoder", "decoder", "cross"]
BEGIN, END = "<s>", "</s>"  # as tokens are shown


class Looker:
    """Looks at the attention of one run. layers, heads: which, counted from 0; none is all.

    Raises UsageError for a layer or a head that is not there, and for the target's side of a
    model that re-reads its prefix.
    """

    def __init__(
        self, run: Opened, stack: StackName, layers: Sequence[int], heads: Sequence[int]
    ) -> None:
        size = run.model.size
        if stack != "encoder" and run.model.rereads:
            raise UsageError(
                f"{printable(run.name)} reads its prefix anew for each token, each time with other "
                "weights; only --stack encoder can be shown"
            )
        n_layers = size.encoder_layers if stack == "encoder" else size.decoder_layers
        self._run, self._stack, self._n_layers = run, stack, n_layers
        self._layers = _chosen("layers", layers, n_layers)
        self._heads = _chosen("heads", heads, size.n_heads)

    @torch.inference_mode()
    def look(self, records: Sequence[Record], max_pieces: int) -> list[Attention]:
        """One result for each record, in order. Memory is all their weights.

        Without weights are records that are not `ok` and, as `skipped`, longer ones.
        """
        found: list[Attention] = []
        rows_of = []
        for row, record in enumerate(records):
            status, reason = record.status, record.reason
            if status == "ok" and (reason := self._too_long(record, max_pieces)):
                status = "skipped"
            if status == "ok":
                rows_of.append(row)
            found.append(Attention(record.id, status, self._stack, reason))
        prepared = [self._run.prepared(records[row]) for row in rows_of]
        for numbers, side in self._run.batches(prepared):
            weights = self._weights([prepared[i] for i in numbers], side)
            for place, i in enumerate(numbers):
                found[rows_of[i]] = self._shown(prepared[i], weights, place)
        return found

    def _too_long(self, record: Record, limit: int) -> str | None:
        pieces = [record.pieces or []]
        if self._stack != "encoder":
            pieces.append(self._target(record))
        return f"more than {limit:,} pieces" if max(map(len, pieces)) > limit else None

    def _weights(self, records: Sequence[Record], side: Side) -> dict[int, Tensor]:
        """Layer -> (B, H, Tq, T), of the layers and heads that are wanted."""
        seen: dict[int, Tensor] = {}

        def see(layer: int, weights: Tensor) -> None:
            if layer in self._layers:
                seen[layer] = weights[:, self._heads].cpu()

        model, n_layers = self._run.model, self._n_layers
        if self._stack == "encoder":
            with watched(model.encoder, Witness(n_layers), Witness(n_layers, see_weights=see)):
                model.encode(side)
            return seen
        memory = model.encode(side)
        target = Side(self._targets(records).to(side.ids.device))
        if self._stack == "decoder":
            watching = watched(model.decoder, Witness(n_layers), Witness(n_layers, see_weights=see))
        else:
            watching = watched_across(model.decoder, see)
        with watching:
            model.decode(target, memory)
        return seen

    def _targets(self, records: Sequence[Record]) -> Tensor:
        """Target ids behind BOS, (B, T), padded on the right."""
        ids = self._run.vocabularies.target.ids
        rows = [[BOS, *ids(self._target(record))] for record in records]
        return torch.from_numpy(Ragged.of(rows, np.int64).padded(np.arange(len(rows)), PAD))

    def _target(self, record: Record) -> list[str]:
        """What the decoder writes for a record: pieces, or transitions."""
        writes_trees = self._run.model.grammar is not None
        return (record.transitions if writes_trees else record.tgt_pieces) or []

    def _shown(self, record: Record, weights: dict[int, Tensor], place: int) -> Attention:
        """The weights of one sentence of a batch, padding cut off."""
        source = [*(record.pieces or ()), END]
        target = [BEGIN, *self._target(record)]
        tokens = source if self._stack == "encoder" else target
        keys = target if self._stack == "decoder" else source
        cut: dict[tuple[int, int], Array] = {}
        for layer in self._layers:
            for head, rows in zip(self._heads, weights[layer][place], strict=True):
                cut[layer, head] = rows[: len(tokens), : len(keys)].numpy()
        return Attention(record.id, "ok", self._stack, None, tokens, keys, cut)


def _chosen(what: str, wanted: Sequence[int], n: int) -> list[int]:
    for one in wanted:
        if not 0 <= one < n:
            raise UsageError(f"--{what} {one}: the model has {what} 0 to {n - 1}")
    return sorted(set(wanted)) or list(range(n))
