"""A Transformer as a model of CTranslate2, whole or from the middle of its encoder on.

CTranslate2 has encoders and decoders of its own, without modifiers. Everything after the last
part that a modifier changes is plain, and fits. What comes before it is computed by torch, and
given to CTranslate2 in the place of source embeddings: a table with one row for each position
of each source. So the model is one of

    whole            no modifier: pieces in
    from embeddings  modifiers of embeddings alone: rows are the first layer's inputs
    from layer n     modifiers of attention in layer n and perhaps below: rows are the sums of
                     that attention and its input, x + Attention(x), not normalised yet

In the last case layer n keeps an attention that adds zero, for which one dimension a head is
enough. The sinusoids here differ from CTranslate2's, so they are written with the weights; with a
table they are in its rows.
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from synmt_cli.core import variants
from synmt_cli.core.model.embedding import Embedding, sinusoid
from synmt_cli.core.model.inference_linear import replace_in_layers
from synmt_cli.core.model.layers import Decoder, DecoderLayer, Encoder, EncoderLayer, Layer
from synmt_cli.core.model.transformer import Transformer
from synmt_cli.core.run import building
from synmt_cli.core.run.config import Config
from synmt_cli.core.run.exported import ctranslate2_file
from synmt_cli.core.run.exported.ctranslate2_file import ModelFile
from synmt_cli.core.text.vocabulary import BOS, EOS, UNK, Vocabularies, Vocabulary
from synmt_cli.errors import ConfigError, Unavailable

POSITIONS = 2048  # sinusoids written: the longest source and translation, in pieces
# --precision, and the type in which CTranslate2 stores such weights; None leaves them as they are.
STORED = {"fp32": None, "int8": "int8", "bf16": "bfloat16", "fp16": "float16"}


@dataclass(frozen=True, slots=True)
class CTranslate2Model:
    """A model as CTranslate2 opens it.

    files: name -> content, with model.bin only if there is no table. precision: one of STORED.
    source, target: the names of all ids. table: model.bin without its table. encoder: the layers
    that torch computes for it, as `cut_to_lower` leaves them. Both are None for a whole model.
    """

    files: Mapping[str, bytes]
    precision: str
    source: Sequence[str]
    target: Sequence[str]
    table: ModelFile | None = None
    encoder: Encoder | None = None


def library() -> Any:
    """The package. Raises Unavailable."""
    try:
        import ctranslate2
    except ImportError as error:
        raise Unavailable("no ctranslate2; pip install 'synmt-cli[ctranslate2]'") from error
    return ctranslate2


def unfit(config: Config) -> str:
    """What CTranslate2 lacks for a model, and what to do where another setting helps; or ""."""
    plan = variants.plan(config.variant)
    if plan.transitions:
        return "a decoder that writes trees, which CTranslate2 lacks"
    if plan.rereads:
        return "a decoder that reads its prefix anew for each token, which CTranslate2 lacks"
    _, decoder = building.outlines(config)
    if decoder:
        name = decoder[0].name
        advice = "; train with --set rel.stack=encoder" if name == "rel" else ""
        return f"a decoder that {name} changes, which CTranslate2 lacks{advice}"
    return ""


def of(
    model: Transformer, vocabularies: Vocabularies, precision: str, device: torch.device
) -> CTranslate2Model:
    """A trained model for CTranslate2; its encoder is taken apart. Raises Unavailable.

    precision: holds for torch's part as well. device: for torch's part.
    """
    made = spec(model, vocabularies, STORED[precision])
    has_table = bool(len(model.encoder.modifiers))
    return assembled(
        ctranslate2_file.written(made),
        json.dumps(made.config.to_dict()).encode(),
        vocabularies,
        precision,
        cut_to_lower(model.encoder).to(device) if has_table else None,
    )


def assembled(
    weights: bytes,
    config: bytes,
    vocabularies: Vocabularies,
    precision: str,
    encoder: Encoder | None,
    path: str = "model.bin",
) -> CTranslate2Model:
    """The model of a model.bin and a config.json. encoder: the layers that `cut_to_lower` leaves.

    path: names model.bin in messages. Raises DataError, ConfigError.
    """
    source, target = tokens(vocabularies.source), tokens(vocabularies.target)
    files = {"config.json": config, "target_vocabulary.json": json.dumps(target).encode()}
    if encoder is None:
        files |= {"model.bin": weights, "source_vocabulary.json": json.dumps(source).encode()}
        return CTranslate2Model(files, precision, source, target)
    if encoder.embedding.table.weight.device.type == "cpu":
        replace_in_layers(encoder.layers, precision)
    table = ctranslate2_file.cut(weights, path)
    return CTranslate2Model(files, precision, source, target, table, encoder.eval())


def cut_to_lower(encoder: Encoder) -> Encoder:
    """Takes the layers that CTranslate2 computes, and the final norm, from an encoder in place."""
    kept = nn.ModuleList([*encoder.layers][: n_lower(encoder)])
    encoder.layers = cast(Sequence[EncoderLayer], kept)
    encoder.norm = nn.Identity()
    return encoder


def n_lower(encoder: Encoder) -> int:
    """How many layers, from the bottom, have all the attention that modifiers change."""
    layers = [layer for modifier in encoder.modifiers for layer in modifier.layers]
    return max(layers, default=-1) + 1


def spec(model: Transformer, vocabularies: Vocabularies, quantization: str | None) -> Any:
    """The model as a TransformerSpec, validated and optimized. Raises Unavailable, ConfigError.

    With modifiers its table of source embeddings is one row that stands for the rows to come.
    quantization: the type in which weights are stored; None leaves them as they are.
    """
    library()
    from ctranslate2.specs import transformer_spec

    size, encoder = model.size, model.encoder
    has_table = bool(len(encoder.modifiers))
    begin = max(n_lower(encoder) - 1, 0)
    is_pre = size.norm == "pre"
    made = transformer_spec.TransformerSpec(
        transformer_spec.TransformerEncoderSpec(
            size.encoder_layers - begin, size.n_heads, pre_norm=is_pre
        ),
        transformer_spec.TransformerDecoderSpec(size.decoder_layers, size.n_heads, pre_norm=is_pre),
    )
    _encoder(made.encoder, encoder, begin)
    _decoder(made.decoder, model.decoder)
    made.decoder.projection.weight = _array(model.output.weight)
    if has_table:
        _table(made.encoder, size.d_model)
        if n_lower(encoder):
            _no_attention(made.encoder.layer[0], size.d_model, size.n_heads)
    source = ["0"] if has_table else tokens(vocabularies.source)
    target = tokens(vocabularies.target)
    for side, names in (("source", source), ("target", target)):
        if len(set(names)) < len(names):
            problem = "have one name when white space is written as code"
            raise ConfigError(f"two {side} pieces {problem}")
    made.register_source_vocabulary(source)
    made.register_target_vocabulary(target)
    made.config.unk_token, made.config.bos_token, made.config.eos_token = (
        target[id] for id in (UNK, BOS, EOS)
    )
    made.config.decoder_start_token = target[BOS]
    made.config.add_source_eos = not has_table
    made.config.layer_norm_epsilon = 1e-5  # nn.LayerNorm's
    made.validate()
    made.optimize(quantization=quantization)
    return made


def tokens(vocabulary: Vocabulary) -> list[str]:
    """The names of all ids, for one line of a file each: white space in them becomes a code."""
    names = vocabulary.names(range(vocabulary.size))
    return [re.sub(r"[\s\x00-\x1f]", lambda m: f"\\u{ord(m[0]):04x}", name) for name in names]


def _table(spec: Any, d_model: int) -> None:
    """Writes one row for all to come. It equals no other variable, or it would become an alias."""
    spec.embeddings[0].weight = np.arange(1, d_model + 1, dtype=np.float32)[None]
    spec.scale_embeddings = False
    spec.position_encodings.encodings = np.zeros((POSITIONS, d_model), np.float32)


def _no_attention(layer: Any, d_model: int, n_heads: int) -> None:
    """Gives a layer attention that adds zero, with one dimension a head; its norm stays."""
    from ctranslate2.specs import attention_spec

    made = attention_spec.MultiHeadAttentionSpec(self_attention=True, head_dim=1)
    made.layer_norm = layer.self_attention.layer_norm
    for linear, n_in, n_out in (
        (made.linear[0], d_model, 3 * n_heads),
        (made.linear[1], n_heads, d_model),
    ):
        linear.weight = np.zeros((n_out, n_in), np.float32)
        linear.bias = np.zeros(n_out, np.float32)
    layer.self_attention = made


def _encoder(spec: Any, encoder: Encoder, begin: int) -> None:
    """Writes an encoder into its spec. begin: the first layer that is written."""
    _embedding(spec, spec.embeddings[0], encoder.embedding)
    _norm(getattr(spec, "layer_norm", None), encoder.norm)
    for own, layer in zip(spec.layer, encoder.layers[begin:], strict=True):
        assert isinstance(layer, Layer)
        _layer(own, layer)


def _decoder(spec: Any, decoder: Decoder) -> None:
    _embedding(spec, spec.embeddings, decoder.embedding)
    _norm(getattr(spec, "layer_norm", None), decoder.norm)
    for own, layer in zip(spec.layer, decoder.layers, strict=True):
        assert isinstance(layer, DecoderLayer)
        _layer(own, layer)
        _norm(own.attention.layer_norm, layer.norms[1])
        for part, linear in zip(
            own.attention.linear, (layer.cross.q, layer.cross.kv, layer.cross.out), strict=True
        ):
            _linear(part, linear)


def _layer(spec: Any, layer: Layer) -> None:
    """Writes the parts that layers of both stacks have."""
    _norm(spec.self_attention.layer_norm, layer.norms[0])
    _linear(spec.self_attention.linear[0], layer.attention.qkv)
    _linear(spec.self_attention.linear[1], layer.attention.out)
    _norm(spec.ffn.layer_norm, layer.norms[-1])
    _linear(spec.ffn.linear_0, layer.feed_forward.wide)
    _linear(spec.ffn.linear_1, layer.feed_forward.narrow)


def _embedding(spec: Any, table: Any, embedding: Embedding) -> None:
    d_model = embedding.table.embedding_dim
    table.weight = _array(embedding.table.weight)
    spec.scale_embeddings = math.sqrt(d_model)
    encodings = torch.zeros(POSITIONS, d_model)
    if embedding.positions == "sinusoid":
        encodings = sinusoid(torch.arange(POSITIONS), d_model)
    spec.position_encodings.encodings = _array(encodings)


def _linear(spec: Any, linear: nn.Linear) -> None:
    spec.weight, spec.bias = _array(linear.weight), _array(linear.bias)


def _norm(spec: Any, norm: nn.Module) -> None:
    if isinstance(norm, nn.LayerNorm):  # a post-norm stack has none at its end
        spec.gamma, spec.beta = _array(norm.weight), _array(norm.bias)


def _array(tensor: Tensor) -> Any:
    """A copy in float32, since the library quantizes in place."""
    return tensor.detach().cpu().float().clone(memory_format=torch.contiguous_format).numpy()
