"""The file `model.bin` of CTranslate2, as bytes in which one table can be exchanged.

    u32 version; name; u32 revision
    u32 number of variables, each: name; u8 rank; u32 sizes; u8 type; u32 bytes; the bytes
    u32 number of aliases, each: name; name of the variable it stands for

Integers are little-endian, a name is u16 length, UTF-8 and a NUL, which the length counts. This
is binary version 6, the one in `ctranslate2.specs.model_spec`.
"""

import struct
from dataclasses import dataclass
from typing import Any

import numpy as np

from synmt_cli.errors import ConfigError, DataError

VERSION = 6
TYPES = ("float32", "int8", "int16", "int32", "float16", "bfloat16")
TABLE = "encoder/embeddings_0/weight"  # the source embeddings
SCALE = f"{TABLE}_scale"


@dataclass(frozen=True, slots=True)
class ModelFile:
    """A model.bin without its table of source embeddings.

    head: the bytes before the number of variables. others, n_others: the other variables and how
    many. aliases: the rest. type: the type of the table's numbers, one of TYPES.
    """

    head: bytes
    others: bytes
    n_others: int
    aliases: bytes
    type: str

    def with_table(self, table: np.ndarray) -> bytes:
        """The whole file with these source embeddings, (n, D) float32.

        In 8 bits each row has its own scale, as CTranslate2 itself quantizes.
        """
        variables = _table_variables(table, self.type)
        n = struct.pack("<I", self.n_others + len(variables))
        return b"".join((self.head, n, *variables, self.others, self.aliases))


def _table_variables(table: np.ndarray, kind: str) -> list[bytes]:
    if kind == "int8":
        largest = np.abs(table).max(1, initial=0)
        scale = np.where(largest > 0, np.float32(127) / np.maximum(largest, 1e-30), np.float32(1))
        scale = scale.astype(np.float32)
        quantized = np.rint(table * scale[:, None]).astype(np.int8)
        return [
            _variable(TABLE, quantized.shape, "int8", quantized.tobytes()),
            _variable(SCALE, scale.shape, "float32", scale.tobytes()),
        ]
    if kind == "bfloat16":
        import torch

        raw = torch.from_numpy(table).to(torch.bfloat16).view(torch.int16).numpy().tobytes()
    else:
        raw = table.astype(kind, copy=False).tobytes()
    return [_variable(TABLE, table.shape, kind, raw)]


def _variable(name: str, shape: tuple[int, ...], kind: str, raw: bytes) -> bytes:
    sizes = struct.pack(f"<B{len(shape)}I", len(shape), *shape)
    return _name(name) + sizes + struct.pack("<BI", TYPES.index(kind), len(raw)) + raw


def _name(name: str) -> bytes:
    encoded = name.encode() + b"\0"
    return struct.pack("<H", len(encoded)) + encoded


def written(spec: Any) -> bytes:
    """The model.bin of a model_spec.ModelSpec that was validated and optimized."""
    every = spec.variables(ordered=True)
    aliases = [(name, value) for name, value in every if isinstance(value, str)]
    variables = [
        _variable(name, tuple(value.shape), value.dtype, value.to_bytes())
        for name, value in every
        if not isinstance(value, str)
    ]
    head = struct.pack("<I", VERSION) + _name(spec.name) + struct.pack("<I", spec.revision)
    ends = [_name(alias) + _name(name) for alias, name in aliases]
    counts = struct.pack("<I", len(variables)), struct.pack("<I", len(ends))
    return b"".join((head, counts[0], *variables, counts[1], *ends))


def cut(file: bytes, path: str) -> ModelFile:
    """The parts of a model.bin. Raises DataError for damage, ConfigError for another version."""
    try:
        return _cut(file, path)
    except (struct.error, UnicodeDecodeError, IndexError, KeyError):
        raise DataError(path, None, "not a whole model.bin of CTranslate2") from None


def _cut(file: bytes, path: str) -> ModelFile:
    (version,) = struct.unpack_from("<I", file)
    if version != VERSION:
        raise ConfigError(f"{path}: binary version {version}, expected {VERSION}")
    _, place = _read_name(file, 4)
    place += 4  # the revision
    (n,) = struct.unpack_from("<I", file, place)
    head, begin = file[:place], place + 4
    spans, end = _spans(file, begin, n)
    if TABLE not in spans:
        raise ConfigError(f"{path}: no variable {TABLE}")
    tables = [spans.pop(name) for name in (TABLE, SCALE) if name in spans]
    others = b"".join(file[a:b] for a, b, _ in spans.values())
    return ModelFile(head, others, len(spans), file[end:], TYPES[tables[0][2]])


def _spans(file: bytes, place: int, n: int) -> tuple[dict[str, tuple[int, int, int]], int]:
    """The begin, end and type of each of n variables by name, and where the last one ends."""
    spans = {}
    for _ in range(n):
        begin = place
        name, place = _read_name(file, place)
        (rank,) = struct.unpack_from("<B", file, place)
        kind, size = struct.unpack_from("<BI", file, place + 1 + 4 * rank)
        place += 1 + 4 * rank + 5 + size
        if place > len(file):
            raise IndexError
        spans[name] = (begin, place, kind)
    return spans, place


def _read_name(file: bytes, place: int) -> tuple[str, int]:
    (length,) = struct.unpack_from("<H", file, place)
    end = place + 2 + length
    if end > len(file):
        raise IndexError
    return file[place + 2 : end - 1].decode(), end
