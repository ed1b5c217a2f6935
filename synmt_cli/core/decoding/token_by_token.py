"""Search with one prefix for each source: the most probable token at each step, or a drawn one.

The host looks at the device once a step, and writes down what it sees.
"""

import math
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from synmt_cli.core.decoding.batching.running import Running
from synmt_cli.core.decoding.batching.supply import Source
from synmt_cli.core.decoding.hypothesis import Hypothesis, hypothesis, refuse_nan
from synmt_cli.core.decoding.sampling import Sampling
from synmt_cli.core.model.moving import moved
from synmt_cli.core.run.device import widest
from synmt_cli.core.text.vocabulary import EOS

Ended = list[tuple[Source, Hypothesis]]


def greedy(running: Running, with_scores: bool) -> Iterator[Ended]:
    """Yields each source as it ends, with its hypothesis; the score is log P, or 0 if not wanted.

    Raises ConfigError for scores that are not numbers.
    """
    return _written(running, lambda: running.most_probable(with_scores))


def sampled(
    running: Running, sampling: Sampling, points: Callable[[int], Callable[[], float]]
) -> Iterator[Ended]:
    """Yields sources as they end, and the drawn hypothesis of each, whose score is log P.

    points: number of a source -> the function that returns a number from [0, 1) for each of its
    tokens. Raises ConfigError for scores that are not numbers.
    """
    points_of: dict[int, Callable[[], float]] = {}  # by the number of the source

    def drawn() -> tuple[Tensor, Tensor]:
        nonlocal points_of
        numbers = [source.number for source in running.sources]
        points_of = {number: points_of.get(number) or points(number) for number in numbers}
        log_probs = running.log_probs()  # (B, 1, V)
        dtype = widest(log_probs.device)
        at = torch.tensor([[points_of[number]()] for number in numbers], dtype=dtype)
        token = sampling.drawn(log_probs, moved(at, log_probs.device))  # (B, 1)
        log_prob = log_probs.gather(-1, token[..., None])[..., 0]
        # A token that may not come next is drawn only where scores are not numbers.
        return token, log_prob.masked_fill(log_prob.isneginf(), torch.nan)

    return _written(running, drawn)


def _written(running: Running, choose: Callable[[], tuple[Tensor, Tensor]]) -> Iterator[Ended]:
    """choose: the next token of each source and its log-probability, (B, 1) each."""
    written: dict[int, list[int]] = {}  # by the number of the source
    while running.sources:
        token, log_prob = choose()
        scores = running.scores + log_prob
        # Numbers of single precision are exact for ids and lengths below 2^24.
        parts = (scores, token, *running.progress.lengths(token))
        look = torch.cat(parts, 1).tolist()  # (B, 2 or 4)
        ends, found = [], []
        seen = zip(running.sources, running.ages, running.full, look, strict=True)
        for source, age, is_full, (score, id, *length) in seen:
            refuse_nan(math.isnan(score))
            tokens = written.setdefault(source.number, [])
            tokens.append(int(id))
            ends.append(int(id) == EOS or is_full)
            if ends[-1]:
                del written[source.number]
                n_pieces = int(sum(length)) if length else age
                found.append((source, hypothesis(tokens, score, n_pieces, 0.0)))
        running.advance(ends, token, scores)
        if found:
            yield found
