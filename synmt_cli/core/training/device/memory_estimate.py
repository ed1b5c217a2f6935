"""An estimate of what a training run will need, before it is started."""

import math

import torch

from synmt_cli.core.data.corpus import Corpus
from synmt_cli.core.data.ragged import Array
from synmt_cli.core.model.prefixes import cells_of
from synmt_cli.core.model.transformer import Transformer
from synmt_cli.core.run.config import Training
from synmt_cli.core.training.batches import of_epoch
from synmt_cli.core.training.loss import BLOCK

PROGRAM = 250 * 2**20  # bytes of Python and torch before any tensor


def estimate(model: Transformer, corpus: Corpus, settings: Training) -> dict[str, int]:
    """Counts of a run; memory, in bytes at the peak, is a formula, good to a third on a CPU.

    Four numbers for each parameter (weight, gradient, two moments), and for each padded
    token about 10 vectors of d_model and 3 of d_ff a layer that the backward pass reads. What
    modifiers keep, such as gcn's convolutions, is not counted.
    """
    parameters = sum(p.numel() for p in model.parameters())
    cells = [_cells(corpus, rows) for rows in of_epoch(corpus, settings, 0)]
    n_batches, largest = len(cells), max(cells)
    if settings.micro_tokens:
        at_once = min(settings.micro_tokens, largest * settings.accumulate)
    else:
        at_once = largest
    size = model.size
    decoded = at_once
    if model.rereads:  # prefixes make full passes
        decoded = max(cells_of(model.output.weight.device, size.d_model), at_once)
    layers = size.encoder_layers * at_once + 1.6 * size.decoder_layers * decoded  # attends twice
    longest = math.sqrt(at_once)  # attention weights of a typical square batch
    activations = layers * (10 * size.d_model + 3 * size.d_ff + size.n_heads * min(longest, 64))
    width = torch.get_default_dtype().itemsize
    return {
        "parameters": parameters,
        "pairs": len(corpus),
        "target tokens": corpus.n_tokens,
        "batches per epoch": n_batches,
        "updates per epoch": math.ceil(n_batches / settings.accumulate),
        "memory": PROGRAM + int(width * (4 * parameters + activations + 3 * BLOCK)),
    }


def _cells(corpus: Corpus, rows: Array) -> int:
    """The tokens of the longer side of a batch, padding counted."""
    targets, sources = corpus.target.lengths_of(rows) + 1, corpus.source.lengths_of(rows)
    return len(rows) * int(max(targets.max(), sources.max()))
