"""Scores of segments by one metric: a line for each system and segment, segments in order.

    base.de<TAB>0.7812                     as the .seg.score files of mt-metrics-eval
    {"system":"base.de","score":0.7812}    the same as JSONL

The first line shows which of the two a file is.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import orjson

from synmt_cli.errors import DataError, counted, quoted
from synmt_cli.formats.detect import OBJECT
from synmt_cli.io import reading
from synmt_cli.io.reading import Source

LARGEST = 1e70  # a score is at most this, so that squares of variances are finite
NUMBER = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")


@dataclass(frozen=True, slots=True)
class SegmentScore:
    """The score of the next segment of a system. line: where it stands, from 1."""

    system: str
    score: float
    line: int


def read(source: Source) -> Iterator[SegmentScore]:
    """Yields the scores of a source. Raises DataError, ReadError."""
    json = False
    for number, line in enumerate(reading.lines(source), 1):
        if number == 1:
            json = OBJECT.match(line) is not None
        yield from_bytes(line, source.name, number, json)


def from_bytes(line: bytes, source: str, number: int, is_json: bool) -> SegmentScore:
    """The score in a line. Raises DataError."""
    return (_from_json if is_json else _from_tsv)(line, source, number)


NOT_A_NAME = re.compile("[\t\r\n\ud800-\udfff]")  # in a system's name these would break the line


def to_bytes(system: str, score: float) -> bytes:
    """A line of TSV."""
    return f"{system}\t{score!r}\n".encode()


def _from_tsv(line: bytes, source: str, number: int) -> SegmentScore:
    columns = reading.decode(line, source, number).split("\t")
    if len(columns) != 2:
        problem = f"{counted(len(columns), 'column')}, expected SYSTEM<TAB>SCORE"
        raise DataError(source, number, problem)
    if not NUMBER.fullmatch(columns[1]):
        raise DataError(source, number, _not_finite(columns[0], columns[1]))
    return _checked(columns[0], float(columns[1]), columns[1], source, number)


def _from_json(line: bytes, source: str, number: int) -> SegmentScore:
    try:
        record = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise DataError(source, number, f"invalid JSON: {error}") from None
    system = record.get("system") if isinstance(record, dict) else None
    if not isinstance(system, str):
        raise DataError(source, number, 'expected {"system": TEXT, "score": NUMBER}')
    score: Any = record.get("score")
    if type(score) not in (int, float):
        raise DataError(source, number, _not_finite(system, str(score)))
    return _checked(system, float(score), str(score), source, number)


def _checked(system: str, score: float, text: str, source: str, number: int) -> SegmentScore:
    if not system:
        raise DataError(source, number, "the name of the system is empty")
    if not math.isfinite(score):
        raise DataError(source, number, _not_finite(system, text))
    if abs(score) > LARGEST:
        problem = f"the score {quoted(text)} of {quoted(system)} is not within {LARGEST:g}"
        raise DataError(source, number, problem)
    return SegmentScore(system, score, number)


def _not_finite(system: str, text: str) -> str:
    """What is wrong with a score. mt-metrics-eval writes None for a segment without one."""
    if text == "None":
        return f"no score of {quoted(system)}: every segment needs one"
    return f"the score {quoted(text)} of {quoted(system)} is not a finite number"
