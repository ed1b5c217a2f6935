"""The tokens that may come next: arrays over all prefixes against the transition system itself."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch
from support.trees import legal, lenient_attachments, replay

from synmt_cli.core.decoding.batching.places import Stay
from synmt_cli.core.decoding.progress import PieceProgress, TransitionProgress
from synmt_cli.core.text.vocabulary import EOS
from synmt_cli.core.transitions.grammar import OTHER, Grammar
from synmt_cli.core.trees.arc_standard import (
    ARCS,
    OPENING,
    PIECES,
    Configuration,
    Move,
    attachments,
)

CPU = torch.device("cpu")
# unk pad bos eos, then two tokens for each move; `grammar` and SPLIT add one that has no move
WHOLE = [OTHER, OTHER, OTHER, Move.FINISH]
WHOLE += [move for move in Move if move not in (Move.FINISH, Move.LABEL) for _ in range(2)]
SPLIT = [*WHOLE, OTHER, Move.LABEL, Move.LABEL]


def grammar(split):
    moves = SPLIT if split else [*WHOLE, OTHER]
    drawing = (Move.LABEL,) if split else ARCS
    labels = [1 + id % 3 if move in drawing else 0 for id, move in enumerate(moves)]
    return Grammar(np.array(moves), np.array(labels), ("a", "b", "c"), split)


def begun(progress, limits):
    progress.enter(torch.arange(len(limits)), len(limits), limits)
    return progress


def allowed(progress, n_tokens, shape):
    each = torch.zeros(*shape, n_tokens)
    progress.forbid(each)
    return each.isfinite()


def lengths(progress):
    return progress.lengths(torch.zeros(1, 1, dtype=torch.long))[0]


def follow_with(progress, token, n):
    """Adds the n-th token to the only prefix."""
    given = torch.tensor([[token]]), torch.tensor([n]), 16
    progress.select(Stay.all(torch.arange(1)), None, *given)


def follow(rng, split, constrained, limit, n_steps):
    """Grows random prefixes of 2 sources, 3 of each, reordered at random as a beam does.

    Yields the grammar, the progress, and each prefix as token ids.
    """
    one = grammar(split)
    progress = begun(TransitionProgress(3, CPU, one, constrained), [limit, limit])
    prefixes = [[[], [], []], [[], [], []]]
    for _ in range(n_steps):
        yield one, progress, prefixes
        may = allowed(progress, len(one.moves), (2, len(prefixes[0])))
        may[..., EOS] = False
        parents, tokens, grown = [], [], []
        for source, own in enumerate(prefixes):
            alive = [k for k in range(len(own)) if may[source, k].any()]
            if not alive:
                return
            chosen = [rng.choice(alive) for _ in range(3)]
            new = [rng.choice(may[source, k].nonzero().flatten().tolist()) for k in chosen]
            parents.append(chosen)
            tokens.append(new)
            grown.append([[*own[k], token] for k, token in zip(chosen, new, strict=True)])
        prefixes = grown
        n = len(prefixes[0][0])
        given = torch.tensor(parents), torch.tensor(tokens), torch.tensor([n, n]), n + 1
        progress.select(Stay.all(torch.arange(2)), *given)


def state_of(moves, split, lenient):
    state = Configuration(split=split)
    for move in moves:
        state = state.after_any(move) if lenient else state.after(move)
    return state


@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize("constrained", [True, False])
@pytest.mark.parametrize("seed", range(6))
def test_arrays_over_prefixes_are_states_of_the_system(split, constrained, seed):
    rng = random.Random(seed)
    for one, progress, prefixes in follow(rng, split, constrained, 99, 25):
        may = allowed(progress, len(one.moves), (2, len(prefixes[0])))
        for source, own in enumerate(prefixes):
            for k, ids in enumerate(own):
                moves = [Move(one.moves[id]) for id in ids]
                state = state_of(moves, split, not constrained)
                expected = legal(state) if constrained else list(Move)
                if constrained and state.n_words and state.last not in OPENING:
                    expected = {*expected, Move.FINISH}  # the tree is then closed
                for id, move in enumerate(one.moves):
                    assert may[source, k, id] == (move in expected), (moves, id)
                found = (attachments if constrained else lenient_attachments)(moves, split)
                have = {
                    name: f[source, k, : len(ids) + 1].tolist()
                    for name, f in progress.features.items()
                }
                arcs = [at + 1 if at < 2**30 else at for at in found.at]
                assert have["arc"] == [2**30, *arcs]
                here = [i for i, at in enumerate(arcs, 1) if at < 2**30]
                assert [have["head_begin"][i] for i in here] == [
                    found.begin[i - 1] + 1 for i in here
                ]
                assert [have["head_end"][i] for i in here] == [found.end[i - 1] + 1 for i in here]
                assert [have["arc_label"][i] for i in here] == [
                    one.labels[ids[arcs[i - 1] - 1]] for i in here
                ]
                n_pieces = sum(move in PIECES for move in moves)
                assert lengths(progress)[source, k] == n_pieces


@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize("limit", [1, 2, 3, 7])
def test_an_end_comes_within_the_limit_of_pieces(split, limit):
    rng = random.Random(limit)
    for _ in range(20):
        one = grammar(split)
        progress = begun(TransitionProgress(1, CPU, one), [limit])
        closing = begun(TransitionProgress(1, CPU, one, closing=True), [limit])
        ids, has_ended = [], False
        while True:
            assert len(ids) + 1 < limit * progress.tokens_per_piece  # no prefix is cut
            now = closing if has_ended else progress
            may = allowed(now, len(one.moves), (1, 1))[0, 0].nonzero().flatten().tolist()
            token = rng.choice(may)
            if token == EOS and has_ended:
                break
            if token == EOS:  # only arcs may follow, until the tree is whole
                has_ended = True
                continue
            assert not has_ended or Move(one.moves[token]) in (*ARCS, Move.LABEL)
            ids.append(token)
            for each in (progress, closing):
                follow_with(each, token, len(ids))
        moves = [Move(one.moves[id]) for id in ids]
        n_pieces = sum(move in PIECES for move in moves)
        assert 1 <= n_pieces <= max(limit - 1, 1)
        assert lengths(progress).item() == n_pieces
        words = [
            Move.BEGIN if move in OPENING else move
            for move in moves
            if move not in (Move.CONTINUE, Move.LABEL)
        ]
        assert len(replay(words)) == sum(move in (Move.BEGIN, *OPENING) for move in moves)


def test_without_the_system_pieces_still_end_at_the_limit():
    one = grammar(False)
    progress = begun(TransitionProgress(1, CPU, one, constrained=False), [3])
    begin, arc = WHOLE.index(Move.BEGIN), WHOLE.index(Move.LEFT)
    for n, token in enumerate((arc, begin, begin), 1):
        assert allowed(progress, len(one.moves), (1, 1))[0, 0, begin]
        follow_with(progress, token, n)
    may = allowed(progress, len(one.moves), (1, 1))[0, 0]
    assert [bool(may[t]) for t in (begin, arc, EOS, 0, 1, 2)] == [False, True, True] + [False] * 3


def test_what_counts_of_a_translation():
    one = grammar(True)
    ids = torch.arange(len(one.moves))[None]
    progress = begun(TransitionProgress(1, CPU, one), [5])
    counts = progress.lengths(ids)[1][0].tolist()
    counted = [one.moves[i] for i, n in enumerate(counts) if n]
    assert set(counted) == {Move.BEGIN, Move.CONTINUE, Move.SPACE, Move.FINISH}
    assert PieceProgress().lengths(ids) == ()  # all tokens count
