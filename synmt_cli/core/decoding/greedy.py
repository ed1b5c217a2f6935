"""Greedy search: the most probable token at each step, until EOS."""

from __future__ import annotations

import torch
from torch import Tensor

from synmt_cli.core.decoding.hypothesis import Hypothesis, hypothesis
from synmt_cli.core.decoding.progress import PrefixProgress
from synmt_cli.core.decoding.scorer import Scorer
from synmt_cli.core.decoding.top_k import top
from synmt_cli.core.model.modifier import Side
from synmt_cli.core.text.vocabulary import BOS, EOS


def greedy(scorer: Scorer, progress: PrefixProgress, n: int, lenpen: float) -> list[Hypothesis]:
    """One hypothesis for each of n sources."""
    found: dict[int, Hypothesis] = {}
    where = torch.arange(n, device=progress.lengths.device)  # place in the batch -> source
    prefixes = torch.full((n, 1, 1), BOS, device=where.device)
    log_probs = torch.zeros(n, 1, device=where.device)
    while len(where):
        each = scorer.step(Side(prefixes, features=progress.features))
        progress.forbid(each)
        best, token = (one[..., 0] for one in top(each, 1))  # (B, 1)
        log_probs = log_probs + best
        prefixes = torch.cat((prefixes, token[..., None]), dim=-1)
        ends = (token == EOS)[:, 0] | progress.full
        stay = torch.arange(len(where), device=where.device)
        if ends.any():
            sources, tokens = where[ends].tolist(), prefixes[ends, 0, 1:].tolist()
            lengths = (progress.lengths + progress.counts(token))[ends, 0].tolist()
            sums = log_probs[ends, 0].tolist()
            for source, ids, log_prob, length in zip(sources, tokens, sums, lengths, strict=True):
                found[source] = hypothesis(ids, log_prob, length, lenpen)
            stay = remaining(ends)
            scorer.select(stay, torch.zeros_like(stay)[:, None])
            prefixes, log_probs, where = prefixes[stay], log_probs[stay], where[stay]
        progress.select(stay, torch.zeros_like(stay)[:, None], token[stay])
    return [found[source] for source in range(len(found))]


def remaining(ends: Tensor) -> Tensor:
    """Places that go on: the last of the batch move to where others ended, the rest stay.

    >>> remaining(torch.tensor([False, True, False, True, False])).tolist()
    [0, 4, 2]
    """
    stay = (~ends).nonzero().flatten()
    places = torch.arange(len(stay), device=ends.device)
    places[ends[: len(stay)]] = stay[stay >= len(stay)]
    return places
