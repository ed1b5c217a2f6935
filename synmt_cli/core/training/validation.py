"""How good a model is on held-out pairs: negative log-likelihood, accuracy, BLEU."""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
import torch

from synmt_cli import signals
from synmt_cli.core.data.batch import by_length, to_device
from synmt_cli.core.data.corpus import Corpus
from synmt_cli.core.data.ragged import Array
from synmt_cli.core.decoding.batching.supply import Room
from synmt_cli.core.decoding.hypothesis import Rules
from synmt_cli.core.decoding.search import stream
from synmt_cli.core.model.moving import moved
from synmt_cli.core.model.transformer import Transformer
from synmt_cli.core.run import device as devices
from synmt_cli.core.run.config import Training
from synmt_cli.core.text import tokenizers
from synmt_cli.core.text.vocabulary import Vocabulary
from synmt_cli.core.training.batches import cut
from synmt_cli.core.training.events import TokenFigures


def room_on(device: torch.device) -> Room:
    """How much is translated at a time. A GPU starts as many kernels for few sentences as for many.

    Fewer long sources fit, or memory would have no bound: 32,768 tokens take 0.8 GB in the layers
    of a base model, and their translations as much again.
    """
    return Room(64 if device.type == "cpu" else 512, 2**15)


class Abandoned(Exception):
    """An end was asked for while validating."""


@dataclass(frozen=True, slots=True)
class Measured:
    """nll: nats per target token. value: of the chosen metric, the larger, the better.

    figures: of `all` tokens and, where targets are trees, of `words` and `arcs`. closed: as in
    Validated.
    """

    nll: float
    value: float
    figures: dict[str, TokenFigures] = field(default_factory=dict)
    closed: int | None = None


@dataclass(frozen=True, slots=True)
class Validation:
    """One validation of a model in progress. target: the vocabulary of dev's targets.

    show: is told what is done, and how far it is.
    """

    model: Transformer
    dev: Corpus
    target: Vocabulary
    settings: Training
    device: torch.device
    request: signals.Request
    show: Callable[[str], None] = lambda doing: None

    def run(self) -> Measured:
        """Measures everything. Raises Abandoned as soon as an end is asked for."""
        precision = devices.precision(self.settings.precision, self.device)
        self.model.eval()
        try:
            with torch.inference_mode(), precision:
                figures = self._teacher_forced()
                every = figures["all"]
                match self.settings.metric:
                    case "bleu" if math.isfinite(every.nll):
                        bleu, n_closed = self._bleu()
                        closed = n_closed if "arcs" in figures else None
                        return Measured(every.nll, bleu, figures, closed)
                    case "accuracy":
                        return Measured(every.nll, every.accuracy, figures)
                    case _:
                        return Measured(every.nll, -every.nll, figures)
        finally:
            self.model.train()

    def _teacher_forced(self) -> dict[str, TokenFigures]:
        """Figures of `all` target tokens, and of `words` and `arcs`. EOS counts."""
        dev, model = self.dev, self.model
        grammar = model.grammar
        is_arc = None if grammar is None else moved(torch.from_numpy(grammar.is_arc), self.device)
        # For all tokens and for arcs: how many, their nats, and how many are guessed right. The
        # sums stay on the device, which is asked once, at the end.
        sums = torch.zeros(2, 3, dtype=devices.widest(self.device), device=self.device)
        batches = cut(dev, self.settings, np.arange(len(dev)))
        for rows in self._unless_asked(batches, "validating"):
            batch = dev.batch(rows).to(self.device)
            memory = model.encode(batch.source)
            states, _ = model.decode(batch.target, memory, batch.lengths)  # (B, T, D)
            target = batch.tokens()  # (N,)
            log_probs, is_right = model.judged(batch.without_padding(states), target)  # (N,)
            each = torch.stack((torch.ones_like(log_probs), -log_probs, is_right)).to(sums.dtype)
            sums[0] += each.sum(1)
            if is_arc is not None:
                sums[1] += (each * is_arc[target]).sum(1)

        def figures(n: float, nll: float, n_right: float) -> TokenFigures:
            return TokenFigures.of(int(n), nll, int(n_right), len(dev))

        every, arcs = sums.tolist()
        found = {"all": figures(*every)}
        if is_arc is not None:
            words = [a - b for a, b in zip(every, arcs, strict=True)]
            found["words"], found["arcs"] = figures(*words), figures(*arcs)
        return found

    def _bleu(self) -> tuple[float, int]:
        """sacreBLEU (cased) of greedy translations of the raw lines, and how many of them
        ended before their tree was whole.
        """
        metric = tokenizers.bleu(self.settings.tokenize)
        n_closed = 0
        hypotheses = [""] * len(self.dev)
        room = room_on(self.device)
        batches = by_length(self.dev.source.lengths, room.tokens, room.sources)
        sources = (
            (rows.tolist(), [to_device(self.dev.sources(rows), self.device)])
            for rows in self._unless_asked(batches, "translating dev")
        )
        rules = Rules(beam=1, scores=False)
        found = stream(
            [self.model], sources, rules, [rules.lenpen], room, watch=self._refuse_if_asked
        )
        for some in found:
            for row, ((best, *_),) in some:
                hypotheses[row] = self.target.decode(best.ids)
                n_closed += best.n_closing > 0
        return float(metric.corpus_score(hypotheses, [self.dev.references]).score), n_closed

    def _refuse_if_asked(self) -> None:
        if self.request:
            raise Abandoned

    def _unless_asked(self, batches: Iterable[Array], doing: str) -> Iterator[Array]:
        """Yields the batches. Raises Abandoned once an end is asked for."""
        n_done = 0
        for rows in batches:
            self._refuse_if_asked()
            self.show(f"{doing}: {n_done:,} of {len(self.dev):,} pairs")
            yield rows
            n_done += len(rows)
