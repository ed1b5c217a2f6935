"""The file of a UDPipe 1 model: its blocks, the lemmatizer among them, the parser's words.

After the name of its format it has

    a version, 7F 7F
    0, or 1 and a tokenizer
    the number of taggers, each after three bytes: whether it gives LEMMA, XPOS and FEATS
    0, or 1 and a parser

A tokenizer, a tagger and a parser are blocks with a few bytes before each. A block begins with 12
bytes: the length that it unpacks to, its packed length, and a check sum of both. After them come 5
bytes for LZMA, then the packed bytes. At most GAP bytes stand between blocks.

Source: model_morphodita_parsito.cpp, compressor_save.cpp, parser_nn.cpp and embedding.cpp of
UDPipe 1.4.
"""

import lzma
import os
import re
import struct
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from synmt_cli.errors import DataError
from synmt_cli.formats.magic import HEAD, UDPIPE, model_kind

UNPACKED_LIMIT = 2 * 2**30  # bytes; the largest known models need 0.5 GiB
GAP = 32  # bytes
_BLOCK = struct.Struct("<III")
_LZMA = 5  # bytes
# Flags, one of the kinds of tagger that the trainer makes, and one of its dictionaries
_TAGGER = re.compile(rb"[\0-\2][\0\1][\0\1][\x08-\x0a]\x02", re.DOTALL)
_FIRST_TAGGER = re.compile(rb".*[\1-\4]" + _TAGGER.pattern, re.DOTALL)
_PARSER_HEAD = 2**20  # bytes, unpacked, in which a parser says what it reads
_WEIGHT = 4  # bytes
_UNKNOWN_KIND = lzma.LZMAError, IndexError, ValueError  # raised by a parser of an unknown kind


def unpacked_size(file: BinaryIO, name: str) -> int:
    """How many bytes a model unpacks to, as its blocks say; they are not unpacked.

    The library would abort the process at some files that are refused here. Raises DataError.
    """
    size = os.fstat(file.fileno()).st_size
    if model_kind(file.read(HEAD)) != "udpipe":
        raise DataError(name, None, "not a UDPipe 1 model")
    at, unpacked = 1 + len(UDPIPE), 0
    while at < size:
        file.seek(at)
        block = _next_block(file.read(GAP + _BLOCK.size + _LZMA))
        if block is None and size - at <= GAP:  # what follows the last block
            break
        if block is None or block.end > size - at:
            raise DataError(name, None, f"damaged: no block of a UDPipe model after byte {at:,}")
        at += block.end
        unpacked += block.unpacked
    if unpacked > UNPACKED_LIMIT:
        problem = f"it would unpack to {unpacked:,} bytes, at most {UNPACKED_LIMIT:,} are possible"
        raise DataError(name, None, problem)
    return unpacked


def without_lemmas(model: bytes) -> bytes | None:
    """The same model without its lemmatizer: its tags and trees are the same, LEMMA is `_`.

    Models with one tagger for everything take as long as before. None for a model whose parser
    reads lemmas, and where the file is of a kind that the library's trainer does not write.
    """
    blocks = list(_blocks(model))
    gaps = [model[one.gap : one.begin] for one in blocks]
    firsts = [i for i, gap in enumerate(gaps) if _FIRST_TAGGER.fullmatch(gap)]
    if not firsts or gaps[-1] != b"\1" or _reads_lemmas(model[blocks[-1].begin : blocks[-1].end]):
        return None
    others = [i for i, gap in enumerate(gaps) if _TAGGER.fullmatch(gap)]
    flags = len(b"LXF")
    begins = [blocks[i].begin - flags - 2 for i in (firsts[0], *others)]
    parser = blocks[-1].gap
    if len(firsts) > 1 or len(begins) != model[begins[0] - 1]:
        return None
    taggers = [model[a + 1 : b] for a, b in zip(begins, [*begins[1:], parser], strict=True)]
    kept = [taggers[0], *(one for one in taggers[1:] if any(one[: flags - 1]))]
    head = model[: begins[0] - 1] + bytes([len(kept)])
    return head + b"".join(b"\0" + one for one in kept) + model[parser:]


def parser_words(model: bytes) -> frozenset[str] | None:
    """The words that the parser has embeddings of, which are those it was trained with.

    None for a parser that reads no words, or of a kind that the library's trainer does not write.
    """
    try:
        *_, parser = _blocks(model)
        data = _unpacked(model[parser.begin : parser.end], parser.unpacked)
        fields, columns = _embedded(data)
        for column in columns:
            words = _embeddings(fields)
            if column == b"form":
                return frozenset(word.decode() for word in words)
    except _UNKNOWN_KIND:
        pass
    return None


class _Block(NamedTuple):
    """Offsets of the gap before a block, its begin and its end. unpacked: its bytes, unpacked."""

    gap: int
    begin: int
    end: int
    unpacked: int


def _blocks(model: bytes) -> Iterator[_Block]:
    at = 1 + len(UDPIPE)
    while block := _next_block(model[at : at + GAP + _BLOCK.size + _LZMA]):
        yield _Block(at, at + block.begin, at + block.end, block.unpacked)
        at += block.end


def _next_block(begin: bytes) -> _Block | None:
    """The block after a gap, None if there is none."""
    for gap in range(len(begin) - _BLOCK.size - _LZMA + 1):
        unpacked, packed, total = _BLOCK.unpack_from(begin, gap)
        if (unpacked * 19991 + packed * 199999991 + 1234567890) % 2**32 == total:
            return _Block(0, gap, gap + _BLOCK.size + _LZMA + packed, unpacked)
    return None


def _reads_lemmas(parser: bytes) -> bool:
    """Whether a parser has embeddings of lemmas; True where it is of an unknown kind."""
    try:
        _, columns = _embedded(_unpacked(parser, _PARSER_HEAD))
    except _UNKNOWN_KIND:
        return True
    return any(column.startswith(b"lemma") for column in columns)


def _unpacked(block: bytes, n_bytes: int) -> bytes:
    """The first bytes of what a block unpacks to. Raises LZMAError, IndexError."""
    properties = block[_BLOCK.size]
    filters = {
        "id": lzma.FILTER_LZMA1,
        "lc": properties % 9,
        "lp": properties // 9 % 5,
        "pb": properties // 45,
        "dict_size": max(n_bytes, _PARSER_HEAD),  # enough, whatever the block says
    }
    unpacking = lzma.LZMADecompressor(lzma.FORMAT_RAW, filters=[filters])
    return unpacking.decompress(block[_BLOCK.size + _LZMA :], n_bytes)


def _embedded(parser: bytes) -> tuple["_Fields", list[bytes]]:
    """The fields of a parser from its embeddings on, and the columns that these are for.

    Raises IndexError, ValueError.
    """
    fields = _Fields(parser)
    if fields.next() != b"nn_versioned":
        raise ValueError
    fields.at += 2 if parser[fields.at] >= 2 else 1  # the version, and whether one root is enforced
    fields.several()  # labels
    fields.next(), fields.next()  # the transition system, the nodes that are looked at
    return fields, fields.several()


def _embeddings(fields: "_Fields") -> list[bytes]:
    """The values that have embeddings in one column; goes past these. Raises IndexError."""
    width, n = fields.number(4), fields.number(4)
    values = [fields.next() for _ in range(n)]
    has_unknown = fields.number(1)
    fields.at += (n + has_unknown) * width * _WEIGHT
    return values


class _Fields:
    """Reads numbers, and texts after their lengths. Raises IndexError at the end."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.at = 0

    def next(self) -> bytes:
        length, begin = self._data[self.at], self.at + 1
        if length == 255:
            length, begin = int.from_bytes(self._data[begin : begin + 4], "little"), begin + 4
        self.at = begin + length
        return self._data[begin : self.at]

    def number(self, n_bytes: int) -> int:
        begin, self.at = self.at, self.at + n_bytes
        if self.at > len(self._data):
            raise IndexError
        return int.from_bytes(self._data[begin : self.at], "little")

    def several(self) -> list[bytes]:
        return [self.next() for _ in range(self.number(2))]
