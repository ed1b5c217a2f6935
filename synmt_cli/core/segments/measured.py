"""Segments of any kind with the length of their source, in words, one at a time.

text: several files are parallel, one line each; words are between white space. jsonl and
conllu: several files follow one another; words are those of the tree, or where there is no
tree, those between white space in the source.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Protocol

import orjson

from synmt_cli.core.segments.buckets import n_words
from synmt_cli.errors import DataError, UsageError, printable
from synmt_cli.formats import conllu, record
from synmt_cli.formats.conllu import Sentence
from synmt_cli.formats.detect import detect
from synmt_cli.io import reading
from synmt_cli.io.reading import Source

BUCKET = "bucket"  # the field, and in CoNLL-U the comment synmt_bucket
TREELESS = ("empty", "failed")  # statuses of a block whose one word is made up


class Segment(Protocol):
    """A segment. length: source words. parts: its bytes in each output, LF included."""

    @property
    def length(self) -> int:
        """Source words."""
        ...

    @property
    def parts(self) -> list[bytes]:
        """Its bytes in each output."""
        ...

    def labelled(self, bucket: str) -> bytes:
        """One record with the name of its bucket."""
        ...


@dataclass(frozen=True, slots=True)
class Lines:
    """Parallel lines; `labelled` joins them with TABs behind the bucket."""

    length: int
    parts: list[bytes]

    def labelled(self, bucket: str) -> bytes:
        """`BUCKET<TAB>LINE`, and further lines behind."""
        lines = [part.removesuffix(b"\n") for part in self.parts]
        return b"\t".join([bucket.encode(), *lines]) + b"\n"


@dataclass(frozen=True, slots=True)
class Object:
    """The fields of a JSONL record, and its line as it was."""

    fields: dict[str, Any]
    line: bytes

    @property
    def length(self) -> int:
        """Words of the tree, or where there is none of the source text."""
        words = self.fields.get("words")
        return n_words(self.fields["src"]) if words is None else len(words)

    @property
    def parts(self) -> list[bytes]:
        """The line as it was."""
        return [self.line + b"\n"]

    def labelled(self, bucket: str) -> bytes:
        """The record with the field `bucket`, the last one unless it was there."""
        fields = {**self.fields, BUCKET: bucket}
        return orjson.dumps(fields, option=orjson.OPT_APPEND_NEWLINE)


@dataclass(frozen=True, slots=True)
class Trees:
    """The sentences of one segment: one, or those with the same synmt_line."""

    sentences: list[Sentence]

    @property
    def length(self) -> int:
        """Syntactic words; of a block without a tree the words of its text."""
        return sum(map(_n_tree_words, self.sentences))

    @property
    def parts(self) -> list[bytes]:
        """Its blocks."""
        return [b"".join(map(conllu.to_bytes, self.sentences))]

    def labelled(self, bucket: str) -> bytes:
        """Its blocks, each with the comment synmt_bucket."""
        key = f"synmt_{BUCKET}"
        for sentence in self.sentences:
            kept = [one for one in sentence.comments if _key(one) != key]
            sentence.comments = [*kept, f"# {key} = {bucket}"]
        return self.parts[0]


def _n_tree_words(sentence: Sentence) -> int:
    if sentence.comment("synmt_status") in TREELESS:
        return n_words(sentence.comment("text") or "")
    return len(sentence.words)


def _key(comment: str) -> str:
    return comment[1:].partition("=")[0].strip()


@dataclass(frozen=True, slots=True)
class Input:
    """Open inputs. sides: the name of the file behind each of a segment's parts."""

    sides: list[str]
    segments: Iterator[Segment]


@contextlib.contextmanager
def opened(paths: Sequence[str], kind: str = "auto", src: str | None = None) -> Iterator[Input]:
    """The segments of files of one kind: text, jsonl, conllu, or what the first one shows.

    src: a text that gives the lengths and is not among the parts; only for text, so that
    `auto` is text with it. Several files of records are one side without a name. Raises
    DataError, ReadError; UsageError where src does not fit.
    """
    with contextlib.ExitStack() as stack:
        first = stack.enter_context(reading.open_source(paths[0]))
        if kind == "auto" and src is None:
            kind, first = detect(first)
        if kind in ("text", "auto"):
            measured = [stack.enter_context(reading.open_source(src))] if src is not None else []
            others = [stack.enter_context(reading.open_source(path)) for path in paths[1:]]
            yield Input(list(paths), text([*measured, first, *others], len(measured)))
            return
        if src is not None:
            raise UsageError(f"--src gives the lengths of text; {kind} has its own source")
        side = paths[0] if len(paths) == 1 else ""
        yield Input([side], _records(first, paths[1:], jsonl if kind == "jsonl" else trees))


def _records(
    first: Source, further: Sequence[str], read: Callable[[Source], Iterator[Segment]]
) -> Iterator[Segment]:
    yield from read(first)
    for path in further:
        with reading.open_source(path) as source:
            yield from read(source)


def text(sources: Sequence[Source], n_hidden: int = 0) -> Iterator[Lines]:
    """Parallel lines; the first source gives the length. Raises DataError, ReadError.

    n_hidden: how many of the first sources are not among the parts. Sources of different
    lengths are an error, at the end of the shortest, that names both counts.
    """
    readers = [reading.lines(source) for source in sources]
    number, row = 0, [next(reader, None) for reader in readers]
    while None not in row:
        number += 1
        lines = [line for line in row if line is not None]
        texts = [
            reading.decode(line, source.name, number)
            for source, line in zip(sources, lines, strict=True)
        ]
        yield Lines(n_words(texts[0]), [line + b"\n" for line in lines[n_hidden:]])
        row = [next(reader, None) for reader in readers]
    counts = [
        number + (line is not None) + sum(1 for _ in reader)
        for line, reader in zip(row, readers, strict=True)
    ]
    for source, count in zip(sources, counts, strict=True):
        if count != counts[0]:
            expected = f"{counts[0]:,} in {printable(sources[0].name)}"
            raise DataError(source.name, None, f"{count:,} lines, but {expected}")


def jsonl(source: Source) -> Iterator[Object]:
    """The records of a source. Raises DataError, ReadError."""
    for number, line in enumerate(reading.lines(source), 1):
        yield Object(record.fields_from_bytes(line, source.name, number), line)


def trees(source: Source) -> Iterator[Trees]:
    """The segments of a source of CoNLL-U. Raises DataError, ReadError."""
    n_alone = 0

    def segment(sentence: Sentence) -> tuple[int, str | None]:
        nonlocal n_alone
        line = sentence.comment("synmt_line")
        n_alone += line is None  # without the comment each sentence is a segment
        return n_alone, line

    for _, sentences in groupby(conllu.read(source), segment):
        yield Trees(list(sentences))
