"""Translations found by search, their score, and which tokens a translation may hold."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from synmt_cli.core.model.modifier import Side
from synmt_cli.core.vocabulary import BOS, EOS, PAD, UNK

NEVER = (UNK, PAD, BOS)  # not generated, but they keep their share of the probability


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """A translation of one source.

    ids: without BOS and EOS. log_prob: log P(ids, EOS | source), natural. score: `scored`.
    cut: the length limit came before EOS; log_prob and score are then of the prefix.
    """

    ids: list[int]
    log_prob: float
    score: float
    cut: bool = False


def scored(log_prob: float, n_tokens: int, lenpen: float) -> float:
    """log P / n_tokens^lenpen, EOS counted: fairseq's length penalty.

    Not that of GNMT, which divides by ((5 + n_tokens) / 6)^lenpen.

    >>> scored(-6.0, 9, 0.5)
    -2.0
    """
    return log_prob / n_tokens**lenpen


def hypothesis(tokens: list[int], log_prob: float, lenpen: float) -> Hypothesis:
    """tokens: those generated, EOS included unless the limit came first."""
    score = scored(log_prob, len(tokens), lenpen)
    cut = tokens[-1] != EOS
    return Hypothesis(tokens if cut else tokens[:-1], log_prob, score, cut)


def limits(sources: Side, ratio: float, extra: int) -> Tensor:
    """(B,): ratio * n_tokens + extra for each source, at least 1; pads never count."""
    n_tokens = (
        torch.full((len(sources.ids),), sources.ids.size(1), device=sources.ids.device)
        if sources.pad is None
        else (~sources.pad).sum(1)
    )
    return (n_tokens * ratio + extra).long().clamp(min=1)
