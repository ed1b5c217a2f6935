"""The sources that are being translated: continuous batching.

A source that ends leaves its place, and the next one that waits takes it in the same step. So the
rows of a batch are at different positions. A step of the model costs the same for many rows as for
few, and it has many to the end, whereas a closed batch ends with few. Which sources are neighbours
changes nothing but the rounding of products (docs/decisions/0033-continuous-batching.md): every row
has its position, its mask and its part of what scorer and progress remember.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from synmt_cli.core.data.ragged import Array
from synmt_cli.core.decoding.batching.places import Places, Stay, lengthened, widened
from synmt_cli.core.decoding.batching.supply import Source, Sources, Supply, whole
from synmt_cli.core.decoding.progress import PieceProgress
from synmt_cli.core.decoding.scorers.scorer import Prefixes, Scorer
from synmt_cli.core.decoding.top_k import top
from synmt_cli.core.model.moving import moved
from synmt_cli.core.text.vocabulary import BOS, PAD


class Running:
    """B places with K prefixes each, which have one length within a source, not across sources.

    A new source has one prefix, BOS; the other K - 1 have probability 0. scores: (B, K), log P of
    each prefix. ages: how many tokens the prefixes in each place have, BOS counted. watch: called
    before each step; what it raises ends the search.
    """

    def __init__(
        self,
        scorer: Scorer,
        progress: PieceProgress,
        supply: Supply,
        n_beams: int,
        device: torch.device,
        watch: Callable[[], None] = lambda: None,
    ) -> None:
        self.progress = progress
        self._watch = watch
        self.ages: list[int] = []
        self.scores = torch.zeros(0, n_beams, device=device)
        self._scorer = scorer
        self._supply = supply
        self._places = Places(device)
        self._device = device
        self._fresh = torch.full((n_beams,), -torch.inf, device=device)
        self._fresh[:1] = 0
        ids = torch.zeros(0, n_beams, dtype=torch.long, device=device)
        self._newest = ids  # (B, K)
        self._ids = ids[..., None] if scorer.reads_prefixes else None  # (B, K, room for tokens)
        self._at = ids[:, 0]  # (B,), the position of the newest token
        self.advance([], self._newest, self.scores)

    @property
    def sources(self) -> Sequence[Source]:
        """The source in each place."""
        return self._places.sources

    @property
    def full(self) -> list[bool]:
        """Whether the prefixes in each place are so long that one more token is their last.

        Legal trees never are: they have to end before that.
        """
        most = self.progress.tokens_per_piece
        return [
            source.limit * most <= age for source, age in zip(self.sources, self.ages, strict=True)
        ]

    def log_probs(self) -> Tensor:
        """(B, K, V), of the next token; -inf for those that may not come."""
        found = self._scorer.step(self._prefixes())
        self.progress.forbid(found)
        return found

    def most_probable(self, with_scores: bool) -> tuple[Tensor, Tensor]:
        """The most probable token that may come next and its log-probability, (B, K) each.

        with_scores: whether log-probabilities are wanted; otherwise they are 0, or NaN where
        scores are. The choice is the same: it is made before the softmax, which may round two
        numbers to one.
        """
        found = self._scorer.step(self._prefixes(), normalised=False)
        log_probs = found.log_softmax(-1) if with_scores else None
        self.progress.forbid(found)
        score, token = top(found, 1)  # (B, K, 1) each; NaN is the largest of all
        if log_probs is None:
            zero = torch.zeros_like(self.scores)
            return token[..., 0], zero.masked_fill(score[..., 0].isnan(), torch.nan)
        return token[..., 0], log_probs.gather(-1, token)[..., 0]

    def read(self) -> None:
        """Reads the newest tokens, where the scores of the next ones are not wanted."""
        self._scorer.read(self._prefixes())

    @property
    def _source_width(self) -> int:
        return whole(max(source.length for source in self.sources))

    def _prefixes(self) -> Prefixes:
        return Prefixes(
            self._newest,
            self._at,
            self._supply.width(self.ages),
            self._source_width,
            self._ids,
            self.progress.features,
        )

    def advance(
        self, ends: Sequence[bool], tokens: Tensor, scores: Tensor, parents: Array | None = None
    ) -> Sequence[int]:
        """Goes on with the next tokens, without the sources that end, and with new ones.

        ends: whether the source in each place ends. tokens, scores: (B, K). parents: (B, K), the
        old prefix that each continues; None: each its own. Returns the old place of the source in
        each place; for a new source, that of the one it replaces; none for appended ones.
        """
        self._watch()
        staying = [s.length for s, is_end in zip(self.sources, ends, strict=True) if not is_end]
        is_open = len(staying) < len(ends) or not ends
        taken = self._supply.take(staying) if is_open else []
        new = [source for some in taken for source in some.each(self._supply.keeps)]
        stay, given = self._places.change(ends, new)
        if not stay.is_all:
            tokens, scores = tokens[stay.sources], scores[stay.sources]
            parents = None if parents is None else parents[list(stay.places)]
            self.ages = [self.ages[place] for place in stay.places]
        self._scorer.select(stay, parents)
        self.ages = [age + 1 for age in self.ages]
        width = whole(max(self.ages, default=1))
        self._at = stay.pick(self._at) + 1
        continued = None
        if parents is not None and (self._ids is not None or self.progress.reads_parents):
            continued = moved(torch.from_numpy(parents), self._device)
        self.progress.select(stay, continued, tokens, self._at, width)
        self._append(stay, continued, tokens, width)
        self._newest, self.scores = tokens, scores
        if given:
            self._enter(taken, given)
        return stay.places

    def _append(self, stay: Stay, parents: Tensor | None, tokens: Tensor, width: int) -> None:
        if self._ids is not None:
            ids = widened(stay.pick(self._ids, parents), width, PAD)
            place = self._at[:, None, None].expand(*tokens.shape, 1)
            self._ids = ids.scatter_(2, place, tokens[..., None])

    def _enter(self, taken: Sequence[Sources], given: Sequence[int]) -> None:
        """Begins with the sources that were taken, in the places given to them."""
        n, places = len(self.sources), moved(torch.tensor(given), self._device)
        self.ages += [0] * (n - len(self.ages))
        for place in given:
            self.ages[place] = 1
        self._at = lengthened(self._at, n).index_fill_(0, places, 0)
        self._newest = lengthened(self._newest, n).index_fill_(0, places, BOS)
        self.scores = lengthened(self.scores, n)
        self.scores[places] = self._fresh
        if self._ids is not None:
            self._ids = lengthened(self._ids, n)
            self._ids[places] = PAD
            self._ids[places, :, 0] = BOS
        self.progress.enter(places, n, [limit for some in taken for limit in some.limits])
        width, begin = self._source_width, 0
        for some in taken:
            self._scorer.enter(given[begin : begin + len(some)], n, width, some)
            begin += len(some)
