"""Training records as arrays, and the batches of each epoch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import torch

from synmt_cli.core.data.batch import Batch, fill
from synmt_cli.core.data.encoding import Encoding
from synmt_cli.core.data.pairs import AFTER, N_PIECES, SOURCE, TARGET, features_in
from synmt_cli.core.data.ragged import Array, Ragged
from synmt_cli.core.model.modifier import Side
from synmt_cli.core.text.vocabulary import BOS, EOS, PAD
from synmt_cli.core.trees.arc_standard import NEVER
from synmt_cli.errors import DataError

WINDOW = 2**20  # pairs that are sorted by length together: bounds memory, and what is read at once
BLOCK = 2**15  # neighbours that stay in one window, so that a disk is read in long runs


@dataclass(frozen=True, slots=True)
class Corpus:
    """Pairs as ids. source ends in EOS; target has neither BOS nor EOS.

    features: one value for each source token, EOS included. target_features: one for BOS and
    each target token. n_pieces: the pieces of each target, (n,), if targets are transitions.
    references: raw target lines, if they were asked for. left_out: reason -> number of records
    left out. n_treeless: pairs whose source has no tree. n_of_label: how many words of the sources
    have each label; empty where that was not counted, as in a cache.
    """

    source: Ragged
    target: Ragged
    features: dict[str, Ragged]
    target_features: dict[str, Ragged]
    encoding: Encoding
    references: list[str]
    left_out: Counter[str]
    n_pieces: Array | None = None
    n_treeless: int = 0
    n_of_label: Counter[str] = field(default_factory=Counter)

    @classmethod
    def of(
        cls,
        columns: dict[str, Ragged],
        encoding: Encoding,
        references: list[str],
        left_out: Counter[str],
        n_treeless: int,
        n_of_label: Counter[str] | None = None,
    ) -> Corpus:
        """A corpus made of the columns of pairs."""
        sides = columns[SOURCE], columns[TARGET], features_in(SOURCE, columns)
        target_features = features_in(AFTER, columns)
        n_pieces = columns[N_PIECES].values if N_PIECES in columns else None
        counts = n_treeless, n_of_label or Counter()
        return cls(*sides, target_features, encoding, references, left_out, n_pieces, *counts)

    def target_pieces_of(self, rows: Array) -> Array:
        """The lengths of the targets of some pairs, in pieces, EOS counted, (len(rows),)."""
        if self.n_pieces is None:
            return self.target.lengths_of(rows) + 1
        lengths: Array = self.n_pieces[rows].astype(np.int64) + 1
        return lengths

    def longer_sides_in_pieces(self, rows: Array) -> Array:
        """The lengths of the longer sides of some pairs, in pieces, EOS counted, (len(rows),)."""
        longer: Array = np.maximum(self.target_pieces_of(rows), self.source.lengths_of(rows))
        return longer

    def __len__(self) -> int:
        return len(self.source)

    @property
    def n_target_pieces(self) -> int:
        """The sum of the lengths of all targets, as `target_pieces_of` counts them."""
        return int(self.target_pieces_of(np.arange(len(self))).sum())

    @property
    def n_tokens(self) -> int:
        """Target tokens, EOS counted."""
        return len(self.target.values) + len(self)

    def n_tokens_of(self, rows: Array) -> int:
        """Target tokens of some pairs."""
        return int(self.target.lengths_of(rows).sum()) + len(rows)

    def batch(self, rows: Array) -> Batch:
        """These pairs, padded."""
        target = self.target.padded(rows, PAD)
        n = len(rows)
        bos, pad = np.full((n, 1), BOS), np.full((n, 1), PAD)
        features = {
            name: torch.from_numpy(values.padded(rows, NEVER))  # padding is attached to nothing
            for name, values in self.target_features.items()
        }
        target_out = np.concatenate((target, pad), 1)
        lengths = self.target.lengths_of(rows)
        target_out[np.arange(n), lengths] = EOS
        return Batch.of(
            self.sources(rows),
            Side(torch.from_numpy(np.concatenate((bos, target), 1)), features=features),
            torch.from_numpy(target_out),
            lengths + 1,
        )

    def sources(self, rows: Array) -> Side:
        """The source side of these pairs."""
        return self.encoding.side(self.source, self.features, rows)

    def epoch(
        self, batch_tokens: int, seed: int, epoch: int, batch_sentences: int = 0
    ) -> Iterator[Array]:
        """Row numbers of each batch, every pair once, in an order that (seed, epoch) fixes.

        Pairs of similar length share a batch; rows x the longer side <= batch_tokens, and
        rows <= batch_sentences unless that is 0. Transitions do not count, so that models with and
        without trees have the same batches. A corpus of more than WINDOW pairs comes in
        windows of blocks of neighbours drawn at random.
        """
        for i, rows in enumerate(_windows(len(self), seed, epoch)):
            random = np.random.default_rng([seed, epoch, i] if i else [seed, epoch])
            target, source = self.target_pieces_of(rows), self.source.lengths_of(rows)
            order = np.lexsort((random.random(len(rows)), source, target))
            batches = fill(order, self.longer_sides_in_pieces(rows), batch_tokens, batch_sentences)
            for n in random.permutation(len(batches)):
                yield rows[batches[n]]


def _windows(n: int, seed: int, epoch: int) -> Iterator[Array]:
    """Yields the rows of each window, in rising order; every row is in one window."""
    blocks = np.arange(0, n, BLOCK)
    if n > WINDOW:
        blocks = np.random.default_rng([epoch, seed, n]).permutation(blocks)
    for i in range(0, len(blocks), WINDOW // BLOCK):
        begins = np.sort(blocks[i : i + WINDOW // BLOCK])
        yield np.concatenate([np.arange(begin, min(begin + BLOCK, n)) for begin in begins])


def refuse_empty(corpus: Corpus, what: str) -> None:
    """Raises DataError if nothing is left to train or validate on."""
    if not len(corpus):
        reasons = ", ".join(f"{n} {why}" for why, n in corpus.left_out.items()) or "no records"
        raise DataError(what, None, f"nothing is left to train or validate on: {reasons}")


def refuse_treeless(corpus: Corpus, variant: str, what: str) -> None:
    """Raises DataError if a variant that reads trees would see none."""
    if corpus.n_treeless == len(corpus):
        problem = f"{variant} reads trees, and none of {len(corpus):,} records has one"
        raise DataError(what, None, f"{problem}; give `synmt featurize` CoNLL-U, not text")
