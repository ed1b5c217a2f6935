"""Log-probabilities of given targets, by teacher forcing.

    log P(y | x) = sum_t log P(y_t | y_<t, x)        EOS counted
    P(y_t | y_<t, x) = 1/M sum_m P_m(y_t | y_<t, x)  of M models, as in search

A decoder reads a whole target in one pass; if it re-reads its prefix, it reads many prefixes at a
time (model/prefixes.py). Each step keeps only the probability of the target's own token, so an
ensemble needs no distribution over the vocabulary.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from synmt_cli.core.data.batch import Batch, by_length
from synmt_cli.core.data.corpus import Corpus
from synmt_cli.core.data.encoding import Encoding
from synmt_cli.core.data.pairs import Pair, PairColumns
from synmt_cli.core.data.ragged import Array
from synmt_cli.core.data.targets import Targets
from synmt_cli.core.decoding.hypothesis import refuse_nan
from synmt_cli.core.decoding.search import evaluating
from synmt_cli.core.decoding.translator import SearchSettings, Watch, unchanged
from synmt_cli.core.model.transformer import Transformer
from synmt_cli.core.text.vocabulary import UNK, Vocabulary
from synmt_cli.errors import Place
from synmt_cli.formats.record import EMPTY, OK, UNPARSED, Record
from synmt_cli.formats.transitions import length_in_pieces


@dataclass(frozen=True, slots=True)
class Likelihood:
    """How probable a target is.

    log_prob: log P(target, EOS | source), natural; NaN where it was not computed. length: as in
    Hypothesis: EOS counts, transitions do not; 0 without a target. unscored: why there is no
    log_prob. has_unknown: whether the target has pieces that the vocabulary lacks.
    """

    log_prob: float
    length: int
    unscored: str = ""
    has_unknown: bool = False


@dataclass(frozen=True, slots=True)
class TeacherForcing:
    """Models that score together. encoding, prepare: as in Translator.

    settings: of these, batch_size, batch_pieces (of the longer sides) and max_pieces are used;
    pairs with more pieces on a side are not scored.
    """

    models: Sequence[Transformer]
    source: Vocabulary
    targets: Targets
    encoding: Encoding
    device: torch.device
    settings: SearchSettings
    prepare: Callable[[Record], Record] = unchanged

    @property
    def writes_trees(self) -> bool:
        """Whether the models write transitions."""
        return self.targets.grammar is not None

    def score(
        self, records: Sequence[tuple[Record, Place]], watch: Watch = lambda n, share: None
    ) -> list[Likelihood]:
        """One result for each record, in order, in evaluation mode. Raises DataError, ConfigError.

        watch: as in Translator.translate.
        """
        encoding = self.encoding.frozen()  # paths of this window alone
        found: list[Likelihood] = []
        pairs: dict[int, Pair] = {}
        for i, (record, place) in enumerate(records):
            tokens = self._tokens(record)
            found.append(self._unread(record, tokens))
            if not found[i].unscored and record.status != EMPTY and record.pieces:
                pairs[i] = self._pair(record, tokens or (), place, encoding)
        log_probs = self._log_probs([*pairs.values()], encoding, watch)
        for (i, pair), log_prob in zip(pairs.items(), log_probs, strict=True):
            found[i] = Likelihood(log_prob, found[i].length, has_unknown=UNK in pair.target.ids)
        return found

    def _tokens(self, record: Record) -> list[str] | None:
        return record.transitions if self.writes_trees else record.tgt_pieces

    def _unread(self, record: Record, tokens: Sequence[str] | None) -> Likelihood:
        """A record's result without a model, for now or for good; log P of an empty pair is 0."""
        is_empty = record.status == EMPTY or not record.pieces
        is_lost = tokens is None and record.status in UNPARSED
        if is_empty and not tokens and not is_lost:
            return Likelihood(0.0, 1)
        if tokens is None:
            return Likelihood(math.nan, 0, f"{record.status}, without a target")
        length = (length_in_pieces(tokens) if self.writes_trees else len(tokens)) + 1
        most = self.settings.max_pieces
        reason = ""
        if is_empty:
            reason = "with a target but an empty source"
        elif max(len(record.pieces or ()), length - 1) > most:
            reason = f"of more than {most:,} pieces"
        elif self.writes_trees and not tokens:
            reason = "with an empty target, which is not a tree"
        return Likelihood(math.nan if reason else 0.0, length, reason)

    def _pair(
        self, record: Record, tokens: Sequence[str], place: Place, encoding: Encoding
    ) -> Pair:
        """The pair as models read it. Raises DataError, ConfigError as `Targets.target` does."""
        prepared = self.prepare(record if record.status == OK else record.without_tree())
        ids = self.source.source_ids(prepared.pieces)
        return Pair(ids, encoding.values(prepared), self.targets.target(tokens, place))

    def _log_probs(self, pairs: Sequence[Pair], encoding: Encoding, watch: Watch) -> list[float]:
        """The log-probability of each target. Raises ConfigError where one is not a number."""
        if not pairs:
            return []
        columns = PairColumns(encoding.needs, self.targets.needs).of(pairs)
        corpus = Corpus.of(columns, encoding, [], Counter(), 0)
        order: list[Array] = []
        lengths: list[int] = []
        found: list[Tensor] = []
        n_done = 0
        with evaluating(self.models), torch.inference_mode():
            for rows in self._batches(corpus):
                batch = corpus.batch(rows).to(self.device)
                found.append(self._token_log_probs(batch))  # (N,)
                order.append(rows)
                lengths += batch.lengths
                n_done += len(rows)
                watch(n_done, n_done / len(pairs))
            each = torch.cat(found).cpu().double().numpy()  # of all tokens; a device is asked once
        log_probs = np.zeros(len(pairs))
        log_probs[np.concatenate(order)] = np.add.reduceat(each, [0, *np.cumsum(lengths)[:-1]])
        refuse_nan(bool(np.isnan(log_probs).any()))
        sums: list[float] = log_probs.tolist()
        return sums

    def _batches(self, corpus: Corpus) -> Iterator[Array]:
        lengths = corpus.longer_sides_in_pieces(np.arange(len(corpus)))
        yield from by_length(lengths, self.settings.batch_pieces, self.settings.batch_size)

    def _token_log_probs(self, batch: Batch) -> Tensor:
        """log P of each target token, (N,), one target after the other."""
        target, found = batch.tokens(), []  # (N,)
        for model in self.models:
            states, _ = model.decode(batch.target, model.encode(batch.source), batch.lengths)
            found.append(model.log_probs(batch.without_padding(states), target))
        if len(found) == 1:
            return found[0]
        return torch.stack(found).logsumexp(0) - math.log(len(found))
