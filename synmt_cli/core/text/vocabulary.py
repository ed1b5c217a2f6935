"""A subword vocabulary: a sentencepiece model with fixed special ids.

    0 <unk>   1 <pad>   2 <s>   3 </s>

No text ever becomes a control id: a text `<s>` is split like any other, and where it would come
back whole, as a run of unknown characters, it is <unk>.

Symbols are control pieces after these: task tags, brackets, whatever a tool puts among the
pieces. `ids` knows them by name, but no text has a piece of that name: where a run of unknown
characters spells one, `pieces` and `encode` give its characters one by one. Texts made of
pieces or ids leave symbols out.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any

from synmt_cli.errors import ConfigError, Unavailable, quoted, reason
from synmt_cli.formats.spm import (
    Making,
    making,
    user_defined,
    with_special_pieces_first,
    without_prefix,
)
from synmt_cli.io import regular_files

UNK, PAD, BOS, EOS = 0, 1, 2, 3
SPECIAL_IDS = {"unk": UNK, "pad": PAD, "bos": BOS, "eos": EOS}
MODEL_LIMIT = 256 * 2**20  # bytes of a model; those of 256,000 pieces have about 5 MiB
SPACE = "▁"  # sentencepiece's mark for a space
MARKED = re.compile(f"{SPACE}[^{SPACE}]*|[^{SPACE}]+")  # a word, as pieces have it


def sentencepiece() -> Any:
    """The library, silent on stderr."""
    import sentencepiece as library

    library.SetMinLogLevel(3)
    return library


class Vocabulary:
    """Text <-> pieces <-> ids. Immutable. Raises Unavailable, ConfigError.

    name: the model file, for messages. fingerprint: as `fingerprint_of` the file. making: the
    type and normalization of the model.
    """

    def __init__(self, model: bytes, name: str = "<bytes>") -> None:
        self._model = model
        self.name = name
        self._processor = _loaded(model, name)
        self.making = _making(model, name)
        _check_ids(self._processor, name)
        self.fingerprint = fingerprint_of(model)

    @classmethod
    def load(cls, path: str) -> Vocabulary:
        """Reads a model file. Raises Unavailable, and ConfigError for one that does not fit."""
        return cls(read(path), path)

    def to_bytes(self) -> bytes:
        """The model file."""
        return self._model

    @property
    def size(self) -> int:
        """The number of ids, special ones included."""
        return int(self._processor.get_piece_size())

    def encode(self, text: str) -> tuple[list[str], list[tuple[int, int]]]:
        """The pieces of a text and [begin, end) of each in its characters.

        A piece that begins a word starts at the space before it. A piece that stands for no
        character (the mark before the text) is empty. The bytes of one character, and the pieces of
        what it is normalized to, share its place.
        """
        pieces = self.pieces(text)
        if "".join(pieces) == SPACE + text.replace(" ", SPACE):  # nothing is normalized: count
            ends = [end - 1 for end in accumulate(map(len, pieces))]
            return pieces, list(zip([0, *ends[:-1]], ends, strict=True))
        return pieces, [*self._places(text, pieces)]

    def _places(self, text: str, pieces: Sequence[str]) -> Iterator[tuple[int, int]]:
        """Yields [begin, end) of each piece in the text.

        The pieces spell the normalized text, and the library says where each of its characters
        comes from. All characters that come from the same place share it.
        """
        normalized, starts = self._processor.normalize(text, with_offsets=True)
        ends = starts[1:]
        for i in reversed(range(len(ends) - 1)):
            if starts[i] == starts[i + 1]:
                ends[i] = ends[i + 1]
        if ends and self.making.dummy_prefix:
            ends[0] = starts[0]  # the mark before the text stands for nothing
        at = n_left = 0  # the next character, and how many of its bytes are still to come
        for piece in pieces:
            if piece not in self._bytes:
                yield starts[at], ends[at + len(piece) - 1]
                at += len(piece)
                continue
            yield starts[at], ends[at]
            n_left = (n_left or len(normalized[at].encode())) - 1
            at += not n_left

    def _apart(self, pieces: list[str]) -> list[str]:
        """The pieces, in a vocabulary of words with each unknown word as a piece of its own.

        The library makes one piece of neighbouring unknown words.
        """
        if self.making.type != "word":
            return pieces
        known = self._ids
        return [
            part
            for piece in pieces
            for part in ([piece] if piece in known else MARKED.findall(piece))
        ]

    def pieces(self, text: str) -> list[str]:
        """The pieces of a text. None has the name of a symbol."""
        return self.without_symbols(self._apart(self._processor.encode(text, out_type=str)))

    def inner_pieces(self, text: str) -> list[str]:
        """The pieces of a text that follows another without a space: no mark begins it."""
        return self.without_symbols(self._apart(self._inner_processor.encode(text, out_type=str)))

    def without_symbols(self, pieces: list[str]) -> list[str]:
        """The pieces, with those that have a symbol's name replaced by their characters."""
        symbols = self._symbols
        if symbols.isdisjoint(pieces):
            return pieces
        return [part for piece in pieces for part in (piece if piece in symbols else [piece])]

    def normalize(self, text: str) -> str:
        """The text that is split into pieces: normalized, with SPACE for spaces."""
        normalized: str = self._processor.normalize(text)
        return normalized

    def best(self, text: str, n: int) -> list[list[str]]:
        """The n best segmentations of a text by a unigram model, or as many as there are."""
        if not self.normalize(text):
            return []
        found: list[list[str]] = self._processor.nbest_encode(text, nbest_size=n, out_type=str)
        return found

    def scores(self) -> dict[str, float]:
        """The score of each piece that text is split into; bytes and unused pieces left out."""
        ids = [id for piece, id in self._ids.items() if piece not in self._symbols]
        left_out = (self._processor.is_byte, self._processor.is_unused)
        masks = zip(ids, *(kind(ids) for kind in left_out), strict=True)
        kept = [id for id, *out in masks if not any(out)]
        return dict(zip(self.names(kept), self._processor.get_score(kept), strict=True))

    def user_symbols(self) -> frozenset[str]:
        """Pieces that no text splits (vocab train --user-symbols)."""
        return user_defined(self._model)

    def has(self, piece: str) -> bool:
        """Whether a piece or symbol has this name."""
        return piece in self._ids

    def has_all(self, pieces: Iterable[str]) -> bool:
        """Whether none of these pieces is read as UNK."""
        return self._ids.keys() >= set(pieces)

    def unknown(self, text: str) -> list[str]:
        """The pieces for characters without one: their bytes, or the text if bytes have none."""
        if not self.making.byte_fallback:
            return [text]
        return [f"<0x{byte:02X}>" for byte in text.encode()]

    def ids(self, pieces: Sequence[str]) -> list[int]:
        """The id of each piece, UNK for any other string. Symbols are the only control pieces."""
        get = self._ids.get
        return [get(piece, UNK) for piece in pieces]

    def source_ids(self, pieces: Sequence[str] | None) -> list[int]:
        """A source as encoders read it: the id of each piece, then EOS. None: a source without."""
        return [*self.ids(pieces or ()), EOS]

    def generated(self) -> Iterator[tuple[int, str]]:
        """Yields the id and name of each piece and symbol: no special or other control ids."""
        return ((id, piece) for piece, id in self._ids.items())

    def names(self, ids: Sequence[int]) -> list[str]:
        """The piece of each id. Raises IndexError for one that is not in the vocabulary."""
        names: list[str] = self._processor.id_to_piece(list(ids))
        return names

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids, control ids left out, UNK as ` ⁇ `. Never holds a line feed.

        Raises IndexError for an id that is not in the vocabulary.
        """
        text: str = self._processor.decode(list(ids))
        if SPACE in text:  # sentencepiece leaves it where whole words are spelled in bytes
            text = text.replace(SPACE, " ").lstrip(" ")
        return text.replace("\n", " ")  # byte pieces can spell one

    def join(self, pieces: Sequence[str]) -> str:
        """The text of pieces; unknown ones stand for themselves. Never holds a line feed."""
        shown = (piece for piece in pieces if piece not in self._symbols)
        text = b"".join(self._bytes.get(piece) or piece.encode() for piece in shown)
        return text.decode("utf-8", "replace").replace(SPACE, " ").replace("\n", " ").lstrip(" ")

    def refuse_missing(self, symbols: Iterable[str], how: str) -> None:
        """Raises ConfigError at the first of these that is not a symbol here.

        how: the command that writes the symbols that are needed, for the message.
        """
        for symbol in symbols:
            if symbol not in self._symbols:
                raise ConfigError(
                    f"{self.name} has no symbol {quoted(symbol)}; {how} writes "
                    "those needed, and synmt vocab train --symbols FILE takes them"
                )

    @cached_property
    def _inner_processor(self) -> Any:
        return _loaded(without_prefix(self._model), self.name)

    @cached_property
    def symbols(self) -> tuple[str, ...]:
        """The control pieces by id, without the single characters that some tools add.

        Text has those, too.
        """
        ids = list(range(EOS + 1, self.size))
        is_control = self._processor.is_control(ids)
        names = zip(self.names(ids), is_control, strict=True)
        return tuple(name for name, is_so in names if is_so and not symbol_problem(name))

    @cached_property
    def _symbols(self) -> frozenset[str]:
        return frozenset(self.symbols)

    @cached_property
    def _ids(self) -> dict[str, int]:
        processor = self._processor
        return {
            piece: id
            for id, piece in enumerate(processor.id_to_piece(list(range(self.size))))
            if piece in self._symbols or not (processor.is_control(id) or processor.is_unknown(id))
        }

    @cached_property
    def _bytes(self) -> dict[str, bytes]:
        """The pieces of byte fallback, `<0x00>` to `<0xFF>`; empty without it."""
        if not self.making.byte_fallback:
            return {}
        return {f"<0x{value:02X}>": bytes([value]) for value in range(256)}


def fingerprint_of(model: bytes) -> str:
    """By what records name a model: the first 16 hexadecimal digits of its SHA-256."""
    return hashlib.sha256(model).hexdigest()[:16]


def read(path: str) -> bytes:
    """The bytes of a model file. Raises Unavailable."""
    try:
        with regular_files.named(path, MODEL_LIMIT) as file:
            return file.read()
    except (OSError, ValueError) as error:
        problem = f"cannot read the vocabulary {path}: {reason(error)}"
        raise Unavailable(f"{problem} (synmt vocab train makes one)") from error


def with_special_ids(model: bytes, name: str) -> bytes:
    """The same sentencepiece model with our special ids; the same bytes if it has them.

    name: its file. Raises Unavailable for bytes that are not a model, and ConfigError for a model
    whose pieces end with spaces.
    """
    processor = _loaded(model, name)
    _making(model, name)
    if _special_ids(processor) == SPECIAL_IDS:
        return model
    try:
        return with_special_pieces_first(model, SPECIAL_IDS)
    except (ValueError, IndexError) as error:
        raise _no_model(name) from error


def symbol_problem(symbol: str) -> str | None:
    """Why a text cannot be the name of a symbol; None if it can be.

    >>> symbol_problem("<(nsubj>"), symbol_problem(")")
    (None, 'it is a single character, which text has')
    """
    if len(symbol) < 2:
        return "it is a single character, which text has" if symbol else "it is empty"
    if not symbol.isprintable() or " " in symbol or SPACE in symbol:
        return "it has a space or a character that does not print"
    return None


def _making(model: bytes, name: str) -> Making:
    """How a model was made. Raises Unavailable, and ConfigError for pieces that end with spaces.

    The pieces of words, transitions and the text of pieces all need spaces at the beginning.
    """
    try:
        found = making(model)
    except (ValueError, IndexError) as error:
        raise _no_model(name) from error
    if found.space_as_suffix:
        raise ConfigError(
            f"{name} was trained with --treat_whitespace_as_suffix; train it without that"
        )
    return found


def _check_ids(processor: Any, name: str) -> None:
    """Raises ConfigError for special ids other than ours."""
    ids = _special_ids(processor)
    if ids != SPECIAL_IDS:
        has, needed = (
            ", ".join(f"{name} {id}" for name, id in some.items()) for some in (ids, SPECIAL_IDS)
        )
        raise ConfigError(f"{name} has {has}; needed are {needed}: see synmt vocab convert")


def _loaded(model: bytes, name: str) -> Any:
    try:
        processor = sentencepiece().SentencePieceProcessor(model_proto=model)
        processor.id_to_piece(list(range(processor.get_piece_size())))  # fails unless they are text
    except (RuntimeError, ValueError):  # UnicodeDecodeError is one
        processor = None
    if processor is None or not processor.get_piece_size():
        raise _no_model(name)
    return processor


def _special_ids(processor: Any) -> dict[str, int]:
    return {name: getattr(processor, f"{name}_id")() for name in SPECIAL_IDS}


def _no_model(name: str) -> Unavailable:
    return Unavailable(
        f"{name} is not a sentencepiece model, or it is damaged (synmt vocab train makes one)"
    )


@dataclass(frozen=True, slots=True)
class Vocabularies:
    """The subword vocabularies of both sides: the same object if they share one."""

    source: Vocabulary
    target: Vocabulary

    @property
    def fingerprint(self) -> str:
        """The `vocab` of their records: one fingerprint, or SOURCE+TARGET."""
        if self.source.fingerprint == self.target.fingerprint:
            return self.source.fingerprint
        return f"{self.source.fingerprint}+{self.target.fingerprint}"
