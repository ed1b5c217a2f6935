"""The tests that a pair must pass.

Each tests one thing. It returns the problem of a pair, or "" if the pair passes, and raises the
pair's error if the pair lacks what is tested.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass

from synmt_cli.core.filtering.line_hashes import Digests, digest
from synmt_cli.core.filtering.pairs import SIDES, Pair
from synmt_cli.core.segments.buckets import n_words
from synmt_cli.core.trees.heads import is_projective
from synmt_cli.errors import printable
from synmt_cli.formats.record import EMPTY, OK


@dataclass(frozen=True, slots=True)
class Criterion:
    """A test. name: that of its option; its reasons begin with it, `NAME: PROBLEM`."""

    name: str
    problem: Callable[[Pair], str]


def _n_pieces(pair: Pair, side: int) -> int:
    """Pieces of one side. A blank side has 0: white space other than spaces may have pieces."""
    n = pair.n_pieces(side, "--unit pieces")
    return n if pair.texts[side].strip() else 0


# Unit -> a function that measures one side of a pair in it.
UNITS: dict[str, Callable[[Pair, int], int]] = {
    "words": lambda pair, side: n_words(pair.texts[side]),
    "chars": lambda pair, side: len(pair.texts[side].strip()),
    "pieces": _n_pieces,
}


def status(pair: Pair) -> str:
    """The status, if the line was skipped, or parsing it or joining it with its tree failed.

    An empty line has not failed: its length is 0.
    """
    segment = pair.segment
    if segment.status in (OK, EMPTY):
        return ""
    return f"{segment.status}: {printable(segment.reason)}".removesuffix(": ")


def length(pair: Pair, least: int = 0, most: int = sys.maxsize, unit: str = "words") -> str:
    """The first side with fewer units than `least` or more than `most`. A blank line has 0."""
    length_of = UNITS[unit]
    for side in range(len(pair.texts)):
        if not least <= (n := length_of(pair, side)) <= most:
            return f"{n} {SIDES[side]} {unit}"
    return ""


def word_length(pair: Pair, most: int) -> str:
    """The first side with a word of more than `most` characters."""
    for side, text in zip(SIDES, pair.texts, strict=False):
        if len(text) > most and (longest := max(map(len, text.split()), default=0)) > most:
            return f"a {side} word of {longest} characters"
    return ""


def ratio(pair: Pair, most: float, unit: str = "words") -> str:
    """Both lengths, if the longer is more than `most` times the other, as in clean-corpus-n."""
    pair.require_both("--ratio")
    source, target = (UNITS[unit](pair, side) for side in (0, 1))
    fewer, more = sorted((source, target))
    # 1.4 * 45 is less than 63 in floats, and 63 / 45 is 1.4.
    fits = more / fewer <= most if fewer else not more
    return "" if fits else f"{source} : {target} {unit}"


def target_pieces(pair: Pair, most: int) -> str:
    """The number of target pieces, if it is more than `most`. Transitions do not count.

    Choshen and Abend (2021), "non-transition tokens"; their code counts the transitions too.
    """
    n = pair.n_pieces(1, "--max-tgt-pieces")
    return f"{n} pieces" if n > most else ""


def alignment(pair: Pair, least: float) -> str:
    """The score of an aligner, if it is less than `least`."""
    assert pair.score is not None  # the command opens the scores
    return f"{pair.score:g}" if pair.score < least else ""


def projective(pair: Pair) -> str:
    """The problem, if a tree of the source is not projective."""
    heads = pair.heads("--projective")
    return "" if is_projective(heads) else "an arc over a word that its head does not dominate"


def excluded(pair: Pair, lines: Digests, side: str = "any") -> str:
    """The first chosen side that is among the lines. side: src, tgt, or any."""
    if side == "tgt":
        pair.require_both("--exclude-side tgt")
    for name, text in zip(("src", "tgt"), pair.texts, strict=False):
        if side in ("any", name) and digest([text]) in lines:
            return f"{name} in an excluded file"
    return ""


def repeated(pair: Pair, seen: Digests, side: str = "pair") -> str:
    """The problem, if the pair, or one side of it, was seen before. Adds it to those seen.

    side: pair, src, tgt.
    """
    if side == "tgt":
        pair.require_both("--dedup tgt")
    texts = {"pair": pair.texts, "src": pair.texts[:1], "tgt": pair.texts[1:]}[side]
    return "" if seen.add(digest(texts)) else f"{side} seen before"
