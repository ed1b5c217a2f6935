"""Translations found by search, their score, and the rules of a search."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from synmt_cli.core.decoding.sampling import Sampling
from synmt_cli.core.text.vocabulary import EOS
from synmt_cli.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """A translation of one source.

    ids: without BOS and EOS. log_prob: log P(ids, EOS | source), natural. length: the number of
    tokens, EOS included; transitions do not count. score: `normalised_score`. cut: the length
    limit came before EOS, and log_prob, length and score are those of the prefix; or the limit
    made a tree end. n_closing: how many ids closing.py added at the end, to complete the tree
    after the model had ended it; log_prob is that of the ids before them, and EOS.
    """

    ids: list[int]
    log_prob: float
    length: int
    score: float
    cut: bool = False
    n_closing: int = 0


def refuse_nan(is_nan: bool) -> None:
    """Raises ConfigError where a score is not a number: all that search could find is noise."""
    if is_nan:
        raise ConfigError(
            "the model's scores are not numbers: try --precision fp32, or another checkpoint"
        )


def normalised_score(log_prob: float, length: int, lenpen: float) -> float:
    """log P / length^lenpen, EOS counted: fairseq's length penalty. The length is at least 1.

    GNMT has another one: it divides by ((5 + length) / 6)^lenpen.

    >>> normalised_score(-6.0, 9, 0.5)
    -2.0
    """
    return log_prob / max(length, 1) ** lenpen


def hypothesis(tokens: list[int], log_prob: float, length: int, lenpen: float) -> Hypothesis:
    """The generated tokens, EOS included unless the limit came first, as a Hypothesis."""
    cut = tokens[-1] != EOS
    ids = tokens if cut else tokens[:-1]
    return Hypothesis(ids, log_prob, length, normalised_score(log_prob, length, lenpen), cut)


class LengthLimit(NamedTuple):
    """How long a translation may be: ratio * source tokens + extra, EOS counted on both sides."""

    ratio: float = 2.0
    extra: int = 20


LONGEST = LengthLimit()


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """How to search.

    beam: prefixes kept; 1 is greedy search. lenpen: at least 0, finite. nbest: translations of each
    source. longest: in pieces; longer translations are cut, marked, and put after the complete
    ones. patience: a source is done when patience * beam translations are finished, and at least
    nbest; 1 is the rule of fairseq; inf searches on until no prefix can be better. constrained:
    transitions build a tree, which is complete within the limit; one that reaches the limit is
    also marked. scores: whether they are wanted; without them greedy search leaves them 0.
    sampling: translations are drawn instead, nbest of each source, in the order of drawing; then
    beam and patience mean nothing.
    """

    beam: int = 1
    lenpen: float = 0.6
    nbest: int = 1
    longest: LengthLimit = LONGEST
    constrained: bool = True
    patience: float = math.inf
    scores: bool = True
    sampling: Sampling | None = None

    def __post_init__(self) -> None:
        """Raises ValueError."""
        most = self.beam if self.sampling is None else math.inf
        is_known = 0 <= self.lenpen < math.inf and self.patience > 0  # NaN is neither
        if not is_known or not 1 <= self.nbest <= most:
            raise ValueError(f"no search has these: {self}")


def limits(lengths: Sequence[int], longest: LengthLimit, least: int = 1) -> list[int]:
    """The length limit of each source's translation, at least `least`. lengths: of the sources."""
    return [max(least, int(n * longest.ratio + longest.extra)) for n in lengths]
