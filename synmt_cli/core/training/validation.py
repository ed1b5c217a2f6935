"""How good a model is on held-out pairs: negative log-likelihood, accuracy, BLEU."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import torch
from torch import Tensor

from synmt_cli import signals
from synmt_cli.core.data.batch import to_device
from synmt_cli.core.data.corpus import Corpus, fill
from synmt_cli.core.data.ragged import Array
from synmt_cli.core.decoding.beam import search
from synmt_cli.core.decoding.hypothesis import Rules
from synmt_cli.core.model.transformer import Transformer
from synmt_cli.core.text.vocabulary import PAD, Vocabulary
from synmt_cli.core.training.loss import cross_entropy

ROWS = 64  # sentences translated at a time


class Abandoned(Exception):
    """An end was asked for while validating."""


def _unless(request: signals.Request, batches: Iterable[Array]) -> Iterator[Array]:
    for rows in batches:
        if request:
            raise Abandoned
        yield rows


def nll(
    model: Transformer,
    dev: Corpus,
    batch_tokens: int,
    device: torch.device,
    request: signals.Request,
) -> float:
    """Nats per target token, EOS counted, without label smoothing. Raises Abandoned."""
    total = 0.0
    for states, target in _forced(model, dev, batch_tokens, device, request):
        total += cross_entropy(states, model.output.weight, target, 0.0).nll.item()
    return total / dev.n_tokens


def accuracy(
    model: Transformer,
    dev: Corpus,
    batch_tokens: int,
    device: torch.device,
    request: signals.Request,
) -> float:
    """Percent of target tokens, EOS counted, that are the most probable one. Raises Abandoned."""
    n_right = 0
    for states, target in _forced(model, dev, batch_tokens, device, request):
        n_right += int((model.logits(states).argmax(-1) == target).sum())
    return 100 * n_right / dev.n_tokens


def _forced(
    model: Transformer,
    dev: Corpus,
    batch_tokens: int,
    device: torch.device,
    request: signals.Request,
) -> Iterator[tuple[Tensor, Tensor]]:
    """Teacher forcing: the decoder's states (N, D) and the tokens that come next (N,)."""
    lengths = np.maximum(dev.target.lengths + 1, dev.source.lengths)
    batches = fill(np.argsort(lengths, kind="stable"), lengths, batch_tokens)
    for rows in _unless(request, batches):
        batch = dev.batch(rows)
        memory = model.encode(to_device(batch.source, device))
        states, _ = model.decode(to_device(batch.target, device), memory)
        target = batch.target_out.to(device)
        real = target != PAD
        yield states[real], target[real]


def bleu(
    model: Transformer,
    dev: Corpus,
    target: Vocabulary,
    device: torch.device,
    request: signals.Request,
) -> float:
    """sacreBLEU (13a, cased) of greedy translations of the raw lines. Raises Abandoned."""
    from sacrebleu.metrics.bleu import BLEU

    hypotheses = [""] * len(dev)
    order = np.argsort(-dev.source.lengths, kind="stable")
    for rows in _unless(request, np.split(order, range(ROWS, len(order), ROWS))):
        source = to_device(dev.sources(rows), device)
        for row, best in zip(rows, search([model], source, Rules(beam=1)), strict=True):
            hypotheses[row] = target.decode(best[0].ids)
    return float(BLEU().corpus_score(hypotheses, [dev.references]).score)
