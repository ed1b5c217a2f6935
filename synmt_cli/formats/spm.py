"""Facts in a sentencepiece model file about its training, and changes of its pieces.

The file is a protocol buffer (sentencepiece_model.proto). sentencepiece gives no access to this
part, and a few fields are not worth a protobuf library.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T", bytes, int)
TYPES = {1: "unigram", 2: "bpe", 3: "word", 4: "char"}
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_PIECES, _TRAINER, _NORMALIZER = 1, 2, 3  # fields of ModelProto
_PIECE, _PIECE_TYPE = 1, 3  # fields of SentencePiece
_UNKNOWN, _CONTROL, _USER_DEFINED = 2, 3, 4  # types
_SIZE = 4  # field of TrainerSpec
# For each special piece: the fields of TrainerSpec with its id and name, and its default name.
_SPECIAL = {
    "unk": (40, 45, "<unk>"),
    "bos": (41, 46, "<s>"),
    "eos": (42, 47, "</s>"),
    "pad": (43, 48, "<pad>"),
}
_MODEL_TYPE, _SPACE_AS_SUFFIX, _BYTE_FALLBACK = 3, 24, 35  # fields of TrainerSpec
_NAME, _ADD_DUMMY_PREFIX = 1, 3  # fields of NormalizerSpec


@dataclass(frozen=True, slots=True)
class Making:
    """How a model was made. type: a value of TYPES. normalization: a rule's name, or "".

    space_as_suffix: whether the mark for a space ends a piece instead of beginning one.
    dummy_prefix: whether a mark for a space is put before each text.
    """

    type: str
    normalization: str
    byte_fallback: bool
    space_as_suffix: bool
    dummy_prefix: bool


def making(model: bytes) -> Making:
    """How a model was made. Raises ValueError if the bytes are not a model."""
    parts = {_TRAINER: b"", _NORMALIZER: b""}
    for number, value in _fields(model):
        if number in parts:
            parts[number] += _checked(value, bytes)
    trainer, normalizer = (dict(_fields(part)) for part in parts.values())
    return Making(
        type=TYPES.get(_checked(trainer.get(_MODEL_TYPE, 1), int), "unknown"),
        normalization=_checked(normalizer.get(_NAME, b""), bytes).decode("utf-8", "replace"),
        byte_fallback=bool(trainer.get(_BYTE_FALLBACK, 0)),
        space_as_suffix=bool(trainer.get(_SPACE_AS_SUFFIX, 0)),
        dummy_prefix=bool(normalizer.get(_ADD_DUMMY_PREFIX, 1)),
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
    return model + _encoded(_NORMALIZER, _encoded(_ADD_DUMMY_PREFIX, 0))


def with_special_pieces_first(model: bytes, order: Iterable[str]) -> bytes:
    """The same model with unk, pad, bos and eos at its beginning, in this order.

    Missing ones are added. Pieces keep their scores and their order, so text is split as
    before, except that text no longer has a piece with the name of a special one.
    Raises ValueError if the bytes are not a model with one unknown piece.
    """
    fields = [(number, _checked(value, bytes)) for number, value in _fields(model)]
    trainer = b"".join(value for number, value in fields if number == _TRAINER)
    pieces = [value for number, value in fields if number == _PIECES]
    stated, known = dict(_fields(trainer)), [dict(_fields(piece)) for piece in pieces]
    (unknown,) = (i for i, piece in enumerate(known) if piece.get(_PIECE_TYPE) == _UNKNOWN)
    where = {_checked(piece[_PIECE], bytes): i for i, piece in enumerate(known)}
    special, moved = [], set()
    for id, role in enumerate(order):
        of_id, of_name, usual = _SPECIAL[role]
        name = _checked(stated.get(of_name, b""), bytes) or usual.encode()
        place = unknown if role == "unk" else where.get(name)
        piece = _encoded(_PIECE, name) if place is None else pieces[place]
        special.append(piece + _encoded(_PIECE_TYPE, _UNKNOWN if role == "unk" else _CONTROL))
        moved.add(place)
        trainer += _encoded(of_id, id)
    pieces = special + [piece for i, piece in enumerate(pieces) if i not in moved]
    trainer += _encoded(_SIZE, len(pieces))
    others = (_encoded(number, value) for number, value in fields if number > _TRAINER)
    return b"".join(
        (*(_encoded(_PIECES, piece) for piece in pieces), _encoded(_TRAINER, trainer), *others)
    )


def _encoded(number: int, value: bytes | int) -> bytes:
    """One field of a message. Of two fields with the same number, the later counts."""
    if isinstance(value, int):
        return _as_varint(number << 3 | _VARINT) + _as_varint(value)
    return _as_varint(number << 3 | _BYTES) + _as_varint(len(value)) + value


def _as_varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*encoded, value])


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
