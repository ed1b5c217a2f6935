"""Models by their first bytes, and the header of a safetensors file without any library.

    weights        safetensors: a length of 8 bytes, then a JSON object
    sentencepiece  a protocol buffer that begins with a piece: its text, its score
    udpipe         a UDPipe 1 model: its name after its length, a few bytes, blocks

A block of a UDPipe model has 12 bytes about it, which are the length that it unpacks to, its
packed length and a sum of both, then 5 bytes for LZMA, then the packed bytes. Between blocks
there are at most GAP bytes that say what the next one is.

https://github.com/huggingface/safetensors#format: little-endian header length, header, data.
"""

import math
import os
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import BinaryIO, Literal

import orjson

from synmt_cli.errors import DataError

ModelKind = Literal["weights", "sentencepiece", "udpipe"]

HEAD = 32  # bytes that `model_kind` needs
HEADER_LIMIT = 100_000_000  # bytes, as the library has it
UNPACKED_LIMIT = 2 * 2**30  # bytes of a UDPipe model; the largest known ones need 0.5 GiB
GAP = 32  # bytes
_LENGTH = 8  # bytes
_UDPIPE = b"morphodita_parsito"
_BLOCK = struct.Struct("<III5x")
_SIZES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U8": 1}


def model_kind(head: bytes) -> ModelKind | None:
    """The kind of a file with this beginning; None for streams of text and anything else."""
    if head[1 : 1 + len(_UDPIPE)] == _UDPIPE and head[0] == len(_UDPIPE):
        return "udpipe"
    if head[_LENGTH : _LENGTH + 1] == b"{" and head[5:_LENGTH] == b"\0\0\0":
        return "weights"
    is_message = len(head) > 3 and head[0] == head[2] == 0x0A and head[1] == head[3] + 9
    return "sentencepiece" if is_message and b"\0" in head else None


def unpacked_size(file: BinaryIO, name: str) -> int:
    """How many bytes a UDPipe model unpacks to, by its blocks alone, which are not unpacked.

    The library aborts the process at some of the files that are refused here. Raises DataError.
    """
    size = os.fstat(file.fileno()).st_size
    if model_kind(file.read(HEAD)) != "udpipe":
        raise DataError(name, None, "not a UDPipe 1 model")
    at, unpacked = 1 + len(_UDPIPE), 0
    while at < size:
        file.seek(at)
        n_unpacked, length = _block(file.read(GAP + _BLOCK.size))
        if not length and size - at <= GAP:  # what follows the last block
            break
        if not length or length > size - at:
            raise DataError(name, None, f"damaged: no block of a UDPipe model after byte {at:,}")
        at += length
        unpacked += n_unpacked
    if unpacked > UNPACKED_LIMIT:
        problem = f"it would unpack to {unpacked:,} bytes, at most {UNPACKED_LIMIT:,} are possible"
        raise DataError(name, None, problem)
    return unpacked


def _block(begin: bytes) -> tuple[int, int]:
    """(unpacked bytes, bytes up to its end) of the block after a gap; (0, 0) if there is none."""
    for gap in range(len(begin) - _BLOCK.size + 1):
        unpacked, packed, total = _BLOCK.unpack_from(begin, gap)
        if (unpacked * 19991 + packed * 199999991 + 1234567890) % 2**32 == total:
            return unpacked, gap + _BLOCK.size + packed
    return 0, 0


@dataclass(frozen=True, slots=True)
class Header:
    """The header of a safetensors file. about: texts. shapes, types: of each tensor."""

    about: Mapping[str, str]
    shapes: Mapping[str, tuple[int, ...]]
    types: Mapping[str, str]

    @property
    def n_values(self) -> int:
        """How many numbers all tensors have together."""
        return sum(map(math.prod, self.shapes.values()))


def read_header(file: BinaryIO, name: str, size: int) -> Header:
    """The header alone. size: that of the file, in bytes. Raises DataError if they disagree."""
    n = int.from_bytes(file.read(_LENGTH), "little")
    if n > min(HEADER_LIMIT, size - _LENGTH):
        raise _damaged(name, f"its header would have {n:,} of {size:,} bytes")
    try:
        tensors = orjson.loads(file.read(n))
        about = tensors.pop("__metadata__", {})
        shapes = {key: tuple(value["shape"]) for key, value in tensors.items()}
        types = {key: value["dtype"] for key, value in tensors.items()}
        end = max((value["data_offsets"][1] for value in tensors.values()), default=0)
        n_bytes = sum(math.prod(shapes[key]) * _SIZES[types[key]] for key in tensors)
        right = end == n_bytes and all(isinstance(text, str) for text in about.values())
    except (orjson.JSONDecodeError, AttributeError, KeyError, TypeError, IndexError):
        raise _damaged(name, "its header is not one") from None
    if not right:
        raise _damaged(name, "its header contradicts itself")
    if size != _LENGTH + n + n_bytes:
        raise _damaged(name, f"{size:,} bytes, but its header promises {_LENGTH + n + n_bytes:,}")
    return Header(about, shapes, types)


def _damaged(name: str, problem: str) -> DataError:
    return DataError(name, None, f"not a whole safetensors file: {problem}")
