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

from synmt_cli.core.decoding.greedy import remaining
from synmt_cli.core.decoding.hypothesis import Hypothesis
from synmt_cli.core.decoding.progress import TransitionProgress
from synmt_cli.core.decoding.scorer import Scorer
from synmt_cli.core.model.modifier import Side
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
    given = torch.full((len(begun), longest + 1), PAD, device=device)  # (B, T)
    for row, ids in zip(given, begun, strict=True):
        row[: len(ids)] = torch.tensor(ids, device=device)
    whole: dict[int, list[int]] = {}
    sources = torch.arange(len(begun), device=device)  # of the places in the batch
    prefixes = torch.full((len(begun), 1, 1), BOS, device=device)
    while len(sources):
        read = Side(prefixes, features=progress.features)
        token = given[sources, min(prefixes.size(2) - 1, longest)]  # (B,)
        if (token == PAD).any():
            log_probs = scorer.step(read)
            progress.forbid(log_probs)
            token = torch.where(token == PAD, log_probs[:, 0].argmax(-1), token)
        else:
            scorer.read(read)
        ends = token == EOS
        for source, ids in zip(sources[ends].tolist(), prefixes[ends, 0, 1:].tolist(), strict=True):
            whole[source] = ids
        stay = remaining(ends) if ends.any() else torch.arange(len(sources), device=device)
        scorer.select(stay, torch.zeros_like(stay)[:, None])
        progress.select(stay, torch.zeros_like(stay)[:, None], token[stay, None])
        prefixes = torch.cat((prefixes, token[:, None, None]), dim=-1)[stay]
        sources = sources[stay]
    return [whole[source] for source in range(len(begun))]
