"""A tiny model with random weights, and batches for it."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from synmt_cli.core.data.labels import PathTree
from synmt_cli.core.model.attention import split_heads
from synmt_cli.core.model.modifier import Side
from synmt_cli.core.model.size import Size
from synmt_cli.core.model.transformer import Transformer

PAD = 0


def small(norm="post", **changes):
    """A Size of two layers and three heads, without dropout."""
    sizes = {"d_model": 12, "d_ff": 20, "n_heads": 3, "encoder_layers": 2, "decoder_layers": 2}
    return Size(**{**sizes, "norm": norm, "dropout": 0.0, **changes})


def make(size, encoder=(), decoder=(), n=11):
    """A model whose every parameter is random: biases of 0 and norms of 1 hide mistakes."""
    torch.manual_seed(1)
    model = Transformer(size, n, n, encoder, decoder).double().eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, 0.2, 0.4)
    return model


def side(rows, device="cpu", fill=PAD, width=None, **features):
    """Rows padded on the right with `fill`; `pad` is None when nothing is padded.

    features: a number for each token; for `path` a list of label ids.
    """
    width = width or max(map(len, rows))
    paths = None
    if "path" in features:
        tree = PathTree()
        numbers = [[tree.row(path) for path in values] for values in features["path"]]
        padded = [values + [0] * (width - len(values)) for values in numbers]
        numbers, paths = tree.paths_of(np.array(padded))
        features["path"] = numbers.tolist()
        paths = paths.to(device)
    mask = torch.tensor([[t >= len(row) for t in range(width)] for row in rows], device=device)
    return Side(
        _padded(rows, width, fill, device),
        mask if mask.any() else None,
        {name: _padded(values, width, fill, device) for name, values in features.items()},
        paths,
        "sentence" in features and max(map(max, features["sentence"])) <= 0,
    )


def _padded(rows, width, fill, device):
    are_integers = all(isinstance(value, int) for row in rows for value in row)
    fill = fill if are_integers else float(fill)
    return torch.tensor([[*row, *[fill] * (width - len(row))] for row in rows], device=device)


def queries_keys_values(attention, x):
    """q, k, v of a layer's self-attention, each (B, H, T, D / H)."""
    return [split_heads(t, attention.n_heads) for t in attention.qkv(x).chunk(3, dim=-1)]


def logits(model, source, target):
    """Teacher forcing: the scores of each next token, (B, T, V)."""
    states, _ = model.decode(target, model.encode(source))
    return model.logits(states)
