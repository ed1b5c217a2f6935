"""Greedy search: the most probable token at each step, until EOS.

The host looks at the device once a step, and writes down what it sees.
"""

import torch

from synmt_cli.core.decoding.hypothesis import Hypothesis, hypothesis
from synmt_cli.core.decoding.places import Places
from synmt_cli.core.decoding.progress import PieceProgress
from synmt_cli.core.decoding.scorer import Scorer
from synmt_cli.core.decoding.top_k import top
from synmt_cli.core.model.modifier import Side
from synmt_cli.core.text.vocabulary import BOS, EOS


def greedy(scorer: Scorer, progress: PieceProgress, n: int, lenpen: float) -> list[Hypothesis]:
    """One hypothesis for each of n sources."""
    hypotheses: dict[int, Hypothesis] = {}
    device = progress.lengths.device
    places = Places(n, device)
    written: list[list[int]] = [[] for _ in range(n)]  # of each source
    prefixes = torch.full((n, 1, 1), BOS, device=device)  # (B, 1, T)
    scores = torch.zeros(n, 1, device=device)  # (B, 1)
    first = torch.zeros_like(prefixes[..., 0])  # (B, 1), the one prefix of each source
    while places.sources:
        log_probs = scorer.step(Side(prefixes, features=progress.features))  # (B, 1, V)
        progress.forbid(log_probs)
        best, token = (x[..., 0] for x in top(log_probs, 1))  # (B, 1)
        scores = scores + best
        prefixes = torch.cat((prefixes, token[..., None]), dim=-1)  # (B, 1, T + 1)
        lengths = progress.lengths + progress.counts(token)
        # Numbers of single precision are exact for ids and lengths below 2^24.
        look = torch.cat((scores, token, lengths, progress.full[:, None]), 1).cpu()  # (B, 4)
        ends = []
        seen = zip(places.sources, look.tolist(), strict=True)
        for source, (log_prob, id, length, is_full) in seen:
            written[source].append(int(id))
            ends.append(int(id) == EOS or bool(is_full))
            if ends[-1]:
                found = hypothesis(written[source], log_prob, int(length), lenpen)
                hypotheses[source] = found
        stay = places.free(ends)
        if not stay.is_all:
            first = first[: len(stay.sources)]
            scorer.select(stay, first)
            prefixes, scores = prefixes[stay.sources], scores[stay.sources]
            token = token[stay.sources]
        progress.select(stay.sources, first, token)
    return [hypotheses[source] for source in range(n)]
