"""Decoding speed: synmt's search against a bare cached loop on the same weights, in one run.

    python benchmarks/bench_decode.py [--sentences 512] [--rounds 3] [--threads 1]

The bare loop is what careful PyTorch does by hand: functional layers, a key/value cache
written in place, the source's keys and values once per source, finished sources dropped. Weights
are random, 3 + 3 layers of 256, 8,000 pieces; every translation ends at its source's length,
so both do the same work. Rates are per CPU second; the ratio is the median over the rounds.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from synmt_cli.core.decoding.hypothesis import LengthLimit, Rules
from synmt_cli.core.decoding.search import search
from synmt_cli.core.model.modifier import Side
from synmt_cli.core.model.size import Size
from synmt_cli.core.model.transformer import Transformer

SIZE = Size(d_model=256, d_ff=1024, n_heads=4, encoder_layers=3, decoder_layers=3)
N_TOKENS, PAD, BOS, EOS = 8000, 1, 2, 3
D, H = SIZE.d_model, SIZE.n_heads
Weights = dict[str, Tensor]
KeysValues = tuple[Tensor, Tensor]
Translations = list[list[int]]
Search = Callable[[Tensor, Tensor], Translations]


class Bare:
    """A Transformer's weights, applied by hand (post-norm, tied embeddings)."""

    def __init__(self, model: Transformer) -> None:
        weights = model.state_dict()
        self.table, self.scale = weights["output.weight"], math.sqrt(D)
        self.positions = model.decoder.embedding._encodings(512, self.table)
        self.encoder = [part(weights, f"encoder.layers.{i}.") for i in range(3)]
        self.decoder = [part(weights, f"decoder.layers.{i}.") for i in range(3)]

    def encode(self, ids: Tensor, pad: Tensor) -> tuple[list[KeysValues], Tensor]:
        """Each layer's keys and values of the sources, and their mask."""
        bias = torch.zeros(pad.shape).masked_fill(pad, -math.inf)[:, None, None]
        x = F.embedding(ids, self.table) * self.scale + self.positions[: ids.size(1)]
        for w in self.encoder:
            q, k, v = (heads(t) for t in linear(x, w, "attention.qkv").chunk(3, -1))
            a = F.scaled_dot_product_attention(q, k, v, attn_mask=bias)
            x = norm(x + linear(a.transpose(1, 2).flatten(2), w, "attention.out"), w, 0)
            x = norm(x + feed_forward(x, w), w, 1)
        cross = []
        for w in self.decoder:
            k, v = linear(x, w, "cross.kv").chunk(2, -1)
            cross.append((heads(k), heads(v)))
        return cross, bias

    def step(
        self,
        tokens: Tensor,
        t: int,
        cache: Sequence[KeysValues],
        cross: Sequence[KeysValues],
        bias: Tensor,
    ) -> Tensor:
        """The logits of the next tokens, (B * K, V)."""
        x = F.embedding(tokens, self.table) * self.scale + self.positions[t]  # (B * K, D)
        rows = len(tokens)
        for i, w in enumerate(self.decoder):
            q, k, v = linear(x, w, "attention.qkv").view(rows, 3, H, D // H).unbind(1)
            keys, values = cache[i]
            keys[:, :, t], values[:, :, t] = k, v
            a = F.scaled_dot_product_attention(
                q[:, :, None], keys[:, :, : t + 1], values[:, :, : t + 1]
            )
            x = norm(x + linear(a.reshape(rows, D), w, "attention.out"), w, 0)
            k, v = cross[i]
            q = linear(x, w, "cross.q").view(len(k), -1, H, D // H).transpose(1, 2)
            a = F.scaled_dot_product_attention(q, k, v, attn_mask=bias)
            x = norm(x + linear(a.transpose(1, 2).reshape(rows, D), w, "cross.out"), w, 1)
            x = norm(x + feed_forward(x, w), w, 2)
        return F.linear(x, self.table)

    def search(self, ids: Tensor, pad: Tensor, n_beams: int) -> Translations:
        """The best translations."""
        n, limits = len(ids), (~pad).sum(1)
        longest = int(limits.max())
        cross, bias = self.encode(ids, pad)
        room = (n * n_beams, H, longest, D // H)
        cache = [(torch.empty(room), torch.empty(room)) for _ in self.decoder]
        tokens, history = torch.full((n * n_beams,), BOS), torch.empty(n * n_beams, 0).long()
        scores = torch.full((n, n_beams), -1e9)
        scores[:, 0] = 0
        translations: Translations = [[] for _ in range(n)]
        sources = list(range(n))
        for t in range(longest):
            logits = self.step(tokens, t, cache, cross, bias)
            logits[:, :4] = -math.inf
            if n_beams == 1:
                rows, tokens = torch.arange(len(tokens)), logits.argmax(-1)
            else:
                top, ids = logits.topk(2 * n_beams, -1)
                top = scores.view(-1, 1) + top - logits.logsumexp(-1, keepdim=True)
                scores, order = top.view(len(sources), -1).topk(n_beams, -1)
                rows = (
                    torch.arange(len(sources))[:, None] * n_beams + order // (2 * n_beams)
                ).flatten()
                tokens = ids.view(len(sources), -1).gather(1, order).flatten()
            history = torch.cat((history[rows], tokens[:, None]), 1)
            ends = limits <= t + 1
            if ends.any():
                for place in ends.nonzero().flatten().tolist():
                    translations[sources[place]] = history[place * n_beams].tolist()
                stay = (~ends).nonzero().flatten()
                kept = (stay[:, None] * n_beams + torch.arange(n_beams)).flatten()
                sources = [sources[place] for place in stay.tolist()]
                if not sources:
                    break
                limits, scores, bias = limits[stay], scores[stay], bias[stay]
                tokens, history, rows = tokens[kept], history[kept], rows[kept]
                cross = [(k[stay], v[stay]) for k, v in cross]
            if n_beams > 1 or ends.any():
                cache = [(gathered(k, rows, t + 1), gathered(v, rows, t + 1)) for k, v in cache]
        return translations


def part(weights: Weights, prefix: str) -> Weights:
    """The weights of one layer."""
    return {k.removeprefix(prefix): v for k, v in weights.items() if k.startswith(prefix)}


def linear(x: Tensor, w: Weights, name: str) -> Tensor:
    """One projection."""
    return F.linear(x, w[f"{name}.weight"], w[f"{name}.bias"])


def norm(x: Tensor, w: Weights, i: int) -> Tensor:
    """Layer normalisation after sub-layer i."""
    return F.layer_norm(x, (D,), w[f"norms.{i}.weight"], w[f"norms.{i}.bias"])


def feed_forward(x: Tensor, w: Weights) -> Tensor:
    """The feed-forward layer (Vaswani et al. 2017, eq. 2)."""
    return linear(F.relu(linear(x, w, "feed_forward.wide")), w, "feed_forward.narrow")


def heads(x: Tensor) -> Tensor:
    """(B, T, D) -> (B, H, T, D / H)."""
    return x.view(x.size(0), -1, H, D // H).transpose(1, 2)


def gathered(x: Tensor, rows: Tensor, n: int) -> Tensor:
    """x[rows]; only the first n positions are filled."""
    y = torch.empty(len(rows), *x.shape[1:])
    y[:, :, :n] = x[:, :, :n][rows]
    return y


def batches(n: int, size: int = 64) -> Iterator[tuple[Tensor, Tensor]]:
    """Sources of 6 to 26 pieces, longest first."""
    lengths = torch.randint(6, 27, (n,)).sort(descending=True).values
    for part in lengths.split(size):
        ids = torch.randint(4, N_TOKENS, (len(part), int(part[0])))
        ids[torch.arange(len(part)), part - 1] = EOS
        pad = torch.arange(int(part[0])) >= part[:, None]
        yield ids.masked_fill(pad, PAD), pad


def timed(function: Search, data: Iterable[tuple[Tensor, Tensor]]) -> tuple[float, Translations]:
    """CPU seconds, and the translations of all batches."""
    start = time.process_time()
    with torch.inference_mode():
        translations = [one for ids, pad in data for one in function(ids, pad)]
    return time.process_time() - start, translations


def main() -> None:
    """Prints a line for each round, then the median ratio."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sentences", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    model = Transformer(SIZE, N_TOKENS, N_TOKENS).eval()
    bare, data = Bare(model), list(batches(options.sentences))
    for beam in (1, 5):

        def ours(ids: Tensor, pad: Tensor, beam: int = beam) -> Translations:
            nbests = search([model], Side(ids, pad), Rules(beam=beam, longest=LengthLimit(1, 0)))
            return [list(nbest[0].ids) for nbest in nbests]

        def by_hand(ids: Tensor, pad: Tensor, beam: int = beam) -> Translations:
            return bare.search(ids, pad, beam)

        ratios = []
        for _ in range(options.rounds):
            of_bare, expected = timed(by_hand, data)
            seconds, translations = timed(ours, data)
            same = sum(a == b for a, b in zip(translations, expected, strict=True))
            ratios.append(of_bare / seconds)
            print(
                f"beam {beam}: synmt {options.sentences / seconds:6.1f} sentences/s, "
                f"bare {options.sentences / of_bare:6.1f}, ratio {ratios[-1]:.2f}, "
                f"{same} of {len(translations)} equal"
            )
        print(f"beam {beam}: median ratio {statistics.median(ratios):.2f}")


if __name__ == "__main__":
    main()
