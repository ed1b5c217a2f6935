"""Training speed: synmt against a bare torch loop on the same model size and batches.

    python benchmarks/bench_train.py [--rounds 5] [--steps 4] [--size small] [--batch-tokens 4096]

Rounds are interleaved; a figure is target tokens per CPU second of this process (padding left
out), and what counts is the ratio within one round. One thread unless --threads says else.
The bare loop is torch.nn.Transformer, torch's cross-entropy with label smoothing, fused Adam.
Lengths are drawn like Multi30k's: 15 pieces on average, source and target alike.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from synmt_cli import signals
from synmt_cli.core.data.batch import Batch
from synmt_cli.core.data.corpus import Corpus
from synmt_cli.core.data.encoding import Encoding
from synmt_cli.core.data.labels import Labels
from synmt_cli.core.data.ragged import Ragged
from synmt_cli.core.model.embedding import sinusoid
from synmt_cli.core.model.size import Size
from synmt_cli.core.model.transformer import Transformer
from synmt_cli.core.run.building import modifiers
from synmt_cli.core.run.config import from_settings, resolve
from synmt_cli.core.run.directory import Run
from synmt_cli.core.text.vocabulary import PAD
from synmt_cli.core.training.loop import Trainer

VOCABULARY = 8000
Step = Callable[[list[np.ndarray]], object]


class Bare(nn.Module):
    """A model of the same size with torch's own layers: post-norm, tied, sinusoids, dropout."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        sizes = size.d_model, size.n_heads, size.d_ff, size.dropout
        self.d_model = size.d_model
        self.table = nn.Embedding(VOCABULARY, size.d_model)
        nn.init.normal_(self.table.weight, 0, size.d_model**-0.5)
        self.encoder = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(*sizes, batch_first=True),
            size.encoder_layers,
            enable_nested_tensor=False,
        )
        self.decoder = nn.TransformerDecoder(
            nn.TransformerDecoderLayer(*sizes, batch_first=True), size.decoder_layers
        )
        for module in self.modules():  # dropout where synmt's presets have it, nowhere else
            if isinstance(module, nn.MultiheadAttention):
                module.dropout = size.attention_dropout
            elif isinstance(module, nn.TransformerEncoderLayer | nn.TransformerDecoderLayer):
                module.dropout.p = size.activation_dropout
        self.dropout = nn.Dropout(size.dropout)
        self.known: Tensor
        self.register_buffer("known", sinusoid(torch.arange(512), size.d_model))

    def embed(self, ids: Tensor) -> Tensor:
        """(B, T) -> (B, T, D)."""
        return self.dropout(self.table(ids) * self.d_model**0.5 + self.known[: ids.size(1)])

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """Logits, (B, T, V)."""
        pad = source == PAD
        memory = self.encoder(self.embed(source), src_key_padding_mask=pad)
        n = target.size(1)
        future = torch.ones(n, n, dtype=torch.bool, device=source.device).triu(1)
        states = self.decoder(
            self.embed(target),
            memory,
            tgt_mask=future,
            tgt_is_causal=True,
            memory_key_padding_mask=pad,
        )
        return F.linear(states, self.table.weight)


def bare(corpus: Corpus, size: Size) -> Step:
    """One update of the bare loop."""
    model = Bare(size)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-4, betas=(0.9, 0.98), fused=True)

    def step(rows: list[np.ndarray]) -> None:
        batch: Batch = corpus.batch(rows[0])
        logits = model(batch.source.ids, batch.target.ids)
        loss = F.cross_entropy(
            logits.flatten(0, 1),
            batch.target_out.flatten(),
            ignore_index=PAD,
            label_smoothing=0.1,
        )
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def in_bf16(step: Step) -> Step:
    """The same under autocast."""

    def autocast(rows: list[np.ndarray]) -> None:
        with torch.autocast("cpu", torch.bfloat16):
            step(rows)

    return autocast


def ours(corpus: Corpus, variant: str, preset: str, precision: str = "fp32") -> Step:
    """One update of synmt's trainer, everything it does between two reports included."""
    config = resolve(variant, preset, from_settings([f"training.precision={precision}"]))
    model = Transformer(config.model, VOCABULARY, VOCABULARY, *modifiers(config, 1))
    none: Any = None  # updates need no vocabularies
    trainer = Trainer(Run(Path()), config.training, model, none, corpus, None, torch.device("cpu"))
    model.train()
    nobody = signals.Request()
    return lambda rows: trainer._update(trainer.updates.prepared(rows), nobody)


def make_corpus(n: int) -> Corpus:
    """Random pairs of Multi30k's lengths, with parents for PASCAL."""
    random = np.random.default_rng(1)
    lengths = np.clip(random.normal(15, 5, n), 4, 40).astype(int)
    source = [random.integers(4, VOCABULARY, k) for k in lengths]
    target = [
        random.integers(4, VOCABULARY, max(3, k + d))
        for k, d in zip(lengths, random.integers(-3, 4, n), strict=True)
    ]
    parents = [random.integers(0, k, k).astype(float) for k in lengths]
    features = {"parent_middle": Ragged.of(parents, np.float32)}
    return Corpus(
        Ragged.of(source, np.int64),
        Ragged.of(target, np.int64),
        features,
        {},
        Encoding(tuple(features), Labels()),
        [],
        Counter(),
    )


def main() -> None:
    """Prints each system's rate and its ratio to the bare loop."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--size", default="small", choices=["tiny", "small", "base"])
    parser.add_argument("--batch-tokens", type=int, default=4096)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    corpus = make_corpus(20_000)
    size = resolve(None, options.size, []).model
    systems = {
        "bare torch loop": bare(corpus, size),
        "synmt vanilla": ours(corpus, "vanilla", options.size),
        "synmt pascal": ours(corpus, "pascal", options.size),
        "bare torch loop, bf16": in_bf16(bare(corpus, size)),
        "synmt vanilla, bf16": ours(corpus, "vanilla", options.size, "bf16"),
        "synmt pascal, bf16": ours(corpus, "pascal", options.size, "bf16"),
    }
    rates: dict[str, list[float]] = {name: [] for name in systems}
    batches = list(corpus.epoch(options.batch_tokens, 1, 0))
    for turn in range(options.rounds + 1):
        chosen = [batches[(turn * options.steps + i) % len(batches)] for i in range(options.steps)]
        tokens = sum(int(corpus.target.lengths[rows].sum()) + len(rows) for rows in chosen)
        for name, step in systems.items():
            start = time.process_time()
            for rows in chosen:
                step([rows])
            if turn:  # the first round warms up
                rates[name].append(tokens / (time.process_time() - start))
    print(
        f"{platform.processor() or platform.machine()}, Python {platform.python_version()}, "
        f"torch {torch.__version__}, {options.threads} thread(s), preset {options.size}, "
        f"{options.batch_tokens} tokens a batch, {options.rounds} rounds of {options.steps}"
    )
    for name, found in rates.items():
        ratios = [a / b for a, b in zip(found, rates["bare torch loop"], strict=True)]
        print(
            f"{name:18} {statistics.median(found):8.0f} tokens/CPU s   "
            f"{statistics.median(ratios):.2f} x bare ({min(ratios):.2f}-{max(ratios):.2f})"
        )


if __name__ == "__main__":
    main()
