"""Beam search, exact for its score, over any scorer of the next token.

A step extends the K best prefixes of a source. The extensions by EOS that are among the K best
of all are finished; the K best others go on. Finished translations are ranked by

    score = log P(y, EOS | x) / (|y| + 1)^lenpen                   as in fairseq, not GNMT

where |y| is in pieces: transitions do not count. A source is done when nbest translations are
finished and no prefix can beat the worst of them: log-probabilities only fall and the
denominator is at most limit^lenpen, so every translation that begins with a prefix scores at
most log P(prefix) / limit^lenpen. With less `patience` it is done when enough are finished.
Tokens that may not come next have probability 0, and the others are not scaled up for it. A tree
may end while several words have no head: its score is that of this end, and closing.py adds arcs.

Which prefixes go on does not depend on lenpen, which only ranks finished translations and says when
a source is done. So one search that goes on until all values of lenpen are done gives each of
them exactly what a search of its own would give.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from synmt_cli.core.data.ragged import Array
from synmt_cli.core.decoding.cached import CachedScorer
from synmt_cli.core.decoding.closing import close
from synmt_cli.core.decoding.greedy import greedy
from synmt_cli.core.decoding.hypothesis import (
    Hypothesis,
    Rules,
    hypothesis,
    limits,
    normalised_score,
)
from synmt_cli.core.decoding.places import Places, remaining
from synmt_cli.core.decoding.progress import (
    SPECIAL,
    PieceProgress,
    TransitionProgress,
)
from synmt_cli.core.decoding.scorer import EnsembleScorer, RereadingScorer, Scorer
from synmt_cli.core.decoding.top_k import top
from synmt_cli.core.model.layers import Memory
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
    return search_each(models, sources, rules, [rules.lenpen])[0]


def search_each(
    models: Sequence[Transformer],
    sources: Side | Sequence[Side],
    rules: Rules,
    lenpens: Sequence[float],
) -> list[list[list[Hypothesis]]]:
    """For each value of lenpen what `search` gives with it; that of the rules is not used."""
    sides = [sources] * len(models) if isinstance(sources, Side) else list(sources)
    with _evaluating(models), torch.inference_mode():
        memories = [model.encode(side) for model, side in zip(models, sides, strict=True)]
        limit = limits(sides[0], rules.longest)
        every = torch.arange(len(limit), device=limit.device)
        grammar = models[0].grammar
        progress: PieceProgress = (
            TransitionProgress(grammar, limit, rules.constrained)
            if grammar
            else PieceProgress(limit)
        )
        scorer_of = partial(_scorer, models, memories)
        if rules.beam == 1:
            found = _greedy_each(scorer_of(every), progress, len(limit), lenpens)
        else:
            found = BeamSearch(scorer_of(every), progress, limit, rules, lenpens).run()
        if grammar is None:
            return found
        if rules.constrained:
            found = close(found, grammar, limit, scorer_of)
    return [
        [_marked(nbest, n) for nbest, n in zip(one, limit.tolist(), strict=True)] for one in found
    ]


def _scorer(models: Sequence[Transformer], memories: Sequence[Memory], sources: Tensor) -> Scorer:
    """A new scorer of some sources, by their indices in the memories."""
    scorers = [
        (RereadingScorer if model.rereads else CachedScorer)(model, memory.of(sources))
        for model, memory in zip(models, memories, strict=True)
    ]
    return scorers[0] if len(scorers) == 1 else EnsembleScorer(scorers)


def _greedy_each(
    scorer: Scorer, progress: PieceProgress, n: int, lenpens: Sequence[float]
) -> list[list[list[Hypothesis]]]:
    """Greedy search, which no lenpen changes, with the score for each of them."""
    best = greedy(scorer, progress, n, 0.0)
    return [
        [[replace(h, score=normalised_score(h.log_prob, h.length, lenpen))] for h in best]
        for lenpen in lenpens
    ]


def _marked(nbest: list[Hypothesis], longest: int) -> list[Hypothesis]:
    """Trees that reached the limit had to end: there was no room for another piece."""
    return [replace(tree, cut=tree.cut or tree.length >= longest) for tree in nbest]


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

    eos_scores: (B, K), log P of prefix and EOS. parents, tokens, scores: (B, K'), the extensions
    by other tokens that go on, best first.
    """

    eos_scores: Tensor
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
    tokens = tokens.flatten(1).gather(1, order)  # (B, K')
    return Extensions(eos, order // width, tokens, best)


class Seen(NamedTuple):
    """What the host looks at, once a step: Extensions, and what `progress` says of them.

    finished: (B, K), where a prefix and EOS are among the K best of all extensions. lengths:
    (B, K), of the prefixes. counts: (B, K'), what each token adds to them. full: (B,).
    """

    eos_scores: Array
    finished: Array
    lengths: Array
    parents: Array
    tokens: Array
    scores: Array
    counts: Array
    full: Array

    @classmethod
    def of(cls, step: Extensions, progress: PieceProgress, beam: int) -> Seen:
        """All of it in one copy: in single precision ids and lengths below 2^24 are exact."""
        parts = (
            step.eos_scores,
            progress.lengths,
            step.parents,
            step.tokens,
            step.scores,
            progress.counts(step.tokens),
            progress.full[:, None],
        )
        look = torch.cat(parts, dim=1).cpu().numpy()
        edges = np.cumsum([part.size(1) for part in parts])[:-1]
        eos, lengths, parents, tokens, scores, counts, full = np.split(look, edges, 1)
        every = np.concatenate((scores, eos), axis=1)  # (B, K' + K)
        n_better = (every[:, None] > eos[..., None]).sum(-1)  # (B, K)
        return cls(
            eos,
            (n_better < beam) & (eos > -np.inf),
            lengths.astype(np.int64),
            parents.astype(np.int64),
            tokens.astype(np.int64),
            scores,
            counts.astype(np.int64),
            full[:, 0].astype(bool),
        )


class BeamSearch:
    """The search for one batch of sources.

    scorer: of the next token. progress: of the prefixes. limits: (B,), the longest length.
    lenpens: the values for which n-best lists are kept.
    """

    def __init__(
        self,
        scorer: Scorer,
        progress: PieceProgress,
        limits: Tensor,
        rules: Rules,
        lenpens: Sequence[float],
    ) -> None:
        self.scorer = scorer
        self.progress = progress
        self.rules = rules
        self.limits: list[int] = limits.tolist()
        n = len(limits)
        self.lenpens = tuple(lenpens)
        self.nbests: list[list[list[Hypothesis]]] = [[[] for _ in range(n)] for _ in lenpens]
        self.n_finished = [0] * n
        self.places = Places(n, limits.device)
        # The prefixes where they are read, and where translations are written down; (B, K, T).
        self.prefixes = torch.full((n, 1, 1), BOS, device=limits.device)
        self.written = np.full((n, 1, 1), BOS)
        self.scores = torch.zeros(n, 1, device=limits.device)  # (B, K)

    def run(self) -> list[list[list[Hypothesis]]]:
        """For each lenpen the nbest hypotheses of each source."""
        while self.places.sources:
            log_probs = self.scorer.step(Side(self.prefixes, features=self.progress.features))
            self.progress.forbid(log_probs)
            step = extend(log_probs, self.scores, self.rules.beam)
            seen = Seen.of(step, self.progress, self.rules.beam)
            self.finish(seen)
            self.advance(step, seen)
        return self.nbests

    def finish(self, seen: Seen) -> None:
        """Keeps the nbest of the translations that end here."""
        for place, k in np.argwhere(seen.finished).tolist():
            source = self.places.sources[place]
            log_prob, length = float(seen.eos_scores[place, k]), int(seen.lengths[place, k]) + 1
            self.n_finished[source] += 1
            for lenpen, nbests in zip(self.lenpens, self.nbests, strict=True):
                nbest = nbests[source]
                score = normalised_score(log_prob, length, lenpen)
                if len(nbest) == self.rules.nbest and nbest[-1].score >= score:
                    continue
                ids = self.written[place, k, 1:].tolist()
                nbest.append(hypothesis([*ids, EOS], log_prob, length, lenpen))
                nbest.sort(key=lambda h: -h.score)  # stable: among equals the first, the shorter
                del nbest[self.rules.nbest :]

    def advance(self, step: Extensions, seen: Seen) -> None:
        """Goes on with the extended prefixes of the sources that are not done."""
        ends = [
            is_full or self.is_done(source, score)
            for is_full, source, score in zip(
                seen.full.tolist(), self.places.sources, seen.scores[:, 0].tolist(), strict=True
            )
        ]
        self.cut(seen)
        stay = self.places.free(ends)
        places = np.array(remaining(ends), dtype=np.int64)
        parents, tokens, scores = step.parents, step.tokens, step.scores  # (B, K')
        if not stay.is_all:
            parents, tokens, scores = (x[stay.sources] for x in (parents, tokens, scores))
        self.scorer.select(stay, parents)
        self.progress.select(stay.sources, parents, tokens)
        self.prefixes = torch.cat(
            (self.prefixes[stay.sources[:, None], parents], tokens[..., None]), dim=-1
        )  # (B', K', T + 1)
        self.scores = scores
        before = self.written[places[:, None], seen.parents[places]]
        self.written = np.concatenate((before, seen.tokens[places][..., None]), axis=-1)

    def is_done(self, source: int, score: float) -> bool:
        """Whether no extension of a prefix of log-probability `score` or less enters the nbest.

        Or whether there are enough translations without it.
        """
        rules = self.rules
        if self.n_finished[source] >= rules.patience * rules.beam:
            return True
        if score == -math.inf:  # no prefix is left
            return True
        if self.n_finished[source] < rules.nbest:
            return False
        limit = self.limits[source]
        return all(
            nbests[source][-1].score >= normalised_score(score, limit, lenpen)
            for lenpen, nbests in zip(self.lenpens, self.nbests, strict=True)
        )

    def cut(self, seen: Seen) -> None:
        """Fills up the nbest of places whose prefixes reached the limit."""
        for place in np.flatnonzero(seen.full).tolist():
            source = self.places.sources[place]
            n_free = self.rules.nbest - len(self.nbests[0][source])
            n_prefixes = int(np.isfinite(seen.scores[place]).sum())
            for k in range(min(n_free, n_prefixes)):
                parent, token = int(seen.parents[place, k]), int(seen.tokens[place, k])
                log_prob = float(seen.scores[place, k])
                length = int(seen.lengths[place, parent] + seen.counts[place, k])
                ids = [*self.written[place, parent, 1:].tolist(), token]
                for lenpen, nbests in zip(self.lenpens, self.nbests, strict=True):
                    nbests[source].append(hypothesis(ids, log_prob, length, lenpen))
