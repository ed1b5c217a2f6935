"""A set of lines, remembered by 128-bit digests rather than by the lines.

The probability that two different lines of a billion have the same digest is 1e-21.
"""

import unicodedata
from array import array
from collections.abc import Sequence
from hashlib import blake2b
from itertools import islice

SMALLEST = 2**10  # slots
FULLEST = 0.7  # of the slots are taken before the table grows
GROWTH = 1.5
SLOT = 16  # bytes
# Bytes for each line: in a table about to grow, in one just grown, and in both while it grows.
LEAST_BYTES = round(SLOT / FULLEST)
MOST_BYTES = round(SLOT / FULLEST * GROWTH)
GROWING_BYTES = round(SLOT / FULLEST * (1 + GROWTH))


def same(text: str) -> str:
    """A form that is equal for lines that count as the same: NFC, single spaces, none at the ends.

    >>> same(" a  b") == same("a b")
    True
    """
    return unicodedata.normalize("NFC", " ".join(text.split()))


def digest(texts: Sequence[str]) -> bytes:
    """16 bytes for one or several lines, the same for lines that are `same`."""
    return blake2b("\n".join(map(same, texts)).encode(), digest_size=SLOT).digest()


class Digests:
    """A set of digests in one array with open addressing, LEAST_BYTES to MOST_BYTES for each."""

    def __init__(self) -> None:
        self._n_slots = SMALLEST
        self._words = array("Q", [0]) * (2 * SMALLEST)  # two for each slot, 0 in a free one
        self._n = 0

    def __len__(self) -> int:
        return self._n

    def __contains__(self, digest: bytes) -> bool:
        first, second = _words(digest)
        return self._words[self._place(first, second)] != 0

    def add(self, digest: bytes) -> bool:
        """Adds a digest. Returns whether it is new."""
        first, second = _words(digest)
        place = self._place(first, second)
        if self._words[place]:
            return False
        self._words[place], self._words[place + 1] = first, second
        self._n += 1
        if self._n > FULLEST * self._n_slots:
            self._grow()
        return True

    def _place(self, first: int, second: int) -> int:
        """The place of these words, or the free slot where they belong."""
        words, place = self._words, 2 * (second % self._n_slots)
        while (taken := words[place]) and (taken != first or words[place + 1] != second):
            place += 2
            if place == 2 * self._n_slots:
                place = 0
        return place

    def _grow(self) -> None:
        old = iter(self._words)
        self._n_slots = int(GROWTH * self._n_slots)
        self._words = array("Q", [0]) * (2 * self._n_slots)
        while pair := tuple(islice(old, 2)):
            if pair[0]:
                place = self._place(*pair)
                self._words[place], self._words[place + 1] = pair


def _words(digest: bytes) -> tuple[int, int]:
    """The two 64-bit words of a digest; the first is never 0, because 0 marks a free slot."""
    return int.from_bytes(digest[:8], "little") or 1, int.from_bytes(digest[8:], "little")
