"""Trees over n words that follow no sentence: chains, a balanced tree, random trees.

Heads are 0-based, -1 marks the one root. `draw` gives numbers uniform in [0, 1), such as
Random.random, the one method whose sequence Python promises to keep. Everything is linear in n.
"""

from collections.abc import Callable, Sequence
from itertools import accumulate

from synmt_cli.core.trees.heads import ROOT

Draw = Callable[[], float]


def left_branching(n: int) -> list[int]:
    """Each word depends on the next one, and the last is the root: the tree grows to the left.

    >>> left_branching(4)
    [1, 2, 3, -1]
    """
    return [*range(1, n), ROOT]


def right_branching(n: int) -> list[int]:
    """Each word depends on the one before it, and the first is the root.

    >>> right_branching(4)
    [-1, 0, 1, 2]
    """
    return list(range(ROOT, n - 1))


def balanced(n: int) -> list[int]:
    """The middle word is the root, and so on in each half: a binary search tree.

    The left one of two middle words is taken. The depth is floor(log2(n)).

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
    """The numbers below n in random order, all orders equally likely."""
    order = list(range(n))
    for last in range(n - 1, 0, -1):
        other = int(draw() * (last + 1))
        order[last], order[other] = order[other], order[last]
    return order


def shuffled(heads: Sequence[int], places: Sequence[int]) -> list[int]:
    """The same tree with its words exchanged: word i takes the place of word places[i].

    >>> shuffled([1, -1, 1], [0, 2, 1])
    [2, 2, -1]
    """
    word_at = [0] * len(heads)
    for word, place in enumerate(places):
        word_at[place] = word
    above = (heads[place] for place in places)
    return [ROOT if head == ROOT else word_at[head] for head in above]


def random_tree(n: int, draw: Draw) -> list[int]:
    """One of the n^(n-1) rooted trees over n words, all equally likely."""
    heads = [ROOT] * n
    root = int(draw() * n)
    join(heads, range(n), [word for word in range(n) if word != root], root, draw)
    return heads


def join(
    heads: list[int], tops: Sequence[int], loose: Sequence[int], anchor: int, draw: Draw
) -> None:
    """Joins trees into one by setting the heads of `loose`, all ways equally likely.

    tops: the top of each word's tree. loose: the tops of all trees but the one that holds the
    word `anchor`: the top of that tree stays on top, and `anchor` gets a dependent. If `anchor`
    is drawn from the words of that tree, the result is uniform among all heads of `loose` that
    make one tree under that top. There are m n^(k - 1) of them, with m words in that tree and
    k = len(loose).

    This is Prüfer's code (1918), read backwards. A tree of trees is a sequence of k heads: the
    last of them is in the top tree, the other k - 1 may be any words. A tree takes the next head
    when nothing waits to be put below it; among several such trees, the last on the stack does.
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
    """One of the C(3n - 2, n - 1) / n projective rooted trees over n words, all equally likely.

    Such a tree is given by the number of dependents that each word has on its left and on its
    right: 2n numbers with the sum n - 1, in the order of a walk from the top. Exactly one of the
    n rotations of any such numbers is a tree (the cycle lemma, Dvoretzky and Motzkin 1947), so
    numbers drawn uniformly give trees drawn uniformly.
    """
    numbers = _numbers(2 * n, n - 1, draw)
    lefts, rights = numbers[::2], numbers[1::2]
    steps = [left + right - 1 for left, right in zip(lefts, rights, strict=True)]
    sums = list(accumulate(steps))
    first = (sums.index(min(sums)) + 1) % n
    lefts, rights = (side[first:] + side[:first] for side in (lefts, rights))
    return _placed(lefts, rights)


def _numbers(n: int, total: int, draw: Draw) -> list[int]:
    """n numbers from 0 with this sum, all such lists equally likely."""
    numbers = [0]
    for places in range(n - 1 + total, 0, -1):  # for n - 1 bars and `total` stars
        if draw() * places < total:
            numbers[-1] += 1
            total -= 1
        else:
            numbers.append(0)
    return numbers


def _placed(lefts: Sequence[int], rights: Sequence[int]) -> list[int]:
    """The heads of the tree whose nodes have these numbers of dependents on each side.

    The nodes come in the order of a walk from the top.
    """
    n_left, n_right = list(lefts), list(rights)  # dependents still to come
    parents: list[int] = []
    order: list[int] = []  # nodes as they stand in the sentence
    stack: list[int] = []
    for node in range(len(lefts)):
        parents.append(stack[-1] if stack else ROOT)
        stack.append(node)
        if not n_left[node]:
            order.append(node)
        while not n_left[stack[-1]] and not n_right[stack[-1]]:
            stack.pop()
            if not stack:
                break
            parent = stack[-1]
            if not n_left[parent]:
                n_right[parent] -= 1
                continue
            n_left[parent] -= 1
            if not n_left[parent]:
                order.append(parent)  # after the last of its left dependents
    places = {node: place for place, node in enumerate(order)}
    return [ROOT if node == 0 else places[parents[node]] for node in order]
