"""Beam search, exact for its score, over any scorer of the next token.

A step extends the K best prefixes of a source. The extensions by EOS that are among the K best
of all are finished; the K best others go on. Finished translations are ranked by

    score = log P(y, EOS | x) / (|y| + 1)^lenpen                   as in fairseq, not GNMT

where |y| is in pieces: transitions do not count. A source is done when nbest translations are
finished and no prefix can beat the worst of them: log-probabilities only fall and the
denominator is at most limit^lenpen, so every translation that begins with a prefix scores at
most log P(prefix) / limit^lenpen. With less `patience` it is done when enough are finished.
Tokens that may not come next get probability 0, and the others are not scaled up in return. A tree
may end while several words have no head: its score is the one with that end; closing.py adds arcs.

Which prefixes go on does not depend on lenpen, which only ranks finished translations and says when
a source is done. So one search that goes on until all values of lenpen are done gives each of
them exactly what a search of its own would give.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from synmt_cli.core.data.ragged import Array
from synmt_cli.core.decoding.batching.running import Running
from synmt_cli.core.decoding.batching.supply import Source
from synmt_cli.core.decoding.closing import Searched
from synmt_cli.core.decoding.hypothesis import (
    Hypothesis,
    Rules,
    hypothesis,
    normalised_score,
    refuse_nan,
)
from synmt_cli.core.decoding.progress import SPECIAL
from synmt_cli.core.decoding.top_k import top
from synmt_cli.core.text.vocabulary import BOS, EOS


class Extensions(NamedTuple):
    """The extensions of the K prefixes of each source by one token.

    eos_scores: (B, K), log P of prefix and EOS. parents, tokens, scores: (B, K), the extensions
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
    log_probs[..., EOS].fill_(-torch.inf)
    width = min(beam, log_probs.size(-1) - len(SPECIAL) - 1)
    best, tokens = top(log_probs, width)  # (B, K, width)
    best = (scores[..., None] + best).flatten(1)  # (B, K * width)
    best, order = best.sort(dim=-1, descending=True, stable=True)
    best, order = best[:, :beam], order[:, :beam]  # (B, K')
    tokens = tokens.flatten(1).gather(1, order)  # (B, K')
    return Extensions(eos, order // width, tokens, best)


class Seen(NamedTuple):
    """The part of a step that the host reads: Extensions, and what is known about them.

    finished: (B, K), whether a prefix and EOS are among the K best of all extensions. lengths:
    (B, K), of the prefixes. counts: (B, K'), what each token adds to them. full: (B,), as in
    Running.
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
    def of(cls, step: Extensions, running: Running) -> Seen:
        """Copies all in one go: in single precision ids and lengths below 2^24 are exact.

        Raises ConfigError for scores that are not numbers.
        """
        parts = (*step, *running.progress.lengths(step.tokens))
        look = torch.cat(parts, dim=1).cpu().numpy()
        refuse_nan(bool(np.isnan(look).any()))
        edges = np.cumsum([part.size(1) for part in parts])[:-1]
        eos, parents, tokens, scores, *counted = np.split(look, edges, 1)
        every = np.concatenate((scores, eos), axis=1)  # (B, K' + K)
        n_better = (every[:, None] > eos[..., None]).sum(-1)  # (B, K)
        n_tokens = np.array(running.ages)[:, None] - 1
        lengths, counts = counted or (np.broadcast_to(n_tokens, eos.shape), np.ones_like(tokens))
        return cls(
            eos,
            (n_better < eos.shape[1]) & (eos > -np.inf),
            lengths.astype(np.int64),
            parents.astype(np.int64),
            tokens.astype(np.int64),
            scores,
            counts.astype(np.int64),
            np.array(running.full),
        )


class Beam:
    """The state of the search for one source. nbests: for each lenpen its n-best list so far."""

    def __init__(self, n_lenpens: int) -> None:
        self.nbests: list[list[Hypothesis]] = [[] for _ in range(n_lenpens)]
        self.n_finished = 0


class BeamSearch:
    """The search for the sources of a batch.

    lenpens: the values for which n-best lists are kept.
    """

    def __init__(self, running: Running, rules: Rules, lenpens: Sequence[float]) -> None:
        self.running = running
        self.rules = rules
        self.lenpens = tuple(lenpens)
        self.beams: dict[int, Beam] = {}  # by the number of the source
        # The tokens of the prefixes, as the host writes them down, (B, K, room for tokens).
        self.written = np.full((len(running.sources), rules.beam, 1), BOS)

    def run(self) -> Iterator[list[Searched]]:
        """Yields sources as they are done, each with its n-best list for each lenpen."""
        running = self.running
        while running.sources:
            step = extend(running.log_probs(), running.scores, self.rules.beam)
            seen = Seen.of(step, running)
            self.finish(seen)
            ends = self.ends(seen)
            self.cut(seen)
            done = [s for s, is_end in zip(running.sources, ends, strict=True) if is_end]
            found = [(source, self.beams.pop(source.number).nbests) for source in done]
            self.write(running.advance(ends, step.tokens, step.scores, seen.parents), seen)
            if found:
                yield found

    def beam(self, source: Source) -> Beam:
        """The state of the search for a source in the batch, a new one at first."""
        return self.beams.setdefault(source.number, Beam(len(self.lenpens)))

    def finish(self, seen: Seen) -> None:
        """Keeps the nbest of the translations that end here."""
        for place, k in np.argwhere(seen.finished).tolist():
            beam = self.beam(self.running.sources[place])
            log_prob, length = float(seen.eos_scores[place, k]), int(seen.lengths[place, k]) + 1
            beam.n_finished += 1
            for lenpen, nbest in zip(self.lenpens, beam.nbests, strict=True):
                score = normalised_score(log_prob, length, lenpen)
                if len(nbest) == self.rules.nbest and nbest[-1].score >= score:
                    continue
                nbest.append(hypothesis([*self.ids(place, k), EOS], log_prob, length, lenpen))
                nbest.sort(key=lambda h: -h.score)  # stable: among equals the first, the shorter
                del nbest[self.rules.nbest :]

    def ids(self, place: int, k: int) -> list[int]:
        """The tokens of a prefix after BOS."""
        ids: list[int] = self.written[place, k, 1 : self.running.ages[place]].tolist()
        return ids

    def write(self, origin: Sequence[int], seen: Seen) -> None:
        """Writes down the extended prefixes. origin: the old place of the source in each place."""
        running, places = self.running, np.array(origin, dtype=np.int64)
        n_tokens = self.written.shape[2]
        if max(running.ages, default=0) > n_tokens:
            self.written = np.pad(self.written, ((0, 0), (0, 0), (0, n_tokens)))
        self.written = self.written[places[:, None], seen.parents[places]]
        ages = np.array(running.ages[: len(places)], dtype=np.int64)
        self.written[np.arange(len(places)), :, ages - 1] = seen.tokens[places]
        n_new = len(running.sources) - len(places)
        if n_new > 0:
            self.written = np.pad(self.written, ((0, n_new), (0, 0), (0, 0)))

    def ends(self, seen: Seen) -> list[bool]:
        """Whether the search for the source in each place ends."""
        best = seen.scores[:, 0].tolist()
        return [
            is_full or self.is_done(source, score)
            for is_full, source, score in zip(
                seen.full.tolist(), self.running.sources, best, strict=True
            )
        ]

    def is_done(self, source: Source, score: float) -> bool:
        """Whether the search for a source is done: enough is finished, or nothing better can come.

        Nothing can if no extension of a prefix of log-probability `score` or less enters the nbest.
        """
        rules, beam = self.rules, self.beam(source)
        if beam.n_finished >= max(rules.nbest, rules.patience * rules.beam):
            return True
        if score == -math.inf:  # no prefix is left
            return True
        if beam.n_finished < rules.nbest:
            return False
        return all(
            nbest[-1].score >= normalised_score(score, source.limit, lenpen)
            for lenpen, nbest in zip(self.lenpens, beam.nbests, strict=True)
        )

    def cut(self, seen: Seen) -> None:
        """Fills up the nbest of places whose prefixes reached the limit."""
        for place in np.flatnonzero(seen.full).tolist():
            beam = self.beam(self.running.sources[place])
            n_free = self.rules.nbest - len(beam.nbests[0])
            prefixes = []
            for k in np.flatnonzero(np.isfinite(seen.scores[place])).tolist() if n_free else ():
                parent, token = int(seen.parents[place, k]), int(seen.tokens[place, k])
                length = int(seen.lengths[place, parent] + seen.counts[place, k])
                ids = [*self.ids(place, parent), token]
                prefixes.append((ids, float(seen.scores[place, k]), length))
            for lenpen, nbest in zip(self.lenpens, beam.nbests, strict=True):
                cut = [hypothesis(*prefix, lenpen) for prefix in prefixes]
                nbest += sorted(cut, key=lambda h: -h.score)[:n_free]
