"""A trained model in the format of CTranslate2, which translates plain Transformers quickly.

CTranslate2 has encoders and decoders of its own, so only models without modifiers fit. Their
sinusoids, which differ from CTranslate2's, are written with the weights.
"""

import math
import re
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from synmt_cli.core.model.embedding import Embedding, sinusoid
from synmt_cli.core.model.layers import Decoder, DecoderLayer, Encoder, Layer
from synmt_cli.core.model.transformer import Transformer
from synmt_cli.core.run.building import load
from synmt_cli.core.run.directory import Run
from synmt_cli.core.text.vocabulary import Vocabulary
from synmt_cli.errors import ConfigError, Unavailable, printable
from synmt_cli.io.writing import atomic_folder

POSITIONS = 2048  # sinusoids written: the longest source and translation, in pieces


def export(run: Run, folder: Path, checkpoint: str, quantization: str | None) -> None:
    """Writes the folder, whole or not at all. Raises SynmtError.

    quantization: the type of CTranslate2 in which weights are stored, such as int8; None leaves
    them as they are. Raises ConfigError for a model that CTranslate2 cannot hold, Unavailable
    without the package.
    """
    try:
        from ctranslate2.specs import transformer_spec
    except ImportError as error:
        raise Unavailable("no ctranslate2; pip install 'synmt-cli[ctranslate2]'") from error
    model, vocabularies = load(run, checkpoint), run.vocabularies()
    if reason := _unfit(model):
        raise ConfigError(f"{printable(str(run.folder))}: {reason}, which CTranslate2 lacks")
    size = model.size
    layers = (size.encoder_layers, size.decoder_layers)
    spec = transformer_spec.TransformerSpec.from_config(
        layers, size.n_heads, pre_norm=size.norm == "pre"
    )
    _encoder(spec.encoder, model.encoder)
    _decoder(spec.decoder, model.decoder)
    spec.decoder.projection.weight = _array(model.output.weight)
    spec.register_source_vocabulary(_tokens(vocabularies.source))
    spec.register_target_vocabulary(_tokens(vocabularies.target))
    spec.config.add_source_eos = True
    spec.config.layer_norm_epsilon = 1e-5  # nn.LayerNorm's
    with atomic_folder(folder) as beside:
        Run(beside).write_vocabularies(vocabularies)
        spec.validate()
        spec.optimize(quantization=quantization)
        spec.save(str(beside))


def _unfit(model: Transformer) -> str:
    """The part of a model that CTranslate2 lacks, or ""."""
    if model.rereads or model.grammar is not None:
        return "a decoder that writes trees or reads its prefix anew"
    if len(model.encoder.modifiers) or len(model.decoder.modifiers):
        return "a variant that changes the Transformer"
    return ""


def _tokens(vocabulary: Vocabulary) -> list[str]:
    """The names of all ids, one a line of a file: white space in them is written as code."""
    names = vocabulary.names(range(vocabulary.size))
    return [re.sub(r"[\s\x00-\x1f]", lambda m: f"\\u{ord(m[0]):04x}", name) for name in names]


def _encoder(spec: Any, encoder: Encoder) -> None:
    _embedding(spec, spec.embeddings[0], encoder.embedding)
    _norm(getattr(spec, "layer_norm", None), encoder.norm)
    for own, layer in zip(spec.layer, encoder.layers, strict=True):
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
    """The parts that layers of both stacks have."""
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
    return tensor.detach().cpu().float().contiguous().numpy()
