"""Work for processes: blocks of whole lines of text as bytes, with their targets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from synmt_cli import pool
from synmt_cli.core.segments.bad_trees import INSTEAD, OnBadTree
from synmt_cli.formats import conllu
from synmt_cli.formats.conllu import RawBlocks, Sentence
from synmt_cli.io import reading

Target = str | RawBlocks


@dataclass(frozen=True, slots=True)
class Work:
    """The blocks of `n` lines. first: the number of the first line over all inputs, from 1.

    is_text: the batch is one line of text without a tree. sizes: how many blocks each line has,
    None for one each. targets: the target of each line, its text or the blocks of its trees; None
    without targets. If there are fewer targets than lines, the other lines are left out.
    """

    batch: RawBlocks
    first: int
    n: int
    sizes: Sequence[int] | None
    targets: Sequence[Target] | None = None
    is_text: bool = False

    def __len__(self) -> int:
        return self.n


def where(parts: Sequence[Work]) -> str:
    """The lines of some pieces of work, for messages."""
    first, last = parts[0].batch, parts[-1].batch
    end = last.line + last.data.count(b"\n") - 1
    return pool.span((first.source, first.line), (last.source, end))


def where_of_lines(items: Sequence[tuple[Any, ...]]) -> str:
    """The lines of items that begin with their file and line, for messages."""
    return pool.span(items[0][:2], items[-1][:2])


def contents(
    work: Work, on_bad_tree: OnBadTree = "error"
) -> Iterator[tuple[int, list[Sentence] | str]]:
    """The number of each line and its sentences, or its text. Raises DataError."""
    if work.is_text:
        batch = work.batch
        yield work.first, reading.decode(batch.data[:-1], batch.source, batch.line)
    else:
        yield from lines(work, on_bad_tree)


def lines(work: Work, on_bad_tree: OnBadTree = "error") -> Iterator[tuple[int, list[Sentence]]]:
    """The number and the sentences of each line. Raises DataError."""
    sentences = conllu.sentences(work.batch, instead=INSTEAD[on_bad_tree])
    if work.sizes is None:
        groups: Iterable[list[Sentence]] = ([sentence] for sentence in sentences)
    else:
        groups = filter(None, (list(islice(sentences, size)) for size in work.sizes))
    return enumerate(groups, work.first)
