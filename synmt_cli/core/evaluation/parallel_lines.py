"""The lines of one test set, read whole: references, hypotheses, sources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from synmt_cli.errors import DataError, printable
from synmt_cli.io import reading


def read(path: str) -> list[str]:
    """The lines of a file, `-` for stdin. Raises DataError, ReadError."""
    with reading.open_source(path) as source:
        return [line for _, line in reading.text_lines(source)]


def check_parallel(texts: Mapping[str, Sequence[str]]) -> None:
    """Raises DataError with both counts if two texts differ in length, or if all are empty."""
    (first, lines), *others = texts.items()
    for name, other in others:
        if len(other) != len(lines):
            expected = f"{len(lines):,} in {printable(first)}"
            raise DataError(name, None, f"{len(other):,} lines, but {expected}")
    if not lines:
        raise DataError(first, None, "no lines")


def blank_lines(lines: Sequence[str]) -> list[int]:
    """The numbers, from 1, of the lines without a word."""
    return [number for number, line in enumerate(lines, 1) if not line.strip()]
