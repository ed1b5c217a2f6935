"""Trees over n words that no sentence asked for: chains, a balanced tree, random ones.

Heads are 0-based, -1 marks the one root. `draw` gives numbers uniform in [0, 1), such as
Random.random, the one method whose sequence Python promises to keep. All is linear in n.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate

from synmt_cli.core.trees.heads import ROOT

Draw = Callable[[], float]


def left_branching(n: int) -> list[int]:
    """Each word depends on the next, the last is the root: the tree grows to the left.

    >>> left_branching(4)
    [1, 2, 3, -1]
    """
    return [*range(1, n), ROOT]


def right_branching(n: int) -> list[int]:
    """Each word depends on the one before it, the first is the root.

    >>> right_branching(4)
    [-1, 0, 1, 2]
    """
    return list(range(ROOT, n - 1))


def balanced(n: int) -> list[int]:
    """The middle word is the root, and so on in each half: a binary search tree.

    Of two middle words it is the left one. The depth is floor(log2(n)).

    >>> balanced(7)
    [1, 3, 1, -1, 5, 3, 5]
    """
    heads = [ROOT] * n
    parts = [(0, n, ROOT)]
    while parts:
        begin, end, head = parts.pop()
        if begin < end:
            middle = (begin + end - 1) // 2
            heads[middle] = head
            parts += (begin, middle, middle), (middle + 1, end, middle)
    return heads


def permutation(n: int, draw: Draw) -> list[int]:
    """The numbers below n in random order, each order as likely."""
    order = list(range(n))
    for last in range(n - 1, 0, -1):
        other = int(draw() * (last + 1))
        order[last], order[other] = order[other], order[last]
    return order


def shuffled(heads: Sequence[int], places: Sequence[int]) -> list[int]:
    """The same tree with other words in it: word i takes the place of word places[i].

    >>> shuffled([1, -1, 1], [0, 2, 1])
    [2, 2, -1]
    """
    word_at = [0] * len(heads)
    for word, place in enumerate(places):
        word_at[place] = word
    above = (heads[place] for place in places)
    return [ROOT if head == ROOT else word_at[head] for head in above]


def random_tree(n: int, draw: Draw) -> list[int]:
    """One of the n^(n-1) rooted trees over n words, each as likely."""
    heads = [ROOT] * n
    root = int(draw() * n)
    join(heads, range(n), [word for word in range(n) if word != root], root, draw)
    return heads


def join(
    heads: list[int], tops: Sequence[int], loose: Sequence[int], anchor: int, draw: Draw
) -> None:
    """Joins trees to one, each way as likely: sets the heads of `loose`.

    tops: the top of each word's tree. loose: all tops but that of the tree that holds the
    word `anchor`, which stays on top and gets a dependent at `anchor`. So with `anchor` drawn
    from the words of one tree, what comes is uniform among all heads of `loose` that make
    one tree under that tree's top; these are as many as it has words, times n^(k - 1), where
    k = len(loose).

    This is Prüfer's code (1918), read backwards: a tree of trees is a sequence of k heads, the
    last of them in the top tree, and any k - 1 words will do for the others. A tree takes the
    next head when nothing waits to be put below it; of several the last one on the stack.
    """
    n, top = len(heads), tops[anchor]
    drawn = [int(draw() * n) for _ in loose[1:]]
    drawn += [anchor] if loose else []
    n_awaited = [0] * n
    for head in drawn:
        n_awaited[tops[head]] += 1
    free = [word for word in loose if not n_awaited[word]]
    for head in drawn:
        heads[free.pop()] = head
        above = tops[head]
        n_awaited[above] -= 1
        if not n_awaited[above] and above != top:
            free.append(above)


def random_projective_tree(n: int, draw: Draw) -> list[int]:
    """One of the C(3n - 2, n - 1) / n projective rooted trees over n words, each as likely.

    Such a tree is, for each word, how many dependents it has on its left and how many on its
    right: 2n numbers with the sum n - 1, in the order of a walk from the top. Of the n
    rotations of any such numbers exactly one is a tree (the cycle lemma, Dvoretzky and
    Motzkin 1947), so that numbers drawn uniformly give trees drawn uniformly.
    """
    numbers = _numbers(2 * n, n - 1, draw)
    lefts, rights = numbers[::2], numbers[1::2]
    steps = [left + right - 1 for left, right in zip(lefts, rights, strict=True)]
    sums = list(accumulate(steps))
    first = (sums.index(min(sums)) + 1) % n
    lefts, rights = (side[first:] + side[:first] for side in (lefts, rights))
    return _placed(lefts, rights)


def _numbers(n: int, total: int, draw: Draw) -> list[int]:
    """n numbers from 0 with this sum, each list of them as likely."""
    found = [0]
    for places in range(n - 1 + total, 0, -1):  # of n - 1 bars and `total` stars
        if draw() * places < total:
            found[-1] += 1
            total -= 1
        else:
            found.append(0)
    return found


def _placed(lefts: Sequence[int], rights: Sequence[int]) -> list[int]:
    """The heads of the tree whose nodes, from the top, have so many dependents on each side."""
    n = len(lefts)
    parents, places = [ROOT] * n, [0] * n
    open_nodes: list[list[int]] = []  # node, dependents to come on the left, on the right
    n_placed = 0
    for node in range(n):
        parents[node] = open_nodes[-1][0] if open_nodes else ROOT
        open_nodes.append([node, lefts[node], rights[node]])
        if not lefts[node]:
            places[node] = n_placed
            n_placed += 1
        while open_nodes and open_nodes[-1][1:] == [0, 0]:
            open_nodes.pop()
            if open_nodes and open_nodes[-1][1]:
                open_nodes[-1][1] -= 1
                if not open_nodes[-1][1]:  # all on its left are placed: now it is
                    places[open_nodes[-1][0]] = n_placed
                    n_placed += 1
            elif open_nodes:
                open_nodes[-1][2] -= 1
    heads = [ROOT] * n
    for node, parent in enumerate(parents):
        heads[places[node]] = ROOT if parent == ROOT else places[parent]
    return heads
