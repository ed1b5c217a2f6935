"""The groups of words that `evaltree --by` counts together.

    deprel             words with this label: in gold, and in the system's tree
    upos               words with this tag in gold; a word that only the system has, by its own tag
    distance[:EDGES]   words this far from their heads, in words; `root` is the group of the roots
    length[:EDGES]     words of gold sentences with this many words; a word that only the system
                       has belongs to the gold sentence in which it begins

The edges of distance are the bins of CoNLL-X (Buchholz and Marsi 2006): 1, 2, 3-6, 7+. If a system
word and its head are both aligned, their distance is that of the gold words, so that both sides
agree on the distance of a right arc even if tokens between the two are split differently.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from synmt_cli.core.evaluation.trees.word_alignment import UNALIGNED, Words
from synmt_cli.core.segments.buckets import Buckets, parse_edges
from synmt_cli.core.trees.heads import ROOT
from synmt_cli.errors import UsageError, quoted

EDGES = {"distance": Buckets((2, 3, 7)), "length": Buckets()}
WITHOUT_EDGES = ("deprel", "upos")
AT_ROOT = "root"
Groups = Sequence[str]  # the group of each word


@dataclass(frozen=True, slots=True)
class Grouping:
    """A way to group words: its kind, and the buckets if the kind has some."""

    kind: str
    buckets: Buckets | None = None

    @property
    def names(self) -> list[str] | None:
        """All groups in their order; None where the words say what groups there are."""
        if self.buckets is None:
            return None
        if self.kind == "length":
            return [*self.buckets.names]
        return [AT_ROOT, *(self._at(low or 1) for low, high in self.buckets.limits if high != 0)]

    def of(
        self,
        gold: Words,
        system: Words,
        labels: tuple[Sequence[str], Sequence[str]],
        aligned: Sequence[int],
    ) -> tuple[Groups, Groups]:
        """The groups of gold's and of the system's words.

        labels: of both as they are compared. aligned: the gold word of each system word, or
        UNALIGNED.
        """
        if self.kind == "deprel":
            return labels
        if self.kind == "upos":
            return gold.upos, [
                system.upos[s] if g == UNALIGNED else gold.upos[g] for s, g in enumerate(aligned)
            ]
        if self.kind == "distance":
            here = range(len(gold.heads))
            return self._by_distance(gold.heads, here), self._by_distance(system.heads, aligned)
        of_gold, begins = self._by_length(gold, gold), self._by_length(system, gold)
        return of_gold, [begins[s] if g == UNALIGNED else of_gold[g] for s, g in enumerate(aligned)]

    def in_length(self, n_words: int) -> str:
        """The group of a sentence of so many words."""
        assert self.buckets is not None
        return self.buckets.names[self.buckets.index(n_words)]

    def _by_length(self, side: Words, gold: Words) -> Groups:
        begins = [begin for begin, _ in gold.sentences]
        groups = [self.in_length(length) for _, length in gold.sentences]
        return [groups[bisect_right(begins, begin) - 1] for begin, _ in side.spans]

    def _by_distance(self, heads: Sequence[int], places: Sequence[int]) -> Groups:
        """The groups of words by distance. places: of each word among gold's, or UNALIGNED."""
        groups = []
        for word, head in enumerate(heads):
            if head == ROOT:
                groups.append(AT_ROOT)
            elif UNALIGNED in (places[word], places[head]):
                groups.append(self._at(abs(word - head)))
            else:
                groups.append(self._at(abs(places[word] - places[head])))
        return groups

    def _at(self, distance: int) -> str:
        """The group of a distance of 1 or more; no distance is 0, so `0-4` is `1-4`."""
        assert self.buckets is not None
        low, high = self.buckets.limits[self.buckets.index(distance)]
        return Buckets.name(low or 1, high)


def grouping(option: str) -> Grouping:
    """The grouping of an option --by. Raises UsageError."""
    kind, colon, edges = option.partition(":")
    if kind in EDGES:
        return Grouping(kind, parse_edges(edges) if colon else EDGES[kind])
    if option in WITHOUT_EDGES:
        return Grouping(option)
    forms = (*WITHOUT_EDGES, *(f"{kind}[:EDGES]" for kind in EDGES))
    raise UsageError(f"--by takes {', '.join(forms)}, not {quoted(option)}")
