"""Tiny models, sources and forced prefixes for the tests of decoding."""

from __future__ import annotations

import torch

from synmt_cli.core.decoding.batching.places import Stay
from synmt_cli.core.decoding.batching.supply import whole
from synmt_cli.core.decoding.hypothesis import Rules
from synmt_cli.core.decoding.scorers.scorer import Prefixes
from synmt_cli.core.decoding.search import encoded
from synmt_cli.core.model.modifier import Side
from synmt_cli.core.model.size import Size
from synmt_cli.core.model.transformer import Transformer
from synmt_cli.core.text.vocabulary import EOS, PAD

B, S, V = 3, 7, 23


def model(decoder=(), **options):
    torch.manual_seed(1)
    size = Size(d_model=16, d_ff=32, n_heads=2, encoder_layers=2, decoder_layers=2, **options)
    return Transformer(size, V, V, decoder=decoder).eval()


def sources(n=B):
    torch.manual_seed(2)
    ids, length = torch.randint(4, V, (n, S)), torch.tensor([S, S - 3, S - 1, 2])[:n]
    pad = torch.arange(S) >= length[:, None]
    ids[torch.arange(n), length - 1] = EOS
    return Side(ids.masked_fill(pad, PAD), pad)


def forced(net, side, prefixes):
    """Log-probabilities after each whole prefix. prefixes: (B, K, T) -> (B, K, V)."""
    columns = []
    for k in range(prefixes.size(1)):
        states, _ = net.decode(Side(prefixes[:, k]), net.encode(side))
        columns.append(net.logits(states[:, -1]).log_softmax(-1))
    return torch.stack(columns, 1)


class Stepping:
    """A scorer that is driven by hand, by prefixes of one length: ids (B, K, T)."""

    def __init__(self, scorer, net, side):
        self.scorer = scorer
        n, self.width = len(side.ids), whole(side.ids.size(1))
        new = encoded([net], range(n), [side], Rules())
        scorer.enter(range(n), n, self.width, new)

    def step(self, ids):
        n_sources, _, n_tokens = ids.shape
        at = torch.full((n_sources,), n_tokens - 1)
        widths = whole(n_tokens), self.width
        return self.scorer.step(Prefixes(ids[..., -1], at, *widths, ids, {}))

    def select(self, kept, n, parents):
        self.scorer.select(Stay.of(kept, n, parents.device), parents.numpy())
