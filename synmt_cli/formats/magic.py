"""Models by their first bytes, and the header of a safetensors file without any library.

    weights        safetensors: a length of 8 bytes, then a JSON object
    sentencepiece  a protocol buffer that begins with a piece: its text, its score or type
    udpipe         a UDPipe 1 model: the name of its format after its length (udpipe_model.py)

https://github.com/huggingface/safetensors#format: little-endian header length, header, data.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import BinaryIO, Literal

import orjson

from synmt_cli.errors import DataError

ModelKind = Literal["weights", "sentencepiece", "udpipe"]

HEAD = 32  # bytes that `model_kind` needs
HEADER_LIMIT = 100_000_000  # bytes, as the library has it
_LENGTH = 8  # bytes
UDPIPE = b"morphodita_parsito"
_LINE_FEED = 0x0A  # also begins a piece, and its text: field 1 of a message
_SCORE, _TYPE = b"\x15", b"\x18"  # fields 2 and 3 of a piece
_TYPES = {  # bytes of a number: names
    8: ("F64", "I64", "U64"),
    4: ("F32", "I32", "U32"),
    2: ("F16", "BF16", "I16", "U16"),
    1: ("F8_E4M3", "F8_E5M2", "I8", "U8", "BOOL"),
}
_SIZES = {name: size for size, names in _TYPES.items() for name in names}


def model_kind(head: bytes) -> ModelKind | None:
    """The kind of a file with this beginning; None for streams of text and anything else."""
    if head[1 : 1 + len(UDPIPE)] == UDPIPE and head[0] == len(UDPIPE):
        return "udpipe"
    if head[_LENGTH : _LENGTH + 1] == b"{" and head[5:_LENGTH] == b"\0\0\0":
        return "weights"
    return "sentencepiece" if _begins_with_piece(head) else None


def _begins_with_piece(head: bytes) -> bool:
    """Whether a file begins with a piece of sentencepiece, and goes on with another.

    A piece is its length, its text after the length of that, its score, and at times its type once
    or twice. Text may begin with empty lines, too, but has no score or type in the place for it.
    """
    if len(head) < 4 or head[0] != _LINE_FEED or head[2] != _LINE_FEED:
        return False
    end, end_of_text = 2 + head[1], 4 + head[3]
    begins_field = head[end_of_text:end].startswith((_SCORE, _TYPE))
    return begins_field and head[end : end + 1] in (b"\n", b"")


@dataclass(frozen=True, slots=True)
class Header:
    """The header of a safetensors file. about: its metadata. shapes, types: by tensor name."""

    about: Mapping[str, str]
    shapes: Mapping[str, tuple[int, ...]]
    types: Mapping[str, str]

    @property
    def n_values(self) -> int:
        """How many numbers all tensors have together."""
        return sum(map(math.prod, self.shapes.values()))


def read_header(file: BinaryIO, name: str, size: int) -> Header:
    """The header alone. size: bytes of the whole file. Raises DataError if they disagree."""
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
