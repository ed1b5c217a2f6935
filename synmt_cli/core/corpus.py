"""Training records as arrays, and the batches of each epoch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from synmt_cli.core.batch import Array, Batch, Ragged
from synmt_cli.core.encoding import Encoding, Values
from synmt_cli.core.model.modifier import Side
from synmt_cli.core.targets import HOW, Target, Targets
from synmt_cli.core.trees.arc_standard import NEVER
from synmt_cli.core.vocabulary import BOS, EOS, PAD
from synmt_cli.errors import ConfigError, DataError, UsageError, printable
from synmt_cli.formats.record import Record

if TYPE_CHECKING:
    from synmt_cli.core.run import Vocabularies


@dataclass(frozen=True, slots=True)
class Corpus:
    """Pairs as ids. source ends in EOS; target has neither BOS nor EOS.

    features: one value for each source token, EOS included. target_features: one for BOS and
    each target token. references: raw target lines, kept only where they are asked for.
    left_out: why a record is not here -> how many.
    """

    source: Ragged
    target: Ragged
    features: dict[str, Ragged]
    target_features: dict[str, Ragged]
    encoding: Encoding
    references: list[str]
    left_out: Counter[str]

    def __len__(self) -> int:
        return len(self.source)

    @property
    def n_tokens(self) -> int:
        """Target tokens, EOS counted."""
        return int(self.target.lengths.sum()) + len(self)

    def n_tokens_of(self, rows: Array) -> int:
        """The same of some pairs."""
        return int(self.target.lengths[rows].sum()) + len(rows)

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
        target_out[np.arange(n), self.target.lengths[rows]] = EOS
        return Batch(
            self.sources(rows),
            Side(torch.from_numpy(np.concatenate((bos, target), 1)), features=features),
            torch.from_numpy(target_out),
            self.n_tokens_of(rows),
        )

    def sources(self, rows: Array) -> Side:
        """The source side of these pairs."""
        return self.encoding.side(self.source, self.features, rows)

    def epoch(
        self, batch_tokens: int, seed: int, epoch: int, batch_sentences: int = 0
    ) -> list[Array]:
        """Row numbers of each batch, every pair once, in an order that (seed, epoch) fixes.

        Pairs of like length share a batch; rows x the longer side <= batch_tokens, and
        rows <= batch_sentences unless that is 0.
        """
        random = np.random.default_rng([seed, epoch])
        target, source = self.target.lengths + 1, self.source.lengths
        order = np.lexsort((random.random(len(self)), source, target))
        batches = fill(order, np.maximum(target, source), batch_tokens, batch_sentences)
        return [batches[i] for i in random.permutation(len(batches))]


def fill(order: Array, lengths: Array, batch_tokens: int, batch_rows: int = 0) -> list[Array]:
    """Cuts `order` so that rows x longest <= batch_tokens; one row may be longer alone.

    batch_rows: how many rows at most; 0 is any number.
    """
    cuts, begin, longest = [], 0, 0
    for i, length in enumerate(lengths[order].tolist()):
        longest = max(longest, length)
        full = (i - begin + 1) * longest > batch_tokens or i - begin == (batch_rows or -1)
        if full and i > begin:
            cuts.append(i)
            begin, longest = i, length
    return np.split(order, cuts) if len(order) else []


def read(
    records: Iterable[tuple[Record, str, int]],
    vocabularies: Vocabularies,
    encoding: Encoding,
    targets: Targets,
    max_length: int,
    references: bool = False,
    check: Callable[[Record, tuple[str, int]], None] | None = None,
) -> Corpus:
    """Records with the file and line of each. Raises DataError, ConfigError.

    check: refuses a record that does not suit the variant, given its file and line.
    Every label is made known to `encoding`, whether a feature needs it or not. Leaves out,
    and counts, what is not `ok`, empty targets, and more than max_length pieces (transitions
    do not count).
    """
    source: list[list[int]] = []
    target: list[Target] = []
    features: list[Values] = []
    lines: list[str] = []
    left_out: Counter[str] = Counter()
    for record, name, number in records:
        place = (name, number)
        tokens = targets.tokens(record, place) if record.status == "ok" else []
        length = targets.n_pieces(tokens)
        if reason := _unfit(record, length, max_length, place, vocabularies.fingerprint):
            left_out[reason] += 1
            continue
        if check is not None:
            check(record, place)
        source.append([*vocabularies.source.ids(record.pieces or ()), EOS])
        target.append(targets.target(tokens, place))
        for label in record.deprels or ():
            encoding.labels.id(label)
        features.append(encoding.values(record))
        if references:
            lines.append(vocabularies.target.join(tokens) if record.tgt is None else record.tgt)
    return Corpus(
        Ragged.of(source, np.int64),
        Ragged.of([one.ids for one in target], np.int64),
        encoding.ragged(features),
        {
            name: Ragged.of([one.features[name] for one in target], np.int64)
            for name in targets.needs
        },
        encoding,
        lines,
        left_out,
    )


def _unfit(
    record: Record, target_length: int, limit: int, place: tuple[str, int], fingerprint: str
) -> str:
    """Why a record is left out, or "". Raises where it should not be in the file at all."""
    if record.status != "ok":
        return record.status
    if record.pieces is None:
        raise DataError(*place, f"no pieces; {HOW}")
    check_vocabulary(record, fingerprint, place)
    if not record.pieces or not target_length:
        return "empty"
    if max(len(record.pieces), target_length) + 1 > limit:
        return f"longer than {limit} pieces"
    return ""


def check_vocabulary(record: Record, fingerprint: str, place: tuple[str, int]) -> None:
    """Raises ConfigError if a record's pieces are of another vocabulary."""
    if record.vocab is not None and record.vocab != fingerprint:
        raise ConfigError(
            f"{printable(place[0])}:{place[1]}: pieces of vocabulary {printable(record.vocab)}, "
            f"but the model's is {fingerprint}"
        )


def refuse_empty(corpus: Corpus, what: str) -> None:
    """Raises UsageError where nothing is left to train or validate on."""
    if not len(corpus):
        reasons = ", ".join(f"{n} {why}" for why, n in corpus.left_out.items()) or "no records"
        raise UsageError(f"nothing in {what}: {reasons}")
