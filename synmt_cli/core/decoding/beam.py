"""Beam search, exact for its score, over any scorer of the next token.

A step extends the K best prefixes of a source. The extensions by EOS that are among the K best
of all are finished; the K best others go on. Finished translations are ranked by

    score = log P(y, EOS | x) / (|y| + 1)^lenpen                   as in fairseq, not GNMT

where |y| is in pieces: transitions do not count. A source is done when nbest translations are
finished and no prefix can beat the worst of them: log-probabilities only fall and the
denominator is at most limit^lenpen, so every translation that begins with a prefix scores at
most log P(prefix) / limit^lenpen. With less `patience` it is done when enough are finished.
Tokens that may not come next have probability 0, and the others are not scaled up for it.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from synmt_cli.core.decoding.cached import CachedScorer
from synmt_cli.core.decoding.greedy import greedy, remaining
from synmt_cli.core.decoding.hypothesis import (
    Hypothesis,
    Rules,
    hypothesis,
    limits,
    normalised_score,
)
from synmt_cli.core.decoding.progress import (
    SPECIAL,
    PieceProgress,
    TransitionProgress,
)
from synmt_cli.core.decoding.scorer import EnsembleScorer, RereadingScorer, Scorer
from synmt_cli.core.decoding.top_k import top
from synmt_cli.core.model.modifier import Side
from synmt_cli.core.model.transformer import Transformer
from synmt_cli.core.text.vocabulary import BOS, EOS


def search(
    models: Sequence[Transformer], sources: Side | Sequence[Side], rules: Rules
) -> list[list[Hypothesis]]:
    """The nbest translations of each source, best first, in evaluation mode.

    models: several form an ensemble: they have one target vocabulary, and their probabilities
    are averaged. sources: ids that end in EOS; one Side for all models, or one for each where
    features differ.
    """
    sides = [sources] * len(models) if isinstance(sources, Side) else list(sources)
    with _evaluating(models), torch.inference_mode():
        scorers = [
            RereadingScorer(model, side) if model.rereads else CachedScorer(model, side)
            for model, side in zip(models, sides, strict=True)
        ]
        scorer = scorers[0] if len(scorers) == 1 else EnsembleScorer(scorers)
        limit = limits(sides[0], rules.longest)
        grammar = models[0].grammar
        progress: PieceProgress = (
            TransitionProgress(grammar, limit, rules.constrained)
            if grammar
            else PieceProgress(limit)
        )
        if rules.beam == 1:
            nbests = [[best] for best in greedy(scorer, progress, len(limit), rules.lenpen)]
        else:
            nbests = BeamSearch(scorer, progress, limit, rules).run()
    if grammar is None:
        return nbests
    return [  # a tree that reached the limit had to end: there was no room for another piece
        [replace(tree, cut=tree.cut or tree.length >= longest) for tree in nbest]
        for nbest, longest in zip(nbests, limit.tolist(), strict=True)
    ]


@contextmanager
def _evaluating(models: Sequence[Transformer]) -> Iterator[None]:
    before = [model.training for model in models]
    try:
        for model in models:
            model.eval()
        yield
    finally:
        for model, training in zip(models, before, strict=True):
            model.train(training)


class Extensions(NamedTuple):
    """The extensions of the K prefixes of each source by one token.

    eos_scores: (B, K), log P of prefix and EOS; finished: (B, K) bool, where it is among the K
    best of all. parents, tokens, scores: (B, K'), the extensions by other tokens that go on,
    best first.
    """

    eos_scores: Tensor
    finished: Tensor
    parents: Tensor
    tokens: Tensor
    scores: Tensor


def extend(log_probs: Tensor, scores: Tensor, beam: int) -> Extensions:
    """log_probs: (B, K, V), the next token's, overwritten; scores: (B, K), each prefix's log P.

    Both are -inf for what is not allowed; such extensions come last.

    Ties go to EOS, then to the better prefix, then as `top` orders tokens.
    """
    eos = scores + log_probs[..., EOS]  # (B, K)
    log_probs[..., EOS] = -torch.inf
    width = min(beam, log_probs.size(-1) - len(SPECIAL) - 1)
    best, tokens = top(log_probs, width)  # (B, K, width)
    best = (scores[..., None] + best).flatten(1)  # (B, K * width)
    best, order = best.sort(dim=-1, descending=True, stable=True)
    best, order = best[:, :beam], order[:, :beam]  # (B, K')
    n_better = (best[:, None] > eos[..., None]).sum(-1) + (eos[:, None] > eos[..., None]).sum(-1)
    finished = (n_better < beam) & eos.isfinite()  # (B, K)
    tokens = tokens.flatten(1).gather(1, order)  # (B, K')
    return Extensions(eos, finished, order // width, tokens, best)


class BeamSearch:
    """The search for one batch of sources.

    scorer: of the next token. progress: of the prefixes. limits: (B,), the longest length.
    """

    def __init__(
        self, scorer: Scorer, progress: PieceProgress, limits: Tensor, rules: Rules
    ) -> None:
        self.scorer = scorer
        self.progress = progress
        self.rules = rules
        self.limits: list[int] = limits.tolist()
        n = len(limits)
        self.nbests: list[list[Hypothesis]] = [[] for _ in range(n)]
        self.n_finished = [0] * n
        self.sources = list(range(n))  # of the places in the batch
        self.prefixes = torch.full((n, 1, 1), BOS, device=limits.device)  # (B, K, T)
        self.scores = torch.zeros(n, 1, device=limits.device)  # (B, K)

    def run(self) -> list[list[Hypothesis]]:
        """The nbest hypotheses of each source."""
        while self.sources:
            log_probs = self.scorer.step(Side(self.prefixes, features=self.progress.features))
            self.progress.forbid(log_probs)
            step = extend(log_probs, self.scores, self.rules.beam)
            self.finish(step)
            self.advance(step)
        return self.nbests

    def finish(self, step: Extensions) -> None:
        """Keeps the nbest of the translations that end here."""
        places = step.finished.nonzero()[:, 0].tolist()
        tokens = self.prefixes[step.finished][:, 1:].tolist()
        log_probs = step.eos_scores[step.finished].tolist()
        lengths = (self.progress.lengths[step.finished] + 1).tolist()
        for place, ids, log_prob, length in zip(places, tokens, log_probs, lengths, strict=True):
            source = self.sources[place]
            nbest = self.nbests[source]
            self.n_finished[source] += 1
            nbest.append(hypothesis([*ids, EOS], log_prob, length, self.rules.lenpen))
            nbest.sort(key=lambda h: -h.score)  # stable: among equals the first, so the shorter
            del nbest[self.rules.nbest :]

    def advance(self, step: Extensions) -> None:
        """Goes on with the extended prefixes of the sources that are not done."""
        best, full = step.scores[:, 0].tolist(), self.progress.full.tolist()
        ends = [
            is_full or self.is_done(source, score)
            for is_full, source, score in zip(full, self.sources, best, strict=True)
        ]
        stay = torch.arange(len(ends), device=step.scores.device)  # (B,)
        if any(ends):
            self.cut(step, [place for place, is_full in enumerate(full) if is_full])
            stay = remaining(torch.tensor(ends, device=stay.device))  # (B',)
            self.sources = [self.sources[place] for place in stay.tolist()]
        parents, tokens = step.parents[stay], step.tokens[stay]  # (B', K')
        self.scorer.select(stay, parents)
        self.progress.select(stay, parents, tokens)
        self.prefixes = torch.cat(
            (self.prefixes[stay[:, None], parents], tokens[..., None]), dim=-1
        )  # (B', K', T + 1)
        self.scores = step.scores[stay]

    def is_done(self, source: int, score: float) -> bool:
        """Whether no extension of a prefix of log-probability `score` or less enters the nbest.

        Or whether there are enough translations without it.
        """
        rules, nbest = self.rules, self.nbests[source]
        if self.n_finished[source] >= rules.patience * rules.beam:
            return True
        if score == -math.inf:  # no prefix is left
            return True
        bound = normalised_score(score, self.limits[source], rules.lenpen)
        return len(nbest) == rules.nbest and nbest[-1].score >= bound

    def cut(self, step: Extensions, places: list[int]) -> None:
        """Fills up the nbest of these places with prefixes that reached the limit."""
        for place in places:
            nbest = self.nbests[self.sources[place]]
            n_prefixes = int(step.scores[place].isfinite().sum())
            best = slice(0, min(self.rules.nbest - len(nbest), n_prefixes))
            parents, tokens = step.parents[place, best], step.tokens[place, best]
            lengths = self.progress.lengths[place, parents] + self.progress.counts(tokens)
            for prefix, token, log_prob, length in zip(
                self.prefixes[place, parents, 1:].tolist(),
                tokens.tolist(),
                step.scores[place, best].tolist(),
                lengths.tolist(),
                strict=True,
            ):
                nbest.append(hypothesis([*prefix, token], log_prob, length, self.rules.lenpen))
