"""Greedy search: the most probable token at each step, until EOS."""

from __future__ import annotations

import torch
from torch import Tensor

from synmt_cli.core.decoding.hypothesis import NEVER, Hypothesis, hypothesis
from synmt_cli.core.decoding.scorer import Scorer
from synmt_cli.core.decoding.top import top
from synmt_cli.core.vocabulary import BOS, EOS


def greedy(scorer: Scorer, limits: Tensor, lenpen: float) -> list[Hypothesis]:
    """One hypothesis for each source; limits: (B,), the most tokens of each, EOS included."""
    found: dict[int, Hypothesis] = {}
    where = torch.arange(len(limits), device=limits.device)  # place in the batch -> source
    prefixes = torch.full((len(limits), 1, 1), BOS, device=limits.device)
    log_probs = torch.zeros(len(limits), 1, device=limits.device)
    n_tokens = 0
    while len(where):
        n_tokens += 1
        each = scorer.step(prefixes)
        each[..., NEVER] = -torch.inf
        best, token = (one[..., 0] for one in top(each, 1))  # (B, 1)
        log_probs = log_probs + best
        prefixes = torch.cat((prefixes, token[..., None]), dim=-1)
        ends = ((token == EOS) | (n_tokens >= limits[:, None])).flatten()
        if not ends.any():
            continue
        sources, tokens = where[ends].tolist(), prefixes[ends, 0, 1:].tolist()
        for source, ids, log_prob in zip(sources, tokens, log_probs[ends, 0].tolist(), strict=True):
            found[source] = hypothesis(ids, log_prob, lenpen)
        stay = remaining(ends)
        scorer.select(stay, torch.zeros_like(stay)[:, None])
        prefixes, log_probs = prefixes[stay], log_probs[stay]
        where, limits = where[stay], limits[stay]
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
