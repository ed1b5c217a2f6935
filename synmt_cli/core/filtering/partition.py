"""A parallel text cut at random into parts that share no line: training, development, test.

Pairs that share a line on the same side, as `line_hashes.same` compares them, belong to one group,
and so do pairs that are joined by a chain of such pairs. A group goes whole to one part. Groups
are taken in the order of a hash of their first source line and the seed, so that the cut depends
on the text and the seed alone. A pair with a blank side goes to the rest, and so does its group.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from hashlib import blake2b

from synmt_cli.core.filtering.line_hashes import digest
from synmt_cli.errors import UsageError

REST = -1  # the part of pairs that no other part takes


class Groups:
    """Pairs of lines, grouped by the lines that they share: about 300 bytes a pair."""

    def __init__(self) -> None:
        self._above: list[int] = []  # for each pair another one of its group, itself at the root
        self._first: list[dict[int, int]] = []  # for each side, the first pair of each line
        self._hashes: list[int] = []  # of the first side
        self._blank: list[int] = []  # pairs with a blank side

    def __len__(self) -> int:
        return len(self._above)

    def add(self, sides: Sequence[str]) -> None:
        """Adds the next pair."""
        number = len(self._above)
        self._first = self._first or [{} for _ in sides]
        self._above.append(number)
        for seen, text in zip(self._first, sides, strict=True):
            hash = int.from_bytes(digest([text])[:8], "little")
            if seen is self._first[0]:
                self._hashes.append(hash)
            if text.strip():
                self._join(seen.setdefault(hash, number), number)
            else:
                self._blank.append(number)

    def parts(self, sizes: Sequence[int], seed: int) -> list[int]:
        """The part of each pair: an index of `sizes`, the numbers of pairs in each part, or REST.

        Raises UsageError if the groups do not fill a part.
        """
        roots = [self._root(number) for number in range(len(self))]
        members = Counter(roots)
        for number in self._blank:
            members.pop(roots[number], None)
        part_of, left = dict.fromkeys(members, REST), [*sizes]
        for root in sorted(members, key=lambda root: _place(self._hashes[root], seed)):
            for part, room in enumerate(left):
                if members[root] <= room:
                    part_of[root] = part
                    left[part] -= members[root]
                    break
            if not any(left):
                break
        for size, room in zip(sizes, left, strict=True):
            if room:
                raise UsageError(
                    f"no part of {size:,} pairs: {len(self):,} pairs are too few, or too many of "
                    "them share a line; another --seed may do"
                )
        return [part_of.get(root, REST) for root in roots]

    def _root(self, number: int) -> int:
        while (above := self._above[number]) != number:
            self._above[number] = self._above[above]  # the way is half as long next time
            number = self._above[number]
        return number

    def _join(self, one: int, other: int) -> None:
        first, second = sorted((self._root(one), self._root(other)))
        self._above[second] = first


def grouped(pairs: Iterable[Sequence[str]]) -> Groups:
    """The groups of all pairs.

    >>> groups = grouped([("a", "x"), ("b", "y"), ("a", "z"), ("c", "z")])
    >>> parts = groups.parts([1], seed=1)
    >>> parts[1], parts[0] == parts[2] == parts[3] == REST
    (0, True)
    """
    groups = Groups()
    for sides in pairs:
        groups.add(sides)
    return groups


def _place(hash: int, seed: int) -> bytes:
    return blake2b(hash.to_bytes(8, "little") + str(seed).encode(), digest_size=8).digest()
