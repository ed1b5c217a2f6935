"""An estimate of what a training run will need, before it is started."""

import math

import torch

from synmt_cli.core.data.corpus import Corpus
from synmt_cli.core.data.ragged import Array
from synmt_cli.core.model.prefixes import tokens_per_pass
from synmt_cli.core.model.transformer import Transformer
from synmt_cli.core.run.config import Training
from synmt_cli.core.run.device import HALF
from synmt_cli.core.training.batches import of_epoch, passes
from synmt_cli.core.training.loss import BLOCK

PROGRAM = 250 * 2**20  # bytes of Python and torch before any tensor


def estimate(model: Transformer, corpus: Corpus, settings: Training) -> dict[str, int]:
    """Counts of a run; peak memory, in bytes, follows a formula good to a third on a CPU.

    It has four numbers for each parameter (weight, gradient, two moments), and for each padded
    token about 10 vectors of d_model and 3 of d_ff per layer, which the backward pass reads. On a
    GPU these are in the run's precision; the one that was measured (benchmarks/GPU.md) needed 7.0
    GiB where the formula gives 9.5. It leaves out what modifiers keep, such as gcn's convolutions.
    """
    parameters = sum(p.numel() for p in model.parameters())
    batches, n = [*of_epoch(corpus, settings, 0)], settings.accumulate
    updates = [batches[i : i + n] for i in range(0, len(batches), n)]
    at_once = max(
        _padded_tokens(corpus, rows)
        for update in updates
        for rows in passes(corpus, settings, update)
    )
    size, device = model.size, model.output.weight.device
    decoded = at_once
    if model.rereads:  # prefixes make full passes
        decoded = max(tokens_per_pass(device, size.d_model), at_once)
    layers = size.encoder_layers * at_once + 1.6 * size.decoder_layers * decoded  # attends twice
    longest = math.sqrt(at_once)  # attention weights of a typical square batch
    activations = layers * (10 * size.d_model + 3 * size.d_ff + size.n_heads * min(longest, 64))
    full = torch.get_default_dtype()
    kept = full if device.type == "cpu" else HALF.get(settings.precision, full)
    return {
        "parameters": parameters,
        "pairs": len(corpus),
        "target tokens": corpus.n_tokens,
        "batches per epoch": len(batches),
        "updates per epoch": len(updates),
        "memory": PROGRAM
        + full.itemsize * (4 * parameters + 3 * BLOCK)
        + int(kept.itemsize * activations),
    }


def _padded_tokens(corpus: Corpus, rows: Array) -> int:
    """The tokens of the longer side of a pass, with padding.

    Transitions of the target count: they need memory, though batches are filled by pieces alone.
    """
    targets, sources = corpus.target.lengths_of(rows) + 1, corpus.source.lengths_of(rows)
    return len(rows) * int(max(targets.max(), sources.max()))
