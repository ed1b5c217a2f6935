"""Beam search, exact for its score, over any scorer of the next token.

A step extends the K best prefixes of a source. Of all extensions, those by EOS that are
among the K best are finished; the K best others go on. Finished translations are ranked by

    score = log P(y, EOS | x) / (|y| + 1)^lenpen                   as in fairseq, not GNMT

where |y| is in pieces: transitions do not count. A source is done when nbest translations are
finished and no prefix can beat the worst of them: log-probabilities only fall and the
denominator is at most limit^lenpen, so whatever begins with a prefix scores at most
log P(prefix) / limit^lenpen. With less `patience` it is done when enough are finished. What
may not come next has probability 0 there, and what may is not scaled up for it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from synmt_cli.core.decoding.cached import CachedScorer
from synmt_cli.core.decoding.greedy import greedy, remaining
from synmt_cli.core.decoding.hypothesis import Hypothesis, Rules, hypothesis, limits, scored
from synmt_cli.core.decoding.progress import SPECIAL, Derivations, Pieces, PrefixProgress
from synmt_cli.core.decoding.rereading import RereadingScorer
from synmt_cli.core.decoding.scorer import Ensemble, Scorer
from synmt_cli.core.decoding.top_k import top
from synmt_cli.core.model.modifier import Side
from synmt_cli.core.model.transformer import Transformer
from synmt_cli.core.text.vocabulary import BOS, EOS


def search(
    models: Sequence[Transformer], sources: Side | Sequence[Side], rules: Rules
) -> list[list[Hypothesis]]:
    """The nbest translations of each source, best first, in evaluation mode.

    models: more than one are an ensemble: they have one target vocabulary, and their
    probabilities are averaged. sources: ids that end in EOS; one Side for every model, or
    one for each where features differ.
    """
    sides = [sources] * len(models) if isinstance(sources, Side) else list(sources)
    with _evaluating(models), torch.inference_mode():
        scorers = [
            RereadingScorer(model, side) if model.rereads else CachedScorer(model, side)
            for model, side in zip(models, sides, strict=True)
        ]
        scorer = scorers[0] if len(scorers) == 1 else Ensemble(scorers)
        limit = limits(sides[0], rules.longest)
        grammar = models[0].grammar
        progress = Derivations(grammar, limit, rules.constrained) if grammar else Pieces(limit)
        if rules.beam == 1:
            found = [[best] for best in greedy(scorer, progress, len(limit), rules.lenpen)]
        else:
            found = BeamSearch(scorer, progress, limit, rules).run()
        return found if grammar is None else _marked(found, limit)


def _marked(found: list[list[Hypothesis]], limit: Tensor) -> list[list[Hypothesis]]:
    """Trees that had to end because the limit left room for no other piece are cut, too."""
    return [
        [replace(one, cut=one.cut or one.length >= most) for one in nbest]
        for nbest, most in zip(found, limit.tolist(), strict=True)
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

    end: (B, K), log P of prefix and EOS; ends: (B, K) bool, where it is among the K best of
    all. parents, tokens, scores: (B, K'), the extensions by other tokens that go on, best first.
    """

    end: Tensor
    ends: Tensor
    parents: Tensor
    tokens: Tensor
    scores: Tensor


def extend(each: Tensor, scores: Tensor, beam: int) -> Extensions:
    """each: (B, K, V), the next token's log P, overwritten; scores: (B, K), each prefix's.

    Both are -inf for what may not be; such extensions come last.

    Ties go to EOS, then to the better prefix, then as `top` orders tokens.
    """
    end = scores + each[..., EOS]
    each[..., EOS] = -torch.inf
    width = min(beam, each.size(-1) - len(SPECIAL) - 1)
    best, tokens = top(each, width)  # (B, K, width)
    best, order = (scores[..., None] + best).flatten(1).sort(dim=-1, descending=True, stable=True)
    best, order = best[:, :beam], order[:, :beam]
    better = (best[:, None] > end[..., None]).sum(-1) + (end[:, None] > end[..., None]).sum(-1)
    ends = (better < beam) & end.isfinite()
    return Extensions(end, ends, order // width, tokens.flatten(1).gather(1, order), best)


class BeamSearch:
    """The search for one batch of sources.

    scorer: of the next token. progress: of the prefixes. limits: (B,), the greatest length.
    """

    def __init__(
        self, scorer: Scorer, progress: PrefixProgress, limits: Tensor, rules: Rules
    ) -> None:
        self.scorer, self.progress = scorer, progress
        self.beam, self.nbest, self.lenpen = rules.beam, rules.nbest, rules.lenpen
        n, device = len(limits), limits.device
        self.found: list[list[Hypothesis]] = [[] for _ in range(n)]
        self.enough, self.n_finished = rules.patience * rules.beam, [0] * n
        self.limits: list[int] = limits.tolist()
        self.where = list(range(n))  # place in the batch -> source
        self.prefixes = torch.full((n, 1, 1), BOS, device=device)  # (B, K, T), T = steps done + 1
        self.scores = torch.zeros(n, 1, device=device)  # (B, K)

    def run(self) -> list[list[Hypothesis]]:
        """The nbest hypotheses of each source."""
        while self.where:
            each = self.scorer.step(Side(self.prefixes, features=self.progress.features))
            self.progress.forbid(each)
            step = extend(each, self.scores, self.beam)
            self.finish(step)
            self.advance(step)
        return self.found

    def finish(self, step: Extensions) -> None:
        """Keeps the nbest of the translations that end here."""
        places = step.ends.nonzero()[:, 0].tolist()
        tokens = self.prefixes[step.ends][:, 1:].tolist()
        log_probs = step.end[step.ends].tolist()
        lengths = (self.progress.lengths[step.ends] + 1).tolist()
        for place, ids, log_prob, n in zip(places, tokens, log_probs, lengths, strict=True):
            self.n_finished[self.where[place]] += 1
            found = self.found[self.where[place]]
            found.append(hypothesis([*ids, EOS], log_prob, n, self.lenpen))
            found.sort(key=lambda h: -h.score)  # stable: of equals the first found, so shorter
            del found[self.nbest :]

    def advance(self, step: Extensions) -> None:
        """Goes on with the extended prefixes of the sources that are not done."""
        best, full = step.scores[:, 0].tolist(), self.progress.full.tolist()
        ends = [
            is_full or self.is_done(source, score)
            for is_full, source, score in zip(full, self.where, best, strict=True)
        ]
        stay, parents = torch.arange(len(ends), device=step.scores.device), step.parents
        if any(ends):
            self.cut(step, [place for place, is_full in enumerate(full) if is_full])
            stay = remaining(torch.tensor(ends, device=stay.device))
            self.where = [self.where[place] for place in stay.tolist()]
        self.scorer.select(stay, parents[stay])
        self.progress.select(stay, parents[stay], step.tokens[stay])
        rows = self.prefixes[stay[:, None], parents[stay]]  # (B, K, T)
        self.prefixes = torch.cat((rows, step.tokens[stay][..., None]), dim=-1)
        self.scores = step.scores[stay]

    def is_done(self, source: int, score: float) -> bool:
        """No extension of a prefix of log-probability `score` or less enters the nbest.

        Or there are enough translations without it.
        """
        if self.n_finished[source] >= self.enough:
            return True
        found = self.found[source]
        if score == -math.inf:  # no prefix is left
            return True
        bound = scored(score, self.limits[source], self.lenpen)
        return len(found) == self.nbest and found[-1].score >= bound

    def cut(self, step: Extensions, places: list[int]) -> None:
        """Fills up the nbest with prefixes that reached the limit."""
        for place in places:
            found = self.found[self.where[place]]
            n_missing = self.nbest - len(found)
            best = slice(0, min(n_missing, int(step.scores[place].isfinite().sum())))
            parents, tokens = step.parents[place, best], step.tokens[place, best]
            lengths = self.progress.lengths[place, parents] + self.progress.counts(tokens)
            for prefix, token, log_prob, n in zip(
                self.prefixes[place, parents, 1:].tolist(),
                tokens.tolist(),
                step.scores[place, best].tolist(),
                lengths.tolist(),
                strict=True,
            ):
                found.append(hypothesis([*prefix, token], log_prob, n, self.lenpen))
