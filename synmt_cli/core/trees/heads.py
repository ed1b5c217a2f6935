"""Dependency trees as lists of heads: heads[i] is the head of word i, -1 marks a root.

A line of several sentences is one list with several roots. Nothing here recurses, so that
a chain of a hundred thousand words is as safe as a short one.
"""

from collections.abc import Sequence
from typing import TypeVar

ROOT = -1
_UNKNOWN, _OPEN = -1, -2
Label = TypeVar("Label")


def depths(heads: Sequence[int]) -> list[int]:
    """The number of arcs between each word and its root. Raises ValueError on a cycle.

    Omote et al. (2019), Figure 2, "My father bought a red car .":

    >>> depths([1, 2, -1, 5, 5, 2, 2])
    [2, 1, 0, 2, 2, 1, 1]
    """
    known = [_UNKNOWN] * len(heads)
    for start in range(len(heads)):
        path, word = [], start
        while word != ROOT and known[word] == _UNKNOWN:
            known[word] = _OPEN
            path.append(word)
            word = heads[word]
        depth = ROOT if word == ROOT else known[word]
        if depth == _OPEN:
            raise ValueError("a cycle of heads")
        for word in reversed(path):
            depth += 1
            known[word] = depth
    return known


def children(heads: Sequence[int]) -> list[list[int]]:
    """The dependents of each word, from left to right.

    >>> children([1, -1, 1])
    [[], [0, 2], []]
    """
    dependents: list[list[int]] = [[] for _ in heads]
    for word, head in enumerate(heads):
        if head != ROOT:
            dependents[head].append(word)
    return dependents


def paths(heads: Sequence[int], labels: Sequence[Label]) -> list[list[Label]]:
    """The labels from the root down to each word, the root's own first: depth + 1 of them.

    A path is as long as the tree is deep, so a chain of n words takes n * n / 2 labels.

    >>> paths([1, -1, 1], ["nsubj", "root", "obj"])
    [['root', 'nsubj'], ['root'], ['root', 'obj']]
    """
    of_words: list[list[Label]] = [[] for _ in heads]
    for word in from_roots(heads):
        above = [] if heads[word] == ROOT else of_words[heads[word]]
        of_words[word] = [*above, labels[word]]
    return of_words


def from_roots(heads: Sequence[int]) -> list[int]:
    """Every word, none before its head. Raises ValueError on a cycle."""
    return sorted(range(len(heads)), key=depths(heads).__getitem__)


def is_projective(heads: Sequence[int]) -> bool:
    """Whether every word between a head and its dependent is below that head.

    Equivalently: whether each word and everything below it stand next to each other. An arc over
    the root is not projective, although it crosses no other arc between words:

    >>> is_projective([1, -1, 1]), is_projective([2, -1, 1])
    (True, False)
    """
    n = len(heads)
    first, last, size = list(range(n)), list(range(n)), [1] * n
    for word in reversed(from_roots(heads)):
        if last[word] - first[word] + 1 != size[word]:
            return False
        head = heads[word]
        if head != ROOT:
            first[head] = min(first[head], first[word])
            last[head] = max(last[head], last[word])
            size[head] += size[word]
    return True


def contracted(heads: Sequence[int], nodes: Sequence[int]) -> tuple[list[int], list[int]]:
    """A tree with neighbours merged: (the word that represents each node, the nodes' heads).

    nodes: the node of each word, rising from 0 without a gap. A node is represented by its
    highest word, the first among equals, and depends on the node of that word's head; other
    arcs to its words are lost. A tree stays a tree, a projective one projective. "ist zum
    Lachen", with `zum` for `zu dem`:

    >>> contracted([3, 3, 3, -1], [0, 1, 1, 2])
    ([0, 1, 3], [2, 2, -1])
    """
    highest: dict[int, int] = {}
    depth = depths(heads)
    for word, node in enumerate(nodes):
        if node not in highest or depth[word] < depth[highest[node]]:
            highest[node] = word
    words = list(highest.values())
    above = (heads[word] for word in words)
    return words, [ROOT if head == ROOT else nodes[head] for head in above]
