"""Trees made projective by lifting (Nivre and Nilsson 2005, "Pseudo-Projective Dependency
Parsing"): a word whose arc is not projective moves to the head of its head, until no such arc
is left. The word of the shortest arc comes first, the leftmost among equals. Labels do not
change, and nothing in them tells what was lifted: this is their baseline without an encoding.
"""

import heapq
from collections.abc import Sequence

from synmt_cli.core.trees.heads import ROOT, children


def projective(heads: Sequence[int]) -> tuple[list[int], int]:
    """(the heads of a projective tree, how many words have another head than before).

    An arc is projective if all words between its ends are below its head. Lifting takes words
    from below a head and never puts one there, so an arc that is not projective stays so until
    it is lifted itself, and only the other arcs of that head can cease to be projective. Takes
    as many steps as lifts times the length of arcs, in the worst case cubic in the sentence.

    >>> projective([1, -1, 3, 1, 2])
    ([1, -1, 3, 1, 3], 1)
    """
    lifted = list(heads)
    below = [set(words) for words in children(lifted)]
    waiting = [
        (abs(word - head), word)
        for word, head in enumerate(lifted)
        if head != ROOT and not _is_projective(lifted, word)
    ]
    heapq.heapify(waiting)
    listed = {word for _, word in waiting}
    while waiting:
        _, word = heapq.heappop(waiting)
        listed.remove(word)
        old = lifted[word]
        new = lifted[old]
        lifted[word] = new
        below[old].remove(word)
        below[new].add(word)
        for other in (word, *below[old]):
            if other not in listed and not _is_projective(lifted, other):
                listed.add(other)
                heapq.heappush(waiting, (abs(other - lifted[other]), other))
    return lifted, sum(map(int.__ne__, heads, lifted))


def _is_projective(heads: Sequence[int], word: int) -> bool:
    """Whether all words between a word and its head are below that head."""
    head = heads[word]
    below = {head, word}
    for between in range(min(word, head) + 1, max(word, head)):
        path = []
        while between not in below:
            if between == ROOT:
                return False
            path.append(between)
            between = heads[between]
        below.update(path)
    return True
