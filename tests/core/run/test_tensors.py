"""Tensors on disk: what comes back is what went in, or it is refused by name."""

import json
import struct

import pytest
import torch
from safetensors import SafetensorError
from torch import nn

from synmt_cli.core.run import tensors
from synmt_cli.errors import ConfigError, DataError, ReadError, Unavailable


@pytest.fixture
def whole(tmp_path):
    path = tmp_path / "w.safetensors"
    tensors.write(path, {"b": torch.arange(6.0).view(2, 3), "a": torch.tensor(3)}, {"step": "7"})
    return path


def test_what_is_read_is_what_was_written(whole):
    found, about = tensors.read(whole)
    assert torch.equal(found["b"], torch.arange(6.0).view(2, 3))
    assert found["a"].item() == 3
    assert about["step"] == "7"


def test_every_flipped_bit_is_noticed(whole):
    good = whole.read_bytes()
    for i in range(0, len(good) * 8, 37):
        bad = bytearray(good)
        bad[i // 8] ^= 1 << i % 8
        whole.write_bytes(bad)
        with pytest.raises((DataError, ConfigError), match=r"w\.safetensors"):
            tensors.read(whole)


def test_every_cut_is_noticed(whole):
    good = whole.read_bytes()
    for n in range(0, len(good), 23):
        whole.write_bytes(good[:n])
        with pytest.raises((DataError, ConfigError), match=r"w\.safetensors"):
            tensors.read(whole)


def header(size=None, **tensor):
    text = json.dumps({"x": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4], **tensor}})
    return struct.pack("<Q", size if size is not None else len(text)) + text.encode() + b"\0" * 4


@pytest.mark.parametrize(
    "content",
    [
        header(2**63),
        header(2**40),
        header(3),
        header(data_offsets=[0, 2**50]),
        header(data_offsets=[4, 0]),
        header(data_offsets=[-4, 0]),
        header(shape=[2**62, 2**62]),
        header(shape=[-1]),
        header(dtype="OBJECT"),
        header(),
        struct.pack("<Q", 6) + b"[1, 2]",
        struct.pack("<Q", 4) + b'{"x"',
        b"\x80\x04\x95cos\nsystem\n(S'touch hacked'\ntR.",
        b"PK\x03\x04" + b"\0" * 60,
        b"\x93NUMPY\x01\x00" + b"\0" * 60,
        b"",
    ],
)
def test_hostile_files_are_refused(tmp_path, content):
    path = tmp_path / "w.safetensors"
    path.write_bytes(content)
    with pytest.raises((DataError, ConfigError), match=r"w\.safetensors"):
        tensors.read(path)


@pytest.mark.parametrize(
    "error",
    [
        SafetensorError("Cannot allocate memory (os error 12)"),
        RuntimeError("unable to mmap 294992704 bytes from file: Cannot allocate memory (12)"),
        MemoryError(),
    ],
)
def test_too_little_memory_is_not_damage(whole, monkeypatch, error):
    def fail(path, follow):
        raise error

    monkeypatch.setattr(tensors, "opened", fail)
    with pytest.raises(Unavailable, match=r"cannot load .*w\.safetensors: too little memory"):
        tensors.read(whole)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ReadError, match=r"none\.safetensors"):
        tensors.read(tmp_path / "none.safetensors")


def test_another_model_is_refused(tmp_path):
    for tensor in (
        {},
        {"weight": torch.ones(3, 2)},
        {"weight": torch.ones(2, 3), "x": torch.ones(1)},
        {"weight": torch.ones(2, 3, dtype=torch.long)},
        {"weight": torch.full((2, 3), torch.inf)},
        {"weight": torch.full((2, 3), torch.nan)},
    ):
        with pytest.raises(ConfigError):
            tensors.check_fit(nn.Linear(3, 2, bias=False), tensor, tmp_path)
