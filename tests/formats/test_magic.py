"""Models are known by their first bytes, and safetensors headers are read without the library."""

from __future__ import annotations

import io
import itertools
import json

import pytest
import torch
from safetensors.torch import save

from synmt_cli.errors import DataError
from synmt_cli.formats.magic import HEAD, Header, model_kind, read_header

TENSORS = {"a": torch.zeros(2, 3), "b": torch.ones(4, dtype=torch.bfloat16)}


def read(data, size=None) -> Header:
    return read_header(io.BytesIO(data), "f", len(data) if size is None else size)


def made(fields, data=b"", length=None):
    text = fields if isinstance(fields, bytes) else json.dumps(fields).encode()
    return (len(text) if length is None else length).to_bytes(8, "little") + text + data


def test_the_header_is_what_the_library_wrote():
    found = read(save(TENSORS, {"vocabulary": "x"}))
    assert found.about == {"vocabulary": "x"}
    assert found.shapes == {"a": (2, 3), "b": (4,)}
    assert found.types == {"a": "F32", "b": "BF16"}
    assert found.n_values == 10
    assert read(save({})).n_values == 0
    kinds = (torch.bool, torch.uint16, torch.uint32, torch.uint64, torch.float8_e4m3fn)
    for kind in (*kinds, torch.float8_e5m2, torch.float64, torch.int16):
        assert read(save({"a": torch.zeros(3, dtype=kind)})).shapes == {"a": (3,)}


F32 = {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "its header would have 0 of 0 bytes"),
        (made({"a": F32}, b"abcd", length=2**63), "its header would have 9,223"),
        (made({"a": F32}, b"abcd", length=10**6), "its header would have 1,000,000"),
        (made(b"{]"), "its header is not one"),
        (made(b"[1]"), "its header is not one"),
        (made({"a": 1}), "its header is not one"),
        (made({"a": F32 | {"dtype": "X"}}, b"abcd"), "its header is not one"),
        (made({"a": F32 | {"shape": ["x"]}}, b"abcd"), "its header"),
        (made({"a": F32 | {"shape": [2**62]}}, b"abcd"), "contradicts itself"),
        (made({"a": F32 | {"data_offsets": [0, 9]}}, b"abcd"), "contradicts itself"),
        (made({"a": F32, "__metadata__": {"x": 1}}, b"abcd"), "contradicts itself"),
        (made({"a": F32}, b"abc"), "but its header promises"),
        (save(TENSORS)[:-1], "but its header promises"),
        (save(TENSORS) + b"x", "but its header promises"),
    ],
)
def test_what_is_no_whole_file_is_refused(data, problem):
    with pytest.raises(DataError, match=r"^f: not a whole safetensors file: ") as caught:
        read(data)
    assert problem in str(caught.value)


def test_models_are_known_by_their_first_bytes():
    assert model_kind(save(TENSORS)) == "weights"
    assert model_kind(b"\x12morphodita_parsito\x03\x7f\x7f\x01") == "udpipe"
    assert model_kind(b"\n\x0e\n\x05<unk>\x15\0\0\0\0\x18\x02") == "sentencepiece"
    converted, untyped = (
        b"\n\x10\n\x05<unk>\x15\0\0\0\0\x18\2\x18\2\n",
        b"\n\t\n\2en\x15dB.\xc0\n\t",
    )
    assert model_kind(converted) == model_kind(untyped) == "sentencepiece"
    for text in (b"", b"\n", b"\n\n\n\n\n", b'{"src":"a"}', b"# text = x\n", b"The dog", b"\x12x"):
        assert model_kind(text) is None


@pytest.mark.parametrize("line", [b"", b"\r", b"\t", b" ", b"a", "ä▁".encode(), b"\0"])
def test_no_text_is_taken_for_a_model(line):
    """Text may begin as a piece does: a line feed, a character, a line feed, a character."""
    follows = (line + b"\n") * 32
    for first, second in itertools.product(range(256), repeat=2):
        assert model_kind((b"\n%c\n%c" % (first, second) + follows)[:HEAD]) is None
