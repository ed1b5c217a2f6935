"""The attention weights of a trained model, sentence by sentence.

    encoder   each source token over the source
    decoder   each target token over the target up to itself, when the target is forced
    cross     each target token over the source, when the target is forced

Weights are given for each head of every layer, after mask and softmax, without dropout.
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from synmt_cli.core.analysis.opened_run import OpenedRun
from synmt_cli.core.analysis.witness import See, witnessed, witnessed_across
from synmt_cli.core.data.ragged import Array, Ragged
from synmt_cli.core.model.modifier import Side
from synmt_cli.core.model.moving import moved
from synmt_cli.core.text.vocabulary import BOS, PAD
from synmt_cli.errors import UsageError
from synmt_cli.formats.attention import Attention
from synmt_cli.formats.record import OK, SKIPPED, Record

StackName = Literal["encoder", "decoder", "cross"]
BEGIN, END = "<s>", "</s>"  # as tokens are shown


class AttentionExtractor:
    """Extracts the attention of one run. layers, heads: those wanted, from 0; all if empty.

    Raises UsageError for a layer or a head that does not exist, and for the target side of a
    model that re-reads its prefix.
    """

    def __init__(
        self, run: OpenedRun, stack: StackName, layers: Sequence[int], heads: Sequence[int]
    ) -> None:
        size = run.model.size
        if stack != "encoder" and run.model.rereads:
            raise UsageError(
                f"{run.name} reads its prefix anew for each token, with other weights "
                "each time; only --stack encoder can be shown"
            )
        n_layers = size.encoder_layers if stack == "encoder" else size.decoder_layers
        self._run = run
        self._stack = stack
        self._layers = _chosen("layers", layers, n_layers)
        self._heads = _chosen("heads", heads, size.n_heads)

    @torch.inference_mode()
    def extract(self, records: Sequence[Record], max_pieces: int) -> list[Attention]:
        """Returns one result for each record, in order; all their weights are held in memory.

        A record that is not `ok` has no weights; one of more than max_pieces becomes `skipped`.
        """
        results: list[Attention] = []
        rows_of = []
        for row, record in enumerate(records):
            status, reason = record.status, record.reason
            if status == OK and (reason := self.too_long(record, max_pieces)):
                status = SKIPPED
            if status == OK:
                rows_of.append(row)
            results.append(Attention(record.id, status, self._stack, reason))
        prepared = [self._run.prepared(records[row]) for row in rows_of]
        for numbers, side in self._run.batches(prepared):
            weights = self._weights([prepared[i] for i in numbers], side)
            for place, i in enumerate(numbers):
                results[rows_of[i]] = self._result(prepared[i], weights, place)
        return results

    def too_long(self, record: Record, limit: int) -> str | None:
        """Why a record has too many pieces to be shown, None if it has not."""
        pieces = [record.pieces or []]
        if self._stack != "encoder":
            pieces.append(self._target(record))
        return f"more than {limit:,} pieces" if max(map(len, pieces)) > limit else None

    def _weights(self, records: Sequence[Record], side: Side) -> dict[int, Tensor]:
        """Layer -> (B, H, Tq, T), for the chosen layers and heads."""
        seen: dict[int, Tensor] = {}
        heads = moved(torch.tensor(self._heads), side.ids.device)

        def see(layer: int, weights: Tensor) -> None:
            if layer in self._layers:
                seen[layer] = weights.index_select(1, heads)  # (B, chosen heads, Tq, T)

        self._attend(records, side, see)
        return {layer: weights.cpu() for layer, weights in seen.items()}

    def _attend(self, records: Sequence[Record], side: Side, see: See) -> None:
        """Runs the model, and passes the weights of each layer of the stack to `see`."""
        model = self._run.model
        if self._stack == "encoder":
            with witnessed(model.encoder, see_weights=see):
                model.encode(side)
            return
        memory = model.encode(side)
        target = Side(moved(self._targets(records), side.ids.device))
        if self._stack == "decoder":
            witnesses = witnessed(model.decoder, see_weights=see)
        else:
            witnesses = witnessed_across(model.decoder, see)
        with witnesses:
            model.decode(target, memory)

    def _targets(self, records: Sequence[Record]) -> Tensor:
        """Target ids after BOS, (B, T), padded on the right."""
        ids = self._run.vocabularies.target.ids
        rows = [[BOS, *ids(self._target(record))] for record in records]
        return torch.from_numpy(Ragged.of(rows, np.int64).padded(np.arange(len(rows)), PAD))

    def _target(self, record: Record) -> list[str]:
        """The tokens that the decoder writes for a record: pieces, or transitions."""
        writes_trees = self._run.model.grammar is not None
        return (record.transitions if writes_trees else record.tgt_pieces) or []

    def _result(self, record: Record, weights: dict[int, Tensor], place: int) -> Attention:
        """The weights of one sentence of a batch, padding cut off."""
        source = [*(record.pieces or ()), END]
        target = [BEGIN, *self._target(record)]
        tokens = source if self._stack == "encoder" else target
        keys = target if self._stack == "decoder" else source
        cut: dict[tuple[int, int], Array] = {}
        for layer in self._layers:
            for head, rows in zip(self._heads, weights[layer][place], strict=True):
                cut[layer, head] = rows[: len(tokens), : len(keys)].numpy()  # (tokens, keys)
        return Attention(record.id, OK, self._stack, None, tokens, keys, cut)


def _chosen(what: str, wanted: Sequence[int], n: int) -> list[int]:
    for one in wanted:
        if not 0 <= one < n:
            raise UsageError(f"--{what} {one}: the model has {what} 0 to {n - 1}")
    return sorted(set(wanted)) or list(range(n))
