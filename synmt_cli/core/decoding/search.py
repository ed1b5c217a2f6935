"""Translates sources with models: by beam search, by greedy search, or by drawing.

The keys and values of a source are computed once; then the sources share batches (batching/) until
the search for each ends, and trees that ended early are completed (closing.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

import torch

from synmt_cli.core.decoding.batching.running import Running
from synmt_cli.core.decoding.batching.supply import Room, Source, Sources, Supply, whole
from synmt_cli.core.decoding.beam import BeamSearch
from synmt_cli.core.decoding.closing import Searched, close
from synmt_cli.core.decoding.hypothesis import Hypothesis, Rules, limits, normalised_score
from synmt_cli.core.decoding.progress import PieceProgress, TransitionProgress
from synmt_cli.core.decoding.scorers.cached import CachedScorer
from synmt_cli.core.decoding.scorers.scorer import EnsembleScorer, RereadingScorer, Scorer
from synmt_cli.core.decoding.token_by_token import greedy, sampled
from synmt_cli.core.model.attention import Tokens
from synmt_cli.core.model.modifier import Side
from synmt_cli.core.model.transformer import Transformer
from synmt_cli.core.transitions.grammar import Grammar


def search(
    models: Sequence[Transformer], sources: Side | Sequence[Side], rules: Rules
) -> list[list[Hypothesis]]:
    """The nbest translations of each source, best first, in evaluation mode.

    models: several form an ensemble: they have one target vocabulary, and their probabilities
    are averaged. sources: ids that end in EOS; one Side for all models, or one for each where
    features differ.
    """
    return search_each(models, sources, rules, [rules.lenpen])[0]


def search_each(
    models: Sequence[Transformer],
    sources: Side | Sequence[Side],
    rules: Rules,
    lenpens: Sequence[float],
) -> list[list[list[Hypothesis]]]:
    """Returns for each lenpen what `search` would; `rules.lenpen` is not used."""
    sides = [sources] * len(models) if isinstance(sources, Side) else list(sources)
    n, width = sides[0].ids.shape
    found: dict[int, list[list[Hypothesis]]] = {}
    most = n if rules.sampling is None else n * rules.nbest
    for some in stream(models, [(range(n), sides)], rules, lenpens, Room(most, most * width)):
        found.update(some)
    return [[found[number][i] for number in range(n)] for i in range(len(lenpens))]


Found = tuple[int, list[list[Hypothesis]]]  # number of a source, its n-best list for each lenpen


def stream(
    models: Sequence[Transformer],
    batches: Iterable[tuple[Sequence[int], Sequence[Side]]],
    rules: Rules,
    lenpens: Sequence[float],
    room: Room,
    name: Callable[[int], str] = str,
    watch: Callable[[], None] = lambda: None,
) -> Iterator[list[Found]]:
    """Yields sources as their search ends, each with its n-best list for each value of lenpen.

    batches: the numbers of some sources, and their sides for each model, taken when the batch
    being searched has room for more. name: number -> the source's name, on which draws depend.
    watch: called before each step; what it raises ends the search.
    """
    supplied = (encoded(models, numbers, sides, rules) for numbers, sides in batches)
    if rules.sampling is not None:
        supplied = (draw for some in supplied for draw in _draws(some, rules.nbest))
    grammar = models[0].grammar
    is_closed = grammar is not None and rules.constrained
    in_step = any(model.rereads for model in models)
    supply = Supply(supplied, room, in_step, keeps=is_closed)
    searched = _searched(models, supply, rules, lenpens, name, watch)
    if is_closed:
        searched = close(searched, models, partial(_scorer, models), room, watch)
    if rules.sampling is not None:
        searched = _together(searched, rules.nbest)
    while True:
        with evaluating(models), torch.inference_mode():  # but not while the caller has control
            some = next(searched, None)
        if some is None:
            return
        yield [(source.number, _marked(source, nbests, grammar)) for source, nbests in some]


def encoded(
    models: Sequence[Transformer], numbers: Sequence[int], sides: Sequence[Side], rules: Rules
) -> Sources:
    """Encodes sources for scorers. numbers: chosen by the caller. sides: one for each model."""
    n, width = sides[0].ids.shape
    lengths = sides[0].lengths
    if not lengths:
        pad = sides[0].pad
        lengths = [width] * n if pad is None else (~pad).sum(1).tolist()
    tokens = Tokens.of_lengths(lengths, whole(width), sides[0].ids.device)
    keys_values = []
    for model, side in zip(models, sides, strict=True):
        states = model.encoder.forward_unpadded(side.widened(whole(width)), tokens)  # (N, D)
        # For each layer (B, S, 2, H, D / H); together (layers, 2, B, H, S, D / H).
        every = [layer.cross.keys_values_of(states, tokens) for layer in model.decoder.layers]
        keys_values.append(torch.stack([own.permute(2, 0, 3, 1, 4) for own in every]))
    least = 1 if models[0].grammar is None else 2  # a tree has a word, and then an end
    return Sources(numbers, lengths, limits(lengths, rules.longest, least), keys_values)


def _scorer(models: Sequence[Transformer]) -> Scorer:
    """A new scorer, without sources."""
    scorers = [
        (RereadingScorer if model.rereads else CachedScorer)(model, number)
        for number, model in enumerate(models)
    ]
    return scorers[0] if len(scorers) == 1 else EnsembleScorer(scorers)


def _searched(
    models: Sequence[Transformer],
    supply: Supply,
    rules: Rules,
    lenpens: Sequence[float],
    name: Callable[[int], str],
    watch: Callable[[], None],
) -> Iterator[list[Searched]]:
    device = models[0].output.weight.device
    grammar, sampling = models[0].grammar, rules.sampling
    n_beams = rules.beam if sampling is None else 1
    progress = (
        PieceProgress()
        if grammar is None
        else TransitionProgress(
            n_beams, device, grammar, rules.constrained, with_features=read_trees(models)
        )
    )
    running = Running(_scorer(models), progress, supply, n_beams, device, watch)
    if n_beams > 1:
        yield from BeamSearch(running, rules, lenpens).run()
        return
    ended = greedy(running, rules.scores)
    if sampling is not None:
        n = rules.nbest
        ended = sampled(running, sampling, lambda i: sampling.points(name(i // n), i % n))
    for some in ended:  # no lenpen changes it
        yield [(source, [[_rescored(h, lenpen)] for lenpen in lenpens]) for source, h in some]


def _draws(sources: Sources, n: int) -> Iterator[Sources]:
    """Yields the same sources n times, for n translations of each: number k becomes k n + i."""
    for i in range(n):
        yield replace(sources, numbers=[number * n + i for number in sources.numbers])


def _together(searched: Iterator[list[Searched]], n: int) -> Iterator[list[Searched]]:
    """Yields each source with the n translations that were drawn for it, once all are there."""
    draws: dict[int, dict[int, Searched]] = {}  # by the number of the source, and of the draw
    for some in searched:
        whole = []
        for source, nbests in some:
            number, i = divmod(source.number, n)
            own = draws.setdefault(number, {})
            own[i] = source, nbests
            if len(own) == n:
                del draws[number]
                each = zip(*(own[i][1] for i in range(n)), strict=True)  # of each lenpen
                joined = [[h for nbest in nbests for h in nbest] for nbests in each]
                whole.append((source._replace(number=number), joined))
        if whole:
            yield whole


def read_trees(models: Sequence[Transformer]) -> bool:
    """Whether a decoder reads the tree so far."""
    return any(modifier.needs for model in models for modifier in model.decoder.modifiers)


def _rescored(one: Hypothesis, lenpen: float) -> Hypothesis:
    return replace(one, score=normalised_score(one.log_prob, one.length, lenpen))


def _marked(
    source: Source, nbests: list[list[Hypothesis]], grammar: Grammar | None
) -> list[list[Hypothesis]]:
    """Marks trees that reached the limit as cut: there was no room for another piece."""
    if grammar is None:
        return nbests
    return [
        [replace(tree, cut=tree.cut or tree.length >= source.limit) for tree in nbest]
        for nbest in nbests
    ]


@contextmanager
def evaluating(models: Sequence[Transformer]) -> Iterator[None]:
    """Puts models in evaluation mode, without dropout, and back in the mode that each had."""
    in_training = [model for model in models if model.training]
    try:
        for model in in_training:
            model.eval()
        yield
    finally:
        for model in in_training:
            model.train()
