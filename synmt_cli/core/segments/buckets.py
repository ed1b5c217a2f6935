"""Buckets of whole numbers: [0, e1), [e1, e2), ..., [ek, infinity)."""

from bisect import bisect_right
from dataclasses import dataclass
from functools import lru_cache

from synmt_cli.errors import UsageError, quoted

EDGES = (20, 30, 40, 50)  # as in Xie et al. (2021), Figure 2


@dataclass(frozen=True, slots=True)
class Buckets:
    """Buckets with these edges, positive and rising; the default is for lengths in words.

    >>> Buckets((20, 30)).names
    ('0-19', '20-29', '30+')
    """

    edges: tuple[int, ...] = EDGES

    def __post_init__(self) -> None:
        pairs = zip((0, *self.edges), self.edges, strict=False)
        if not self.edges or any(low >= high for low, high in pairs):
            raise ValueError("edges must be positive and rise")

    @property
    def limits(self) -> tuple[tuple[int, int | None], ...]:
        """The least and the greatest number of each bucket; the last has no greatest."""
        lows = (0, *self.edges)
        return tuple(zip(lows, (*(edge - 1 for edge in self.edges), None), strict=True))

    @property
    def names(self) -> tuple[str, ...]:
        """`LOW-HIGH`, both included, `LOW` where they are the same, and `LOW+`."""
        return _names(self)

    @staticmethod
    def name(low: int, high: int | None) -> str:
        """The name of a bucket with these limits."""
        if high is None:
            return f"{low}+"
        return str(low) if low == high else f"{low}-{high}"

    def index(self, n: int) -> int:
        """Which bucket a number falls in: an edge belongs to the bucket that it begins."""
        return bisect_right(self.edges, n)


@lru_cache(maxsize=16)
def _names(buckets: Buckets) -> tuple[str, ...]:
    """The names, made once, since they are asked for with each segment."""
    return tuple(buckets.name(low, high) for low, high in buckets.limits)


def length_buckets(by: str) -> Buckets:
    """Buckets from `length` (the usual edges) or `length:20,30,40,50`. Raises UsageError.

    >>> length_buckets("length:20,30").names
    ('0-19', '20-29', '30+')
    """
    kind, colon, edges = by.partition(":")
    if kind != "length":
        raise UsageError(f"--by takes length or length:20,30,40,50, not {quoted(by)}")
    return parse_edges(edges) if colon else Buckets()


def parse_edges(text: str) -> Buckets:
    """Buckets from `20,30,40,50`. Raises UsageError."""
    parts = text.split(",")
    if not all(part.isascii() and part.isdigit() and len(part) <= 9 for part in parts):
        raise UsageError(f"edges are whole numbers with commas, like 20,30,40: {quoted(text)}")
    try:
        return Buckets(tuple(map(int, parts)))
    except ValueError as error:
        raise UsageError(f"{error}: {quoted(text)}") from None


def n_words(line: str) -> int:
    """Words between white space. An empty line has none."""
    return len(line.split())
