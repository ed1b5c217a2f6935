"""Arc-standard moves: every projective tree, and nothing else."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.trees import every_tree, is_acyclic, legal, lenient_attachments, replay

from synmt_cli.core.trees.arc_standard import (
    ARCS,
    NEVER,
    OPENING,
    PIECES,
    Configuration,
    Move,
    attachments,
    oracle,
)
from synmt_cli.core.trees.heads import ROOT, contracted, is_projective
from synmt_cli.core.trees.projective import projective
from synmt_cli.core.trees.shapes import left_branching, random_projective_tree, random_tree

B, C, L, R, LABEL = Move.BEGIN, Move.CONTINUE, Move.LEFT, Move.RIGHT, Move.LABEL
G, S = Move.GLUE, Move.SPACE


def moves_of(heads):
    return [move for move, _ in oracle(heads)]


@pytest.mark.parametrize("n", range(1, 6))
def test_the_oracle_succeeds_for_just_the_projective_trees(n):
    for heads in map(list, every_tree(n)):
        steps = oracle(heads)
        assert (steps is not None) == is_projective(heads)
        if steps is not None:
            moves = [move for move, _ in steps]
            assert replay(moves) == heads
            assert sum(move in ARCS for move in moves) == n - 1


@pytest.mark.parametrize("n", range(1, 6))
def test_every_tree_that_moves_can_build_is_projective(n):
    """A tree may come from several sequences of moves, of which the oracle's is one."""
    built = set()

    def extend(state, moves):
        if moves.count(B) == n and state.n_words == 1:
            built.add(tuple(replay(moves)))
        for move in (B, L, R):
            if state.allows(move) and (move != B or moves.count(B) < n):
                extend(state.after(move), [*moves, move])

    extend(Configuration(), [])
    assert built == set(filter(is_projective, every_tree(n)))


@given(st.integers(1, 60), st.randoms(use_true_random=False))
def test_random_projective_trees_come_back(n, rng):
    heads = random_projective_tree(n, rng.random)
    steps = oracle(heads)
    assert replay(move for move, _ in steps) == heads
    attached = [word for move, word in steps if move in ARCS]
    assert sorted([*attached, heads.index(ROOT)]) == list(range(n))
    assert [word for move, word in steps if move == B] == list(range(n))


@given(st.integers(1, 30), st.booleans(), st.randoms(use_true_random=False))
def test_neighbours_made_one_leave_a_tree_a_tree(n, nested, rng):
    heads = (random_projective_tree if nested else random_tree)(n, rng.random)
    nodes = [0]
    for _ in range(n - 1):
        nodes.append(nodes[-1] + rng.choice([0, 1, 1]))
    words, found = contracted(heads, nodes)
    assert [nodes[word] for word in words] == list(range(nodes[-1] + 1))
    assert found.count(ROOT) == 1
    assert is_acyclic(found)
    assert is_projective(found) or not nested
    assert contracted(heads, range(n)) == (list(range(n)), heads)


def test_several_roots_and_no_words():
    assert oracle([ROOT, ROOT]) is None
    assert oracle([1, ROOT, 3, ROOT]) is None
    assert oracle([]) is None
    assert replay([]) == []


def test_long_and_deep_sentences_take_linear_time():
    for heads in (left_branching(50_000), [ROOT, *range(49_999)], [ROOT] + [0] * 49_999):
        assert replay(moves_of(heads)) == heads


@pytest.mark.parametrize(
    ("moves", "problem"),
    [
        ([B, L], "arc 1 finds fewer than two words"),
        ([R], "arc 0 finds fewer than two words"),
        ([B, B, B, L], "2 words are left"),
        ([B, G, B], "move 1 is"),
    ],
)
def test_moves_that_build_no_tree_are_refused(moves, problem):
    with pytest.raises(ValueError, match=problem):
        replay(moves)


def test_lifting_takes_the_shortest_arc_first_until_the_tree_is_projective():
    def lifted(heads):  # by the definition, everything looked at again each time
        found = list(heads)
        while wrong := [d for d in range(len(found)) if found[d] != ROOT and not nested(found, d)]:
            word = min(wrong, key=lambda d: (abs(d - found[d]), d))
            found[word] = found[found[word]]
        return found

    def nested(heads, word):
        head = heads[word]
        return all(head in ancestors(heads, k) for k in range(min(word, head) + 1, max(word, head)))

    def ancestors(heads, word):
        while word != ROOT:
            word = heads[word]
            yield word

    rng = random.Random(1)
    trees = [random_tree(rng.randrange(6, 25), rng.random) for _ in range(150)]
    for heads in [*every_tree(5), *trees]:
        found, n_changed = projective(heads)
        assert found == lifted(heads)
        assert is_projective(found)
        assert n_changed == sum(map(int.__ne__, heads, found))
        assert (n_changed == 0) == is_projective(heads)


# --- prefixes, and what may follow them -----------------------------------------------------


def pieces(rng, heads, split=False, glue=False):
    """The oracle's moves for words of 1 to 3 pieces; split: labels apart; glue: words glued."""
    found = []
    for move, word in oracle(heads):
        if move == B:
            glued = glue and word > 0 and rng.random() < 0.4
            n_more = rng.randrange(3)
            found += [G, C] if glued else [S, C] if glue and rng.random() < 0.2 else [B]
            found += [C] * n_more
        else:
            found += [move, LABEL] if split else [move]
    return found


@given(st.integers(1, 25), st.booleans(), st.booleans(), st.randoms(use_true_random=False))
@settings(max_examples=60)
def test_what_the_oracle_does_is_legal(n, split, glue, rng):
    state = Configuration(split=split)
    for move in pieces(rng, random_projective_tree(n, rng.random), split, glue):
        assert state.allows(move)
        state = state.after(move)
    assert state.allows(Move.FINISH)


@given(st.integers(1, 30), st.booleans(), st.randoms(use_true_random=False))
def test_whatever_is_drawn_of_the_legal_moves_is_a_tree(n_pieces, split, rng):
    """There is room for n_pieces: only arcs and the end may come after the last of them."""
    state, moves = Configuration(split=split), []
    while True:
        left = n_pieces - sum(move in PIECES for move in moves)
        needs = {B: 1, C: 1, G: 1, S: 2}
        move = rng.choice([move for move in legal(state) if needs.get(move, 0) <= left])
        if move == Move.FINISH:
            break
        state = state.after(move)
        moves.append(move)
    words = [B if move in OPENING else move for move in moves if move not in (C, LABEL)]
    assert len(replay(words)) == sum(move in (B, *OPENING) for move in moves)
    assert len(moves) < 4 * n_pieces


def test_the_rules_of_what_may_follow():
    def after(*moves, split=False):
        state = Configuration(split=split)
        for move in moves:
            state = state.after(move)
        return legal(state)

    assert after() == [B, S]
    assert after(B, B) == [B, C, L, R, G, S]
    assert after(B, B, L) == [B, G, Move.FINISH, S]  # no piece goes on after an arc
    assert after(B, G) == after(S) == [C]  # a word that is glued, or follows a space, must come
    assert after(B, B, R, split=True) == [LABEL]
    assert after(B, B, R, LABEL, split=True) == [B, G, Move.FINISH, S]
    for wrong in (C, L, G, LABEL, Move.FINISH):
        with pytest.raises(ValueError, match="illegal after 0 tokens"):
            Configuration().after(wrong)


# --- edges ----------------------------------------------------------------------------------


def table(moves, split=False):
    """The edges by the paper's table, each as (head, dependent, transition)."""
    found, stack, direction = [], [], None
    for x, move in enumerate(moves):
        if move in (B, G, S):
            stack.append([x])
        elif move == C:
            stack[-1].append(x)
        elif move in ARCS and split:
            direction = move
        else:
            a, b = stack[-1], stack[-2]
            head, dependent = (a, b) if (direction or move) == L else (b, a)
            found += [(h, d, x) for h in head for d in dependent]
            found += [(x, d, x) for d in dependent] + [(h, x, x) for h in head]
            stack[-2:], direction = [head], None
    return sorted(found)


def edges(found):
    """The same edges, from attachments: the parents of a token are [begin, end) and `at`."""
    return sorted(
        (parent, token, at)
        for token, (at, begin, end) in enumerate(zip(*found, strict=True))
        if at != NEVER
        for parent in {*range(begin, end), at} - {token}
    )


@given(st.integers(1, 12), st.booleans(), st.booleans(), st.randoms(use_true_random=False))
def test_edges_are_those_of_the_table(n, split, glue, rng):
    moves = pieces(rng, random_projective_tree(n, rng.random), split, glue)
    assert edges(attachments(moves, split)) == table(moves, split)
    assert lenient_attachments(moves, split) == attachments(moves, split)


def test_the_edges_of_example_1():
    # Jo@@ hn put LEFT-ARC:nsubj the coals LEFT-ARC:det RIGHT-ARC:obj out RIGHT-ARC:compound:prt
    assert set(edges(attachments([B, C, B, L, B, B, L, R, B, R]))) == {
        *((2, 0, 3), (2, 1, 3), (3, 0, 3), (3, 1, 3), (2, 3, 3)),
        *((5, 4, 6), (6, 4, 6), (5, 6, 6)),
        *((2, 5, 7), (7, 5, 7), (2, 7, 7)),
        *((2, 8, 9), (9, 8, 9), (2, 9, 9)),
    }


def test_an_illegal_transition_is_refused_or_passed_over():
    """Tests of unconstrained search rely on the second."""
    with pytest.raises(ValueError, match="illegal"):
        attachments([B, L])
    assert edges(lenient_attachments([L, B, R])) == []
    # The piece after the illegal arc is a word of its own, so that the last arc has two.
    assert {*edges(lenient_attachments([B, L, C, L]))} == {(2, 0, 3), (3, 0, 3), (2, 3, 3)}
