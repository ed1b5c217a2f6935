"""Greedy search: the most probable token at each step, until EOS.

The host looks at the device once a step, and writes down what it sees.
"""

import math
from collections.abc import Iterator

import torch

from synmt_cli.core.decoding.batching.running import Running
from synmt_cli.core.decoding.batching.supply import Source
from synmt_cli.core.decoding.hypothesis import Hypothesis, hypothesis, refuse_nan
from synmt_cli.core.text.vocabulary import EOS


def greedy(running: Running, with_scores: bool) -> Iterator[list[tuple[Source, Hypothesis]]]:
    """Yields sources as they end, and the hypothesis of each, whose score is log P, or else 0.

    Raises ConfigError for scores that are not numbers.
    """
    written: dict[int, list[int]] = {}  # by the number of the source
    while running.sources:
        token, best = running.most_probable(with_scores)  # (B, 1) each
        scores = running.scores + best
        # Numbers of single precision are exact for ids and lengths below 2^24.
        parts = (scores, token, *running.progress.lengths(token))
        look = torch.cat(parts, 1).tolist()  # (B, 2 or 4)
        ends, found = [], []
        seen = zip(running.sources, running.ages, running.full, look, strict=True)
        for source, age, is_full, (log_prob, id, *length) in seen:
            refuse_nan(math.isnan(log_prob))
            tokens = written.setdefault(source.number, [])
            tokens.append(int(id))
            ends.append(int(id) == EOS or is_full)
            if ends[-1]:
                del written[source.number]
                n_pieces = int(sum(length)) if length else age
                found.append((source, hypothesis(tokens, log_prob, n_pieces, 0.0)))
        running.advance(ends, token, scores)
        if found:
            yield found
