"""The Transformer a second time, slowly: formulas in NumPy and loops, double precision.

Written from Vaswani et al. (2017), Shaw et al. (2018) and Bugliarello and Okazaki (2020), with
one loop for each index that an equation names. It shares nothing with synmt but the weights
it is given. What a variant changes comes in as functions: score(layer, h, t, j, s) is the
score that is used, None = hidden; key(layer, t, j) and value(layer, t, j) are vectors of one
head's width that are added to k_j and v_j when t attends to j.
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


def tokens(embedding, ids):
    """E[w] sqrt(d) for one sentence, (T, D)."""
    weight = array(embedding.table.weight)
    return math.sqrt(weight.shape[1]) * weight[ids]


def embed(embedding, ids):
    """E[w] sqrt(d) + PE for one sentence, (T, D); without PE where it is switched off."""
    x = tokens(embedding, ids)
    return x if embedding.positions == "none" else x + sinusoids(range(len(x)), x.shape[1])


def nothing(t, j):
    return 0.0


def heads(q, k, v, n_heads, score, key=nothing, value=nothing):
    """Contexts of all heads, (T, D). score(h, t, j, s), key(t, j), value(t, j).

    Shaw et al., eqs. 3-4: e_tj = q_t . (k_j + key_tj) / sqrt(d), z_t = sum_j a_tj (v_j +
    value_tj).
    """
    d = q.shape[1] // n_heads
    out = np.zeros_like(q)
    for h in range(n_heads):
        part = slice(h * d, (h + 1) * d)
        for t in range(len(q)):
            weights = np.zeros(len(k))
            for j in range(len(k)):
                s = score(h, t, j, float(q[t, part] @ (k[j, part] + key(t, j))) / math.sqrt(d))
                weights[j] = 0.0 if s is None else math.exp(s)
            weights /= weights.sum()
            out[t, part] = sum(weights[j] * (v[j, part] + value(t, j)) for j in range(len(k)))
    return out


def plain(h, t, j, s):
    return s


def causal(h, t, j, s):
    return s if j <= t else None


def self_attention(attention, x, score, key=nothing, value=nothing):
    q, k, v = np.split(linear(attention.qkv, x), 3, axis=1)
    return linear(attention.out, heads(q, k, v, attention.n_heads, score, key, value))


def cross_attention(attention, x, memory):
    k, v = np.split(linear(attention.kv, memory), 2, axis=1)
    context = heads(linear(attention.q, x), k, v, attention.n_heads, plain)
    return linear(attention.out, context)


def feed_forward(module, x):
    return linear(module.narrow, np.maximum(0, linear(module.wide, x)))


def run_stack(model, stack, x, sublayers):
    """All layers over one sentence, x: (T, D). sublayers(i, layer): functions of x."""
    pre = model.size.norm == "pre"
    for i, layer in enumerate(stack.layers):
        for norm, function in zip(layer.norms, sublayers(i, layer), strict=True):
            x = x + function(layer_norm(norm, x)) if pre else layer_norm(norm, x + function(x))
    return layer_norm(stack.norm, x) if pre else x


def at(layer, function, otherwise):
    """`function` with `layer` as its first argument, or `otherwise` if it is None."""
    return otherwise if function is None else lambda *args: function(layer, *args)


def encode(model, ids, score=None, key=None, value=None, x=None, watch=None):
    """One source without padding, (T, D).

    x: the first layer's input instead of the embeddings. watch(layer, x) is called before
    each layer's attention is computed, with its input.
    """

    def attend(i, layer, x):
        if watch is not None:
            watch(i, x)
        changed = at(i, score, plain), at(i, key, nothing), at(i, value, nothing)
        return self_attention(layer.attention, x, *changed)

    def sublayers(i, layer):
        return (
            lambda x: attend(i, layer, x),
            lambda x: feed_forward(layer.feed_forward, x),
        )

    x = embed(model.encoder.embedding, ids) if x is None else x
    return run_stack(model, model.encoder, x, sublayers)


def decode(model, ids, memory, key=None, value=None):
    """Logits of one target prefix over one source without padding, (T, V)."""

    def sublayers(i, layer):
        changed = causal, at(i, key, nothing), at(i, value, nothing)
        return (
            lambda x: self_attention(layer.attention, x, *changed),
            lambda x: cross_attention(layer.cross, x, memory),
            lambda x: feed_forward(layer.feed_forward, x),
        )

    x = embed(model.decoder.embedding, ids)
    return run_stack(model, model.decoder, x, sublayers) @ array(model.output.weight).T
