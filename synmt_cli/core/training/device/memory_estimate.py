"""An estimate of what a training run will need, before it is started."""

import math

import torch

from synmt_cli.core.data.corpus import Corpus
from synmt_cli.core.model.transformer import Transformer
from synmt_cli.core.run.config import Training
from synmt_cli.core.training.loss import BLOCK

PROGRAM = 250 * 2**20  # bytes of Python and torch before any tensor


def estimate(model: Transformer, corpus: Corpus, settings: Training) -> dict[str, int]:
    """Counts of a run; memory, in bytes at the peak, is a formula, good to a third on a CPU.

    Four numbers for each parameter (weight, gradient, two moments), and for each padded
    token about 10 vectors of d_model and 3 of d_ff a layer that the backward pass reads.
    """
    parameters = sum(p.numel() for p in model.parameters())
    epoch = corpus.epoch(settings.batch_tokens, settings.seed, 0, settings.batch_sentences)
    n_batches = sum(1 for _ in epoch)
    size = model.size
    layers = size.encoder_layers + 1.6 * size.decoder_layers  # the decoder attends twice
    vectors = layers * (10 * size.d_model + 3 * size.d_ff)
    at_once = settings.micro_tokens or settings.batch_tokens
    at_once = min(at_once, settings.batch_tokens * settings.accumulate)
    longest = math.sqrt(at_once)  # attention weights of a typical square batch
    weights = layers * size.n_heads * min(longest, 64)
    width = torch.get_default_dtype().itemsize
    activations = at_once * (vectors + weights) + 3 * BLOCK
    return {
        "parameters": parameters,
        "pairs": len(corpus),
        "target tokens": corpus.n_tokens,
        "batches per epoch": n_batches,
        "updates per epoch": math.ceil(n_batches / settings.accumulate),
        "memory": PROGRAM + int(width * (4 * parameters + activations)),
    }
