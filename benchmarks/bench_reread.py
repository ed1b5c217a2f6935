"""The cost of training a decoder that re-reads its prefix, and how near that is to its limit.

    python benchmarks/bench_reread.py [--rounds 5] [--sentences 64] [--quick]

A figure is CPU time of one update (forward and backward pass, no optimizer) per target token;
what counts is the ratio within one round, in which all systems run one after the other. Random
pairs of Multi30k's lengths, for the decoders over transitions with random projective trees.
Batches hold pairs of one length, as in training; each round takes a longer one, from short to
long, so that a range is that over lengths as well. Sizes and dropout are those of a preset.

naive: one tensor of all B x T copies padded to the longest T, a mask that hides the keys after
the prefix, all rows computed in each layer, the loss on one row of each copy. It gives the same
loss and gradient, which is checked without dropout. Here the copies of a sentence share the
source's keys and values. It is timed on a part of each batch, and takes all of it for memory.

limit: the prefixes of T tokens have n = T (T + 1) / 2 rows. Those above the embeddings are new
in each prefix, so all layers but the last compute n rows where the causal decoder computes T;
the last one needs keys and values of n and all else of T. So, from times of the causal decoder
over the same targets, and of one pass of the graph convolutions where there are any,

    limit = update + (n / T - 1) layers ((L - 1) + share of keys and values) / L
            + n / T convolutions

This is an estimate, not a bound: attention and edges over short prefixes take less, and so does
the last layer, which makes no keys and values if weights have no dropout (decision 35). The limit
of its layers leaves out the last line.

Memory is what one update adds to a process of its own.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import platform
import random
import statistics
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from synmt_cli.core import variants
from synmt_cli.core.data.batch import Batch
from synmt_cli.core.data.corpus import Corpus
from synmt_cli.core.data.encoding import Encoding
from synmt_cli.core.data.labels import Labels
from synmt_cli.core.data.ragged import Array, Ragged
from synmt_cli.core.model.modifier import Side
from synmt_cli.core.model.transformer import Transformer
from synmt_cli.core.run.building import modifiers
from synmt_cli.core.run.config import from_settings, resolve
from synmt_cli.core.text.vocabulary import EOS, PAD
from synmt_cli.core.training.gradient import backward
from synmt_cli.core.training.loss import cross_entropy
from synmt_cli.core.transitions.grammar import FEATURES, Grammar
from synmt_cli.core.trees.arc_standard import NEVER, Move, oracle
from synmt_cli.core.trees.shapes import random_projective_tree
from synmt_cli.formats.transitions import LEFT, RIGHT

VOCABULARY, N_LABELS = 8000, 45
FIRST_ARC = VOCABULARY - 2 * N_LABELS
N_PAIRS = 4000
BEGINS = 0.85  # the chance that a piece begins a word
SMOOTHING = 0.1
SHARE, DRAWS = 0.25, 3  # share of prefixes; updates with one mean figure, since lengths are drawn
REPEATS = 3  # how often a short piece of work is timed
BASE = {"bitran": "vanilla", "parent": "linearized", "gcn": "linearized"}  # have the same targets
SIZES = {
    "d 256, 3+3 layers": ("small", []),
    "d 128, 2+2 layers": (
        "small",
        ["d_model=128", "d_ff=512", "encoder_layers=2", "decoder_layers=2"],
    ),
}
Times = dict[str, list[float]]
Rows = Sequence[Sequence[int]]


def pairs(n: int) -> dict[bool, Corpus]:
    """Pairs of Multi30k's lengths: True -> with transitions as targets, False -> with pieces."""
    numbers, dice = np.random.default_rng(1), random.Random(1)
    grammar = Grammar(np.zeros(0), np.zeros(0), tuple(f"l{i}" for i in range(N_LABELS)), False)
    source, pieces, transitions = [], [], []
    features: dict[str, list[list[int]]] = {name: [] for name in FEATURES}
    for length in np.clip(numbers.normal(15, 5, n), 4, 40).astype(int):
        source.append([*numbers.integers(EOS + 1, FIRST_ARC, length - 1), EOS])
        n_pieces = max(3, length + numbers.integers(-3, 4))
        pieces.append(numbers.integers(EOS + 1, FIRST_ARC, n_pieces).tolist())
        tokens = tree_tokens(n_pieces, dice)
        for name, values in grammar.features(tokens).items():
            features[name].append(values)
        transitions.append([id_of(token, dice) for token in tokens])
    return {
        False: corpus(source, pieces, {}),
        True: corpus(source, transitions, features),
    }


def corpus(source: Rows, target: Rows, features: Mapping[str, Rows]) -> Corpus:
    """A corpus of rows of ids."""
    return Corpus(
        Ragged.of(source, np.int64),
        Ragged.of(target, np.int64),
        {},
        {name: Ragged.of(rows, np.int64) for name, rows in features.items()},
        Encoding((), Labels()),
        [],
        Counter(),
    )


def tree_tokens(n_pieces: int, dice: random.Random) -> list[str]:
    """The transitions of a random projective tree over words that have n_pieces pieces in all."""
    sizes = [1]
    for _ in range(n_pieces - 1):
        if dice.random() < BEGINS:
            sizes.append(1)
        else:
            sizes[-1] += 1
    tokens = []
    for move, word in oracle(random_projective_tree(len(sizes), dice.random)) or ():
        if move == Move.BEGIN:
            tokens += ["▁w", *["w"] * (sizes[word] - 1)]
        else:
            direction = LEFT if move == Move.LEFT else RIGHT
            tokens.append(f"{direction}:l{dice.randrange(N_LABELS)}")
    return tokens


def id_of(token: str, dice: random.Random) -> int:
    """The id of an arc, any id for a piece."""
    direction, colon, label = token.partition(":l")
    if not colon:
        return dice.randrange(EOS + 1, FIRST_ARC)
    return FIRST_ARC + N_LABELS * (direction == RIGHT) + int(label)


def batches(corpus: Corpus, sentences: int, rounds: int) -> list[Array]:
    """One batch for each round, at even steps through the lengths of the corpus."""
    full = [rows for rows in corpus.epoch(2**30, 1, 0, sentences) if len(rows) == sentences]
    full.sort(key=lambda rows: int(corpus.target.lengths[rows].sum()))
    return [full[int((i + 0.5) / rounds * len(full))] for i in range(rounds)]


def build(variant: str, size: str) -> Transformer:
    """A model of a variant, in training mode."""
    preset, settings = SIZES[size]
    config = resolve(variant, preset, from_settings([f"model.{one}" for one in settings]))
    rereads = variants.plan(variant).rereads
    both = modifiers(config, 1, N_LABELS)
    return Transformer(config.model, VOCABULARY, VOCABULARY, *both, rereads).train()


def update(model: Transformer, batch: Batch, share: float = 1.0) -> float:
    """Makes one update as synmt does. Returns the loss."""
    return backward(model, batch, SMOOTHING, 1 / sum(batch.lengths), share).smoothed.item()


def naive(model: Transformer, batch: Batch) -> float:
    """The same with padded copies: copy t of a target is its first t tokens."""
    memory, decoder = model.encode(batch.source), model.decoder
    n, length = batch.target.ids.shape
    known = torch.arange(1, length + 1).repeat(n)[:, None]  # (B * T, 1)
    side = copies(batch.target, known)
    allowed = (torch.arange(length) < known)[:, None, None]  # (B * T, 1, 1, T)
    active = decoder.prepare(side)
    x = decoder.embedding(side.ids, active)  # (B * T, T, D)
    for layer, source in zip(decoder.layers, decoder.keys_values(memory), strict=True):
        own = layer.attention.modified_by(active)
        attend = partial(layer.attention, allowed=allowed, causal=False, active=own)
        x = layer.step(x, attend, source, memory.allowed)
    states = decoder.norm(x).view(n, length, length, -1)
    newest = states.diagonal(dim1=1, dim2=2).transpose(1, 2)  # (B, T, D)
    real = batch.target_out != PAD
    weight = model.output.weight
    loss = cross_entropy(newest[real], weight, batch.target_out[real], SMOOTHING).smoothed
    (loss / sum(batch.lengths)).backward()
    return loss.item()


def copies(target: Side, known: Tensor) -> Side:
    """Copies of each target, as many as it has tokens; arcs are there once they are known."""
    length = target.ids.size(1)
    repeated = {name: v.repeat_interleave(length, 0) for name, v in target.features.items()}
    if repeated:
        arc, inside = repeated["arc"], torch.arange(length) < known  # padding has arcs to BOS
        repeated["arc"] = arc.where((arc < known) & inside, NEVER)
    return Side(target.ids.repeat_interleave(length, 0), features=repeated)


def check(size: str, corpora: dict[bool, Corpus]) -> None:
    """Raises AssertionError unless naive copies give synmt's loss and gradient."""
    for variant, base in BASE.items():
        # In double precision: rounding may switch a rectifier, and so a gradient.
        model, one = build(variant, size).eval().double(), corpora[base == "linearized"]
        batch = one.batch(np.flatnonzero(one.target.lengths < 16)[:5])  # of different lengths
        losses, gradients = [], []
        for work in (update, naive):
            model.zero_grad()
            losses.append(work(model, batch) / sum(batch.lengths))
            parts = [p.grad.flatten() for p in model.parameters() if p.grad is not None]
            gradients.append(torch.cat(parts))
        assert abs(losses[0] - losses[1]) < 1e-4, (variant, losses)
        off = (gradients[0] - gradients[1]).norm() / gradients[1].norm()
        assert off < 1e-6, (variant, off)


def seconds(model: Transformer, work: Callable[[], object], repeats: int = 1) -> float:
    """CPU time of this process, the median of some repeats."""
    spent = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        spent.append(time.process_time() - start)
        model.zero_grad()
    return statistics.median(spent)


def layers_seconds(model: Transformer, batch: Batch) -> float:
    """Forward and backward pass of a causal decoder's layers alone."""
    decoder = model.decoder
    with torch.no_grad():
        memory = model.encode(batch.source)
        sources = decoder.keys_values(memory)
        inputs = decoder.embedding(batch.target.ids, ())
    for leaf in (inputs, *(tensor for source in sources for tensor in source)):
        leaf.requires_grad_()

    def work() -> None:
        x = inputs
        for layer, source in zip(decoder.layers, sources, strict=True):
            attend = partial(layer.attention, allowed=None, causal=True, active=())
            x = layer.step(x, attend, source, memory.allowed)
        x.backward(torch.ones_like(x))

    return seconds(model, work, REPEATS)


def convolutions_seconds(model: Transformer, batch: Batch) -> float:
    """Forward and backward pass of graph convolutions alone, over whole targets."""
    with torch.no_grad():
        inputs = model.decoder.embedding(batch.target.ids, ())
    inputs.requires_grad_()

    def work() -> None:
        x = inputs
        for modifier, state in model.decoder.prepare(batch.target):
            x = modifier.inputs(state, x)
        x.backward(torch.ones_like(x))

    return seconds(model, work, REPEATS)


def extra(model: Transformer, batch: Batch, layers: float, convolutions: float = 0.0) -> float:
    """The seconds that the limit adds to an update of the causal decoder."""
    size, lengths = model.size, (batch.target_out != PAD).sum(1)
    factor = int((lengths * (lengths + 1) // 2).sum()) / batch.target.ids.numel()
    d = size.d_model
    keys_values = 2 * d * d / (6 * d * d + 2 * d * size.d_ff)  # of a row's multiplications
    share = (size.decoder_layers - 1 + keys_values) / size.decoder_layers
    return (factor - 1) * share * layers + factor * convolutions


def one_round(
    models: dict[str, Transformer], batch: dict[bool, Batch], part: dict[bool, Batch]
) -> dict[str, float]:
    """Seconds per target token of each system, and of each limit."""
    spent, layers = {}, {}
    for name in ("vanilla", "linearized"):
        model, one = models[name], batch[name == "linearized"]
        whole = seconds(model, partial(update, model, one), REPEATS)
        spent[name], layers[name] = whole / sum(one.lengths), layers_seconds(model, one)
    for name, base in BASE.items():
        model, one = models[name], batch[base == "linearized"]
        convolutions = convolutions_seconds(model, one) if name == "gcn" else 0.0
        spent[name] = seconds(model, partial(update, model, one)) / sum(one.lengths)
        of_layers = spent[base] + extra(model, one, layers[base]) / sum(one.lengths)
        spent[f"{name}, limit of its layers"] = of_layers
        if convolutions:
            more = extra(model, one, layers[base], convolutions)
            spent[f"{name}, limit"] = spent[base] + more / sum(one.lengths)
    model, one = models["bitran"], batch[False]
    drawn = [seconds(model, partial(update, model, one, SHARE)) for _ in range(DRAWS)]
    spent[f"bitran, share {SHARE}"] = statistics.mean(drawn) / sum(one.lengths)
    for name, base in BASE.items():  # at the end: they give gigabytes back to the system
        model, one = models[name], part[base == "linearized"]
        spent[f"{name}, naive"] = seconds(model, partial(naive, model, one)) / sum(one.lengths)
    return spent


def peak(system: str, size: str, sentences: int) -> float:
    """MB that an update adds, in a process of its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_peak, (system, size, sentences))


def _peak(system: str, size: str, sentences: int) -> float:
    torch.set_num_threads(1)
    variant, _, how = system.partition(", ")
    corpus = pairs(N_PAIRS)[variants.plan(variant).transitions]
    (rows,) = batches(corpus, sentences, 1)
    model, batch = build(variant, size), corpus.batch(rows)
    before = status("VmRSS")
    (naive if how == "naive" else update)(model, batch)
    return status("VmHWM") - before


def status(name: str) -> float:
    """A figure of /proc in MB. Not getrusage: its peak is inherited through fork and exec."""
    text = Path("/proc/self/status").read_text(encoding="ascii")
    return int(text.split(f"{name}:")[1].split()[0]) / 1e3


def ratio(times: Times, name: str, other: str) -> str:
    """The median of the rounds' ratios, the least and the greatest."""
    ratios = [a / b for a, b in zip(times[name], times[other], strict=True)]
    return f"{statistics.median(ratios):6.2f} ({min(ratios):.2f}-{max(ratios):.2f})"


def report(times: Times) -> None:
    """Prints each system's time, and its ratios."""
    for name, seconds_per_token in times.items():
        variant, _, how = name.partition(", ")
        others = [BASE[variant]] if variant in BASE else []
        if how in ("naive", f"share {SHARE}"):
            others.append(variant)
        elif not how:
            others += [other for other in times if other.startswith(f"{variant}, limit")]
        compared = "   ".join(f"{ratio(times, name, other)} x {other}" for other in others)
        print(f"{name:28} {1e6 * statistics.median(seconds_per_token):7.0f} us/token   {compared}")


def main() -> None:
    """Prints the time of each system, its ratios, and its memory."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sentences", type=int, default=64)
    parser.add_argument("--part", type=int, default=12, help="sentences of naive copies timed")
    parser.add_argument("--quick", action="store_true", help="d 128, 2+2 layers")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    size = list(SIZES)[options.quick]
    corpora = pairs(N_PAIRS)
    check(size, corpora)
    models = {name: build(name, size) for name in ("vanilla", "linearized", *BASE)}
    chosen = {key: batches(one, options.sentences, options.rounds) for key, one in corpora.items()}
    times: Times = {}
    few = {key: one.batch(np.arange(8)) for key, one in corpora.items()}
    one_round(models, few, few)  # warms up
    load = os.getloadavg()[0]
    for turn in range(options.rounds):
        whole = {key: one.batch(chosen[key][turn]) for key, one in corpora.items()}
        part = {key: one.batch(chosen[key][turn][: options.part]) for key, one in corpora.items()}
        for name, spent in one_round(models, whole, part).items():
            times.setdefault(name, []).append(spent)
    lengths = [
        int(corpora[key].target.lengths[rows].max()) + 1 for key in corpora for rows in chosen[key]
    ]
    print(
        f"{platform.processor() or platform.machine()}, Python {platform.python_version()}, "
        f"torch {torch.__version__}, 1 thread, {size}, {options.sentences} sentences a batch, "
        f"{options.rounds} rounds, load {load:.1f} before and {os.getloadavg()[0]:.1f} after; "
        f"longest targets {lengths[: options.rounds]} pieces, {lengths[options.rounds :]} "
        "transitions and pieces"
    )
    report(times)
    for name in ("vanilla", "bitran", "bitran, naive", "linearized", "gcn", "gcn, naive"):
        print(f"{name:28} {peak(name, size, options.sentences):8.0f} MB", flush=True)


if __name__ == "__main__":
    main()
