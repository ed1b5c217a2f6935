"""Hostile files to replace a checkpoint's tensors.

Each function in HOSTILE takes the bytes of a good file and a folder. Some of the files create that
folder if a loader runs code from them.
"""

from __future__ import annotations

import io
import json
import os
import pickle  # noqa: TID251 - to see that it is refused
import struct
import zipfile

import numpy as np
import torch


class Bomb:
    def __init__(self, call, *arguments):
        self._made = call, arguments

    def __reduce__(self):
        return self._made


def mkdir(folder):
    return Bomb(os.mkdir, str(folder))


def executed(folder):
    return pickle.dumps(Bomb(exec, f"import os; os.mkdir({str(folder)!r})"), 4)


def torch_file(folder, **options):
    file = io.BytesIO()
    torch.save({"a": mkdir(folder)}, file, **options)
    return file.getvalue()


def npy(folder):
    file = io.BytesIO()
    np.save(file, np.array([mkdir(folder)], dtype=object), allow_pickle=True)
    return file.getvalue()


def npz(folder):
    file = io.BytesIO()
    np.savez(file, a=np.array([mkdir(folder)], dtype=object))
    return file.getvalue()


def zip_bomb():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("archive/data.pkl", b"\0" * 2**26)
    return file.getvalue()


def parts(model):
    """The header of a safetensors file, and what follows it."""
    n = struct.unpack("<Q", model[:8])[0]
    return json.loads(model[8 : 8 + n]), model[8 + n :]


def joined(header, rest):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + rest


def changed(model, **fields):
    """The file with fields of its second tensor's header entry changed."""
    header, rest = parts(model)
    name = sorted(name for name in header if name != "__metadata__")[1]
    header[name].update(fields)
    return joined(header, rest)


def overlapping(model):
    """The file with two tensors of one shape in the same place; all tensor bytes are kept."""
    header, rest = parts(model)
    first, second = [n for n in sorted(header) if n.endswith("norm.weight")][:2]
    header[second]["data_offsets"] = header[first]["data_offsets"]
    return joined(header, rest)


def without(model, name):
    header, rest = parts(model)
    header["__metadata__"].pop(name)
    return joined(header, rest)


def flipped(model, byte, bit):
    return model[:byte] + bytes([model[byte] ^ 1 << bit]) + model[byte + 1 :]


HOSTILE = {
    **{f"pickle {n}": lambda m, f, n=n: pickle.dumps(mkdir(f), n) for n in (0, 2, 4, 5)},
    "exec pickle": lambda m, f: executed(f),
    "torch zip": lambda m, f: torch_file(f),
    "torch legacy": lambda m, f: torch_file(f, _use_new_zipfile_serialization=False),
    "npy of objects": lambda m, f: npy(f),
    "npz of objects": lambda m, f: npz(f),
    "zip bomb": lambda m, f: zip_bomb(),
    "empty": lambda m, f: b"",
    "seven bytes": lambda m, f: m[:7],
    "cut in the header": lambda m, f: m[:100],
    "cut by one byte": lambda m, f: m[:-1],
    "cut in half": lambda m, f: m[: len(m) // 2],
    "one byte more": lambda m, f: m + b"\0",
    "twice": lambda m, f: m + m,
    "flipped bit in the size": lambda m, f: flipped(m, 1, 3),
    "flipped bit in the header": lambda m, f: flipped(m, 40, 0),
    "flipped bit in the tensors": lambda m, f: flipped(m, len(m) - 2000, 7),
    "flipped last bit": lambda m, f: flipped(m, len(m) - 1, 0),
    "header of 2^63": lambda m, f: struct.pack("<Q", 2**63) + m[8:],
    "header of 2^64 - 1": lambda m, f: b"\xff" * 8 + m[8:],
    "header longer than the file": lambda m, f: struct.pack("<Q", len(m)) + m[8:],
    "header of nothing": lambda m, f: joined(b"", m),
    "bad JSON": lambda m, f: joined(b'{"x": ', m),
    "JSON that is no object": lambda m, f: joined(b"[1, 2]", m),
    "JSON 100,000 deep": lambda m, f: joined(b'{"x":' + b"[" * 100_000, b""),
    "JSON in no UTF-8": lambda m, f: joined(b'{"\xff": {}}', b""),
    "offsets beyond the end": lambda m, f: changed(m, data_offsets=[0, 2**50]),
    "offsets backwards": lambda m, f: changed(m, data_offsets=[64, 0]),
    "negative offsets": lambda m, f: changed(m, data_offsets=[-64, 0]),
    "offsets over 64 bits": lambda m, f: changed(m, data_offsets=[2**64, 2**64 + 64]),
    "overlapping": lambda m, f: overlapping(m),
    "shape that overflows": lambda m, f: changed(m, shape=[2**62, 2**62]),
    "negative shape": lambda m, f: changed(m, shape=[-1]),
    "fraction as shape": lambda m, f: changed(m, shape=[1.5]),
    "unknown type": lambda m, f: changed(m, dtype="OBJECT"),
    "no format": lambda m, f: without(m, "format"),
    "no digest": lambda m, f: without(m, "sha256"),
    "no tensors": lambda m, f: joined({}, b""),
}
