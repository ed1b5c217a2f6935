"""Trees that a model ended before they were one, completed with arcs that the model chooses.

Search lets the end come after any whole word, where the model wants it. If several words are then
without a head, the translation is over and its tree is not. If the end were forbidden there, search
would have to go on with tokens that the model did not want, and words would follow the end.
Instead arcs are added after the search, each the model's most probable one after all tokens before
it, until one word is left. They change neither the text nor the score, which is that of what the
model wanted: log P of the translation as it ended. With two tokens for an arc, a direction without
its label gets that first.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from synmt_cli.core.decoding.hypothesis import Hypothesis
from synmt_cli.core.decoding.places import Places
from synmt_cli.core.decoding.progress import TransitionProgress
from synmt_cli.core.decoding.scorer import Scorer
from synmt_cli.core.model.modifier import Side
from synmt_cli.core.model.moving import moved
from synmt_cli.core.text.vocabulary import BOS, EOS, PAD
from synmt_cli.core.transitions.grammar import Grammar
from synmt_cli.core.trees.arc_standard import Configuration, Move


def close(
    found: Sequence[Sequence[list[Hypothesis]]],
    grammar: Grammar,
    limits: Tensor,
    scorer_of: Callable[[Tensor], Scorer],
) -> list[list[list[Hypothesis]]]:
    """The same n-best lists with whole trees; of two that become equal, the better one stays.

    found: some lists for each source, in several searches. limits: (B,), as search had them.
    scorer_of: a new scorer of some sources, by their indices.
    """
    open_trees = {
        (source, tuple(one.ids)): one.ids
        for nbests in found
        for source, nbest in enumerate(nbests)
        for one in nbest
        if not is_tree(one.ids, grammar)
    }
    if not open_trees:
        return [list(nbests) for nbests in found]
    sources = torch.tensor([source for source, _ in open_trees], device=limits.device)
    progress = TransitionProgress(grammar, limits[sources], closing=True)
    whole = complete(scorer_of(sources), progress, [*open_trees.values()])
    trees = dict(zip(open_trees, whole, strict=True))

    def closed(source: int, one: Hypothesis) -> Hypothesis:
        ids = trees.get((source, tuple(one.ids)), one.ids)
        return replace(one, ids=ids, n_closing=len(ids) - len(one.ids))

    return [
        [_distinct([closed(source, one) for one in nbest]) for source, nbest in enumerate(nbests)]
        for nbests in found
    ]


def is_tree(ids: Sequence[int], grammar: Grammar) -> bool:
    """Whether legal tokens have built one tree."""
    configuration = Configuration(split=grammar.split)
    for id in ids:
        configuration = configuration.after(Move(grammar.moves[id]))
    return configuration.allows(Move.FINISH)


def _distinct(nbest: list[Hypothesis]) -> list[Hypothesis]:
    """Without those whose tokens a better one has."""
    first: dict[tuple[int, ...], Hypothesis] = {}
    for one in nbest:
        first.setdefault(tuple(one.ids), one)
    return list(first.values())


def complete(
    scorer: Scorer, progress: TransitionProgress, begun: Sequence[list[int]]
) -> list[list[int]]:
    """The tokens of each source, followed by the most probable ones of those that progress allows.

    begun: the first tokens of each of B sources. EOS ends a sequence and is left out.
    """
    device = progress.lengths.device
    longest = max(map(len, begun))
    padded = [[*ids, *[PAD] * (longest + 1 - len(ids))] for ids in begun]
    given = moved(torch.tensor(padded), device)  # (B, T)
    whole: list[list[int]] = [[] for _ in begun]
    places = Places(len(begun), device)
    prefixes = torch.full((len(begun), 1, 1), BOS, device=device)
    first = torch.zeros_like(prefixes[..., 0])  # (B, 1), the one prefix of each source
    while places.sources:
        read = Side(prefixes, features=progress.features)
        n_read = prefixes.size(2) - 1
        token = given[:, min(n_read, longest)]  # (B,)
        if all(n_read < len(begun[source]) for source in places.sources):
            scorer.read(read)
            newest = [begun[source][n_read] for source in places.sources]
        else:
            log_probs = scorer.step(read)
            progress.forbid(log_probs)
            token = torch.where(token == PAD, log_probs[:, 0].argmax(-1), token)
            newest = token.tolist()  # the one look at the device
        ends = [id == EOS for id in newest]
        for source, id, is_end in zip(places.sources, newest, ends, strict=True):
            whole[source] += [] if is_end else [id]
        stay = places.free(ends)
        if not stay.is_all:
            first = first[: len(stay.sources)]
            scorer.select(stay, first)
            given, prefixes = given[stay.sources], prefixes[stay.sources]
            token = token[stay.sources]
        progress.select(stay.sources, first, token[:, None])
        prefixes = torch.cat((prefixes, token[:, None, None]), dim=-1)
    return whole
