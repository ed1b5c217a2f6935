"""How good a model is on held-out pairs: negative log-likelihood, accuracy, BLEU."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import torch

from synmt_cli import signals
from synmt_cli.core.data.batch import fill, to_device
from synmt_cli.core.data.corpus import Corpus
from synmt_cli.core.data.ragged import Array
from synmt_cli.core.decoding.beam import search
from synmt_cli.core.decoding.hypothesis import Rules
from synmt_cli.core.model.transformer import Transformer
from synmt_cli.core.run import device as devices
from synmt_cli.core.run.config import Training
from synmt_cli.core.text.vocabulary import Vocabulary
from synmt_cli.core.training.loss import cross_entropy

ROWS = 64  # sentences translated at a time


class Abandoned(Exception):
    """An end was asked for while validating."""


@dataclass(frozen=True, slots=True)
class Validation:
    """One validation of a model in progress. target: the vocabulary of dev's targets."""

    model: Transformer
    dev: Corpus
    target: Vocabulary
    settings: Training
    device: torch.device
    request: signals.Request

    def run(self) -> tuple[float, float]:
        """Nats per target token, and the chosen metric: the larger, the better.

        Raises Abandoned as soon as an end is asked for.
        """
        precision = devices.precision(self.settings.precision, self.device)
        self.model.eval()
        try:
            with torch.inference_mode(), precision:
                nll, accuracy = self._teacher_forced()
                match self.settings.metric:
                    case "bleu":
                        return nll, self._bleu()
                    case "accuracy":
                        return nll, accuracy
                    case _:
                        return nll, -nll
        finally:
            self.model.train()

    def _teacher_forced(self) -> tuple[float, float]:
        """Nats per target token without label smoothing, and percent of tokens guessed right.

        EOS counts. Tokens are guessed only where accuracy is the metric.
        """
        dev, model = self.dev, self.model
        nll, n_right = 0.0, 0
        lengths = np.maximum(dev.target.lengths + 1, dev.source.lengths)
        order = np.argsort(lengths, kind="stable")
        for rows in self._unless_asked(fill(order, lengths, self.settings.batch_tokens)):
            batch = dev.batch(rows).to(self.device)
            states, _ = model.decode(batch.target, model.encode(batch.source))  # (B, T, D)
            states, target = states.flatten(0, 1), batch.tokens()  # (B * T, D), (N,)
            if batch.real is not None:
                states = states.index_select(0, batch.real)  # (N, D)
            nll += cross_entropy(states, model.output.weight, target, 0.0).nll.item()
            if self.settings.metric == "accuracy":
                n_right += int((model.logits(states).argmax(-1) == target).sum())
        return nll / dev.n_tokens, 100 * n_right / dev.n_tokens

    def _bleu(self) -> float:
        """sacreBLEU (13a, cased) of greedy translations of the raw lines."""
        from sacrebleu.metrics.bleu import BLEU

        hypotheses = [""] * len(self.dev)
        order = np.argsort(-self.dev.source.lengths, kind="stable")
        for rows in self._unless_asked(np.split(order, range(ROWS, len(order), ROWS))):
            source = to_device(self.dev.sources(rows), self.device)
            for row, best in zip(rows, search([self.model], source, Rules(beam=1)), strict=True):
                hypotheses[row] = self.target.decode(best[0].ids)
        return float(BLEU().corpus_score(hypotheses, [self.dev.references]).score)

    def _unless_asked(self, batches: Iterable[Array]) -> Iterator[Array]:
        """Yields the batches. Raises Abandoned once an end is asked for."""
        for rows in batches:
            if self.request:
                raise Abandoned
            yield rows
