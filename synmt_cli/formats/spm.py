"""Facts in a sentencepiece model file about its training.

The file is a protocol buffer (sentencepiece_model.proto). sentencepiece gives no access to this
part, and a few fields are not worth a protobuf library.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T", bytes, int)
TYPES = {1: "unigram", 2: "bpe", 3: "word", 4: "char"}
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_PIECES, _TRAINER, _NORMALIZER = 1, 2, 3  # fields of ModelProto
_PIECE, _PIECE_TYPE, _USER_DEFINED = 1, 3, 4  # fields of SentencePiece, and a type
_MODEL_TYPE, _BYTE_FALLBACK = 3, 35  # fields of TrainerSpec
_NAME, _ADD_DUMMY_PREFIX = 1, 3  # fields of NormalizerSpec


@dataclass(frozen=True, slots=True)
class Making:
    """type: a value of TYPES. normalization: a rule's name, "" if there is none."""

    type: str
    normalization: str
    byte_fallback: bool


def making(model: bytes) -> Making:
    """How a model was made. Raises ValueError if the bytes are not a model."""
    parts = {number: value for number, value in _fields(model) if number in (_TRAINER, _NORMALIZER)}
    trainer = dict(_fields(_checked(parts.get(_TRAINER, b""), bytes)))
    normalizer = dict(_fields(_checked(parts.get(_NORMALIZER, b""), bytes)))
    return Making(
        type=TYPES.get(_checked(trainer.get(_MODEL_TYPE, 1), int), "unknown"),
        normalization=_checked(normalizer.get(_NAME, b""), bytes).decode("utf-8", "replace"),
        byte_fallback=bool(trainer.get(_BYTE_FALLBACK, 0)),
    )


def user_defined(model: bytes) -> frozenset[str]:
    """The pieces that no text splits. Raises ValueError if the bytes are not a model."""
    pieces = (dict(_fields(_checked(value, bytes))) for n, value in _fields(model) if n == _PIECES)
    names = (one[_PIECE] for one in pieces if one.get(_PIECE_TYPE) == _USER_DEFINED)
    return frozenset(_checked(name, bytes).decode() for name in names)


def without_prefix(model: bytes) -> bytes:
    """The same model without a space before each text.

    If a protocol buffer holds a message twice, the fields of the later one count.
    """
    normalizer = bytes([_ADD_DUMMY_PREFIX << 3 | _VARINT, 0])
    return model + bytes([_NORMALIZER << 3 | _BYTES, len(normalizer)]) + normalizer


def _checked(value: bytes | int, kind: type[T]) -> T:
    if not isinstance(value, kind):
        raise ValueError(f"{type(value).__name__}, expected {kind.__name__}")
    return value


def _fields(message: bytes) -> Iterator[tuple[int, bytes | int]]:
    """Yields (field number, value) of a message. Raises ValueError, IndexError."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        number, wire = key >> 3, key & 7
        if wire == _VARINT:
            value, at = _varint(message, at)
            yield number, value
            continue
        if wire == _BYTES:
            length, at = _varint(message, at)
        elif wire in (_FIXED32, _FIXED64):
            length = 4 if wire == _FIXED32 else 8
        else:
            raise ValueError(f"wire type {wire}")
        yield number, message[at : at + length]
        at += length


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[at]
        value |= (byte & 0x7F) << shift
        shift += 7
        at += 1
        if byte < 0x80:
            return value, at
