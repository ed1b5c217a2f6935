"""Completes trees that a model ended before they were whole, with arcs that the model chooses.

Search lets the end come after any whole word, where the model wants it. If several words are then
without a head, the translation is over and its tree is not. If the end were forbidden there, search
would have to go on with tokens that the model did not want, and words would follow the end.
Instead arcs are added after the search, each the model's most probable one after all tokens before
it, until one word is left. They change neither the text nor the score, which is that of what the
model wanted: log P of the translation as it ended. Where an arc takes two tokens, a direction
that lacks its label gets it first.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import torch

from synmt_cli.core.decoding.batching.running import Running
from synmt_cli.core.decoding.batching.supply import Room, Source, Sources, Supply
from synmt_cli.core.decoding.hypothesis import Hypothesis, refuse_nan
from synmt_cli.core.decoding.progress import TransitionProgress
from synmt_cli.core.decoding.scorers.scorer import Scorer
from synmt_cli.core.model.moving import moved
from synmt_cli.core.model.transformer import Transformer
from synmt_cli.core.text.vocabulary import EOS, PAD
from synmt_cli.core.transitions.grammar import Grammar
from synmt_cli.core.trees.arc_standard import Configuration, Move

Searched = tuple[Source, list[list[Hypothesis]]]  # a source, and its n-best list for each lenpen
Tree = tuple[int, ...]  # the tokens of a translation


def close(
    searched: Iterator[list[Searched]],
    models: Sequence[Transformer],
    new_scorer: Callable[[], Scorer],
    room: Room,
    watch: Callable[[], None],
) -> Iterator[list[Searched]]:
    """Yields the same n-best lists with whole trees; of two that become equal the better one stays.

    Sources whose trees are all whole come at once. The others wait, each with its encoding, until
    there are as many open trees as a batch has room for, or no more sources. new_scorer: makes a
    scorer without sources. watch: as for Running.
    """
    grammar = models[0].grammar
    assert grammar is not None
    waiting: list[Searched] = []
    open_trees: list[tuple[Source, Tree]] = []

    def closed() -> list[Searched]:
        whole = complete(models, new_scorer(), room, open_trees, watch)
        keys = [(source.number, tree) for source, tree in open_trees]
        trees = dict(zip(keys, whole, strict=True))
        found = [
            (source, [_closed(source, nbest, trees) for nbest in nbests])
            for source, nbests in waiting
        ]
        waiting.clear()
        open_trees.clear()
        return found

    for some in searched:
        ready: list[Searched] = []
        for source, nbests in some:
            own = {tuple(h.ids): None for nbest in nbests for h in nbest}
            own_open = [(source, tree) for tree in own if not is_tree(tree, grammar)]
            open_trees += own_open
            (waiting if own_open else ready).append((source, nbests))
        if len(open_trees) >= room.sources:
            ready += closed()
        if ready:
            yield ready
    if waiting:
        yield closed()


def _closed(
    source: Source, nbest: Sequence[Hypothesis], trees: dict[tuple[int, Tree], list[int]]
) -> list[Hypothesis]:
    """An n-best list with whole trees; of several with the same tokens only the best stays."""
    first: dict[Tree, Hypothesis] = {}
    for one in nbest:
        ids = trees.get((source.number, tuple(one.ids)), one.ids)
        first.setdefault(tuple(ids), replace(one, ids=ids, n_closing=len(ids) - len(one.ids)))
    return list(first.values())


def is_tree(ids: Sequence[int], grammar: Grammar) -> bool:
    """Whether legal tokens have built one tree."""
    configuration = Configuration(split=grammar.split)
    for id in ids:
        configuration = configuration.after(Move(grammar.moves[id]))
    return configuration.allows(Move.FINISH)


def complete(
    models: Sequence[Transformer],
    scorer: Scorer,
    room: Room,
    begun: Sequence[tuple[Source, Tree]],
    watch: Callable[[], None] = lambda: None,
) -> list[list[int]]:
    """The tokens of each tree, followed by the most probable of the tokens that can complete it.

    begun: sources that were kept, and the first tokens of a tree for each. Raises ConfigError for
    scores that are not numbers.
    """
    grammar, device = models[0].grammar, models[0].output.weight.device
    assert grammar is not None
    order = sorted(range(len(begun)), key=lambda i: -begun[i][0].length)
    sources = Sources.joined([begun[i][0].alone for i in order])
    progress = TransitionProgress(1, device, grammar, closing=True)
    supply = Supply(iter([sources]), room, in_step=any(model.rereads for model in models))
    running = Running(scorer, progress, supply, 1, device, watch)
    whole: list[list[int]] = [[] for _ in begun]
    while running.sources:
        places = [order[source.number] for source in running.sources]
        given = [
            begun[i][1][age - 1] if age <= len(begun[i][1]) else PAD
            for i, age in zip(places, running.ages, strict=True)
        ]
        token = moved(torch.tensor(given), device)[:, None]  # (B, 1)
        newest = given
        if PAD in given:
            found, scores = running.most_probable(False)
            token = torch.where(token == PAD, found, token)
            look = torch.cat((token, scores), 1).tolist()  # the one look at the device
            refuse_nan(any(math.isnan(score) for _, score in look))
            newest = [int(id) for id, _ in look]
        else:
            running.read()
        for i, id in zip(places, newest, strict=True):
            whole[i] += [] if id == EOS else [id]
        running.advance([id == EOS for id in newest], token, running.scores)
    return whole
