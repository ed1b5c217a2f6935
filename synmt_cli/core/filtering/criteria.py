"""The tests that a pair must pass. Each tests one thing and has the name of its option.

A test gives the problem of a pair, or "" where the pair passes. It raises the pair's error
where the pair lacks what is tested.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Protocol

from synmt_cli.core.filtering.digests import Digests, digest
from synmt_cli.core.filtering.pairs import SIDES, Pair
from synmt_cli.core.segments.buckets import n_words
from synmt_cli.core.trees.heads import is_projective
from synmt_cli.errors import printable
from synmt_cli.formats.record import EMPTY, OK


class Criterion(Protocol):
    """A test. name: its option, with which its reasons begin."""

    @property
    def name(self) -> str:
        """As in `NAME: PROBLEM`."""
        ...

    def problem(self, pair: Pair) -> str:
        """What is wrong with a pair, "" where nothing is."""
        ...


# unit: the length of one side of a pair in it
UNITS: dict[str, Callable[[Pair, int], int]] = {
    "words": lambda pair, side: n_words(pair.texts[side]),
    "chars": lambda pair, side: len(pair.texts[side].strip()),
    "pieces": lambda pair, side: pair.n_pieces(side, "--unit pieces"),
}


@dataclass(frozen=True, slots=True)
class Status:
    """Nothing has failed before: neither parsing nor joining the tree with its line."""

    name: ClassVar[str] = "status"

    def problem(self, pair: Pair) -> str:
        """The status and its reason. An empty line has not failed: that is for MinLength."""
        segment = pair.segment
        if segment.status in (OK, EMPTY):
            return ""
        return f"{segment.status}: {printable(segment.reason)}".removesuffix(": ")


@dataclass(frozen=True, slots=True)
class MinLength:
    """Each side has n units or more. A blank line has 0."""

    n: int
    unit: str = "words"
    name: ClassVar[str] = "min-len"

    def problem(self, pair: Pair) -> str:
        """The first side that is shorter."""
        return _first_unfit(pair, self.unit, lambda length: length < self.n)


@dataclass(frozen=True, slots=True)
class MaxLength:
    """Each side has at most n units."""

    n: int
    unit: str = "words"
    name: ClassVar[str] = "max-len"

    def problem(self, pair: Pair) -> str:
        """The first side that is longer."""
        return _first_unfit(pair, self.unit, lambda length: length > self.n)


def _first_unfit(pair: Pair, unit: str, is_unfit: Callable[[int], bool]) -> str:
    for side in range(len(pair.texts)):
        if is_unfit(length := UNITS[unit](pair, side)):
            return f"{length} {SIDES[side]} {unit}"
    return ""


@dataclass(frozen=True, slots=True)
class MaxWordLength:
    """No word of either side has more than n characters."""

    n: int
    name: ClassVar[str] = "max-word-len"

    def problem(self, pair: Pair) -> str:
        """The first side with a longer word."""
        for side, text in zip(SIDES, pair.texts, strict=False):
            if len(text) > self.n and (longest := max(map(len, text.split()), default=0)) > self.n:
                return f"a {side} word of {longest} characters"
        return ""


@dataclass(frozen=True, slots=True)
class Ratio:
    """The longer side has at most n times the units of the shorter one, as in clean-corpus-n."""

    n: float
    unit: str = "words"
    name: ClassVar[str] = "ratio"

    def problem(self, pair: Pair) -> str:
        """Both lengths."""
        pair.both("--ratio")
        source, target = (UNITS[self.unit](pair, side) for side in (0, 1))
        if max(source, target) <= self.n * min(source, target):
            return ""
        return f"{source} : {target} {self.unit}"


@dataclass(frozen=True, slots=True)
class MaxTargetPieces:
    """The target has at most n pieces, transitions not counted.

    Choshen and Abend (2021), "non-transition tokens"; their code counts the transitions too.
    """

    n: int
    name: ClassVar[str] = "max-tgt-pieces"

    def problem(self, pair: Pair) -> str:
        """The number of pieces."""
        n = pair.n_pieces(1, "--max-tgt-pieces")
        return f"{n} pieces" if n > self.n else ""


@dataclass(frozen=True, slots=True)
class MinAlignment:
    """The score of an aligner is n or more."""

    n: float
    name: ClassVar[str] = "min-align"

    def problem(self, pair: Pair) -> str:
        """The score."""
        assert pair.score is not None  # the command opens the scores
        return f"{pair.score:g}" if pair.score < self.n else ""


@dataclass(frozen=True, slots=True)
class Projective:
    """The trees of the source are projective."""

    name: ClassVar[str] = "projective"

    def problem(self, pair: Pair) -> str:
        """That they are not."""
        heads = pair.heads("--projective")
        return "" if is_projective(heads) else "an arc over a word that is not below it"


@dataclass(frozen=True, slots=True)
class Excluded:
    """No chosen side is among the lines of other files. side: src, tgt, or any of both."""

    lines: Digests
    side: str = "any"
    name: ClassVar[str] = "exclude"

    def problem(self, pair: Pair) -> str:
        """The first side that is among them."""
        if self.side == "tgt":
            pair.both("--exclude-side tgt")
        for side, text in zip(("src", "tgt"), pair.texts, strict=False):
            if self.side in ("any", side) and digest([text]) in self.lines:
                return f"{side} in an excluded file"
        return ""


@dataclass(frozen=True, slots=True)
class Unique:
    """The pair, or one side of it, differs from that of every pair kept before.

    side: pair, src, tgt. Remembers every pair that it tests.
    """

    seen: Digests
    side: str = "pair"
    name: ClassVar[str] = "dedup"

    def problem(self, pair: Pair) -> str:
        """What was there before."""
        if self.side == "tgt":
            pair.both("--dedup tgt")
        texts = {"pair": pair.texts, "src": pair.texts[:1], "tgt": pair.texts[1:]}[self.side]
        return "" if self.seen.add(digest(texts)) else f"{self.side} seen before"
