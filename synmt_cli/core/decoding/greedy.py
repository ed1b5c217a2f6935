"""Greedy search: the most probable token at each step, until EOS."""

import torch
from torch import Tensor

from synmt_cli.core.decoding.hypothesis import Hypothesis, hypothesis
from synmt_cli.core.decoding.progress import PieceProgress
from synmt_cli.core.decoding.scorer import Scorer
from synmt_cli.core.decoding.top_k import top
from synmt_cli.core.model.modifier import Side
from synmt_cli.core.text.vocabulary import BOS, EOS


def greedy(scorer: Scorer, progress: PieceProgress, n: int, lenpen: float) -> list[Hypothesis]:
    """One hypothesis for each of n sources."""
    hypotheses: dict[int, Hypothesis] = {}
    sources = torch.arange(n, device=progress.lengths.device)  # of the places in the batch, (B,)
    prefixes = torch.full((n, 1, 1), BOS, device=sources.device)  # (B, 1, T)
    scores = torch.zeros(n, 1, device=sources.device)  # (B, 1)
    while len(sources):
        log_probs = scorer.step(Side(prefixes, features=progress.features))  # (B, 1, V)
        progress.forbid(log_probs)
        best, token = (x[..., 0] for x in top(log_probs, 1))  # (B, 1)
        scores = scores + best
        prefixes = torch.cat((prefixes, token[..., None]), dim=-1)  # (B, 1, T + 1)
        ends = (token == EOS)[:, 0] | progress.full  # (B,)
        stay = torch.arange(len(sources), device=sources.device)
        if ends.any():
            ended = zip(
                sources[ends].tolist(),
                prefixes[ends, 0, 1:].tolist(),
                scores[ends, 0].tolist(),
                (progress.lengths + progress.counts(token))[ends, 0].tolist(),
                strict=True,
            )
            for source, ids, log_prob, length in ended:
                hypotheses[source] = hypothesis(ids, log_prob, length, lenpen)
            stay = remaining(ends)
            scorer.select(stay, torch.zeros_like(stay)[:, None])
            prefixes, scores, sources = prefixes[stay], scores[stay], sources[stay]
        progress.select(stay, torch.zeros_like(stay)[:, None], token[stay])
    return [hypotheses[source] for source in range(n)]


def remaining(ends: Tensor) -> Tensor:
    """The places that go on: the last of the batch move to where others ended, the rest stay.

    >>> remaining(torch.tensor([False, True, False, True, False])).tolist()
    [0, 4, 2]
    """
    stay = (~ends).nonzero().flatten()
    places = torch.arange(len(stay), device=ends.device)
    places[ends[: len(stay)]] = stay[stay >= len(stay)]
    return places
