"""The Transformer a second time, slowly: formulas in NumPy and loops, double precision.

Written from Vaswani et al. (2017) and Bugliarello and Okazaki (2020), with one loop for each
index that an equation names. It shares nothing with synmt but the weights it is given.
"""

from __future__ import annotations

import math

import numpy as np


def density(p, j, variance):
    """PASCAL eq. 6, one number: the normal density of j around p."""
    return math.exp(-((j - p) ** 2) / (2 * variance)) / math.sqrt(2 * math.pi * variance)


def array(tensor):
    return tensor.detach().double().numpy()


def linear(module, x):
    return x @ array(module.weight).T + array(module.bias)


def layer_norm(module, x):
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    normal = (x - mean) / np.sqrt(variance + module.eps)
    return normal * array(module.weight) + array(module.bias)


def sinusoid(position, d_model):
    """Section 3.5: PE(pos, 2i) = sin(pos / 10000^(2i/d)), PE(pos, 2i + 1) its cosine."""
    vector = np.zeros(d_model)
    for i in range(d_model // 2):
        angle = position / 10000 ** (2 * i / d_model)
        vector[2 * i], vector[2 * i + 1] = math.sin(angle), math.cos(angle)
    return vector


def sinusoids(positions, d_model):
    return np.array([sinusoid(position, d_model) for position in positions])


def embed(embedding, ids):
    """E[w] sqrt(d) + PE for one sentence, (T, D)."""
    weight = array(embedding.table.weight)
    d_model = weight.shape[1]
    return math.sqrt(d_model) * weight[ids] + sinusoids(range(len(ids)), d_model)


def heads(q, k, v, n_heads, score):
    """Contexts of all heads, (T, D). score(h, t, j, s) is the score used, None = hidden."""
    d = q.shape[1] // n_heads
    out = np.zeros_like(q)
    for h in range(n_heads):
        part = slice(h * d, (h + 1) * d)
        for t in range(len(q)):
            weights = np.zeros(len(k))
            for j in range(len(k)):
                s = score(h, t, j, float(q[t, part] @ k[j, part]) / math.sqrt(d))
                weights[j] = 0.0 if s is None else math.exp(s)
            out[t, part] = weights @ v[:, part] / weights.sum()
    return out


def plain(h, t, j, s):
    return s


def causal(h, t, j, s):
    return s if j <= t else None


def self_attention(attention, x, score):
    q, k, v = np.split(linear(attention.qkv, x), 3, axis=1)
    return linear(attention.out, heads(q, k, v, attention.n_heads, score))


def cross_attention(attention, x, memory):
    k, v = np.split(linear(attention.kv, memory), 2, axis=1)
    context = heads(linear(attention.q, x), k, v, attention.n_heads, plain)
    return linear(attention.out, context)


def feed_forward(module, x):
    return linear(module.narrow, np.maximum(0, linear(module.wide, x)))


def stack(model, side, ids, sublayers):
    """All layers over one sentence. sublayers(i, layer) gives functions of the stream."""
    pre = model.size.norm == "pre"
    x = embed(side.embedding, ids)
    for i, layer in enumerate(side.layers):
        for norm, function in zip(layer.norms, sublayers(i, layer), strict=True):
            x = x + function(layer_norm(norm, x)) if pre else layer_norm(norm, x + function(x))
    return layer_norm(side.norm, x) if pre else x


def encode(model, ids, score=None):
    """One source without padding, (T, D). score(layer, h, t, j, s): what PASCAL changes."""

    def sublayers(i, layer):
        here = plain if score is None else lambda *args: score(i, *args)
        return (
            lambda x: self_attention(layer.attention, x, here),
            lambda x: feed_forward(layer.feed_forward, x),
        )

    return stack(model, model.encoder, ids, sublayers)


def decode(model, ids, memory):
    """Logits of one target prefix over one source without padding, (T, V)."""

    def sublayers(i, layer):
        return (
            lambda x: self_attention(layer.attention, x, causal),
            lambda x: cross_attention(layer.cross, x, memory),
            lambda x: feed_forward(layer.feed_forward, x),
        )

    return stack(model, model.decoder, ids, sublayers) @ array(model.output.weight).T
