"""Targets of training: the pieces of a line, or the transitions of its tree."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from synmt_cli.core.text.vocabulary import Vocabulary
from synmt_cli.core.transitions.delinearizer import Broken, Delinearizer
from synmt_cli.core.transitions.grammar import Features, Grammar, refuse_missing
from synmt_cli.errors import ConfigError, DataError
from synmt_cli.formats.record import Record
from synmt_cli.formats.transitions import length_in_pieces

HOW = "make records with featurize --spm MODEL"


class Target(NamedTuple):
    """A target as numbers, without BOS and EOS; the features are those of BOS and each token."""

    ids: list[int]
    features: Features


@dataclass(frozen=True, slots=True)
class Targets:
    """Makes the targets of a model. grammar: None if they are pieces.

    needs: FEATURES that the decoder reads.
    """

    vocabulary: Vocabulary
    grammar: Grammar | None = None
    needs: Sequence[str] = ()

    def tokens(self, record: Record, place: tuple[str, int]) -> list[str]:
        """The tokens of a target. Raises DataError if a record has none."""
        if self.grammar is None:
            if record.tgt_pieces is None:
                raise DataError(*place, f"no tgt_pieces; {HOW} --tgt FILE")
            return record.tgt_pieces
        if record.transitions is None:
            raise DataError(*place, f"no transitions; {HOW} --tgt-conllu FILE")
        return record.transitions

    def n_pieces(self, record: Record, tokens: Sequence[str]) -> int:
        """The length of a target in pieces; transitions do not count.

        If a record has tgt_pieces, too, these are counted, which may differ by a piece or two: so
        pairs are as long, and batches the same, for models that write trees and those that do not.
        """
        if self.grammar is None or not tokens:
            return len(tokens)
        if record.tgt_pieces is not None:
            return len(record.tgt_pieces)
        return length_in_pieces(tokens)

    def target(self, tokens: Sequence[str], place: tuple[str, int]) -> Target:
        """The target of some tokens. Raises DataError, and ConfigError for unknown transitions."""
        features: Features = {}
        if self.grammar is not None:
            try:
                refuse_missing(self.vocabulary, tokens)
                every = self.grammar.features(tokens)
            except ConfigError as problem:
                raise ConfigError(f"{place[0]}:{place[1]}: {problem}") from None
            except ValueError as problem:
                raise DataError(*place, f"transitions: {self._why(tokens, problem)}") from None
            features = {name: every[name] for name in self.needs}
        return Target(self.vocabulary.ids(tokens), features)

    def _why(self, tokens: Sequence[str], problem: ValueError) -> str:
        """Why the tokens are not a tree, in the words of `synmt delinearize`."""
        try:
            Delinearizer(self.vocabulary).sentence(tokens, escaped=False)
        except Broken as broken:
            return str(broken)
        return str(problem)
