"""Reports of `synmt tune --format json`, read back."""

from typing import Any

from synmt_cli.errors import DataError
from synmt_cli.formats.reports import documents
from synmt_cli.formats.reports.tuning import TunedValue, TuningReport
from synmt_cli.io import json_files

COMMAND = "tune"
GREATEST = 10  # length penalty, as translate takes it


def read(path: str) -> TuningReport:
    """The report in a file, `-` for stdin. Raises DataError, ReadError."""
    document, source = documents.load(path, COMMAND)
    try:
        values = [_value(one) for one in document["values"]]
        best = values.index(_value(document["best"]))
        segments, beam = _count(document["segments"]), _count(document["beam"])
        signature = str(document["signature"])
    except (KeyError, TypeError, ValueError):
        raise _foreign(source, "values are missing or of other types") from None
    return TuningReport(segments, beam, values[best], values, signature)


def _foreign(source: str, problem: str) -> DataError:
    return documents.foreign(source, COMMAND, problem)


def _value(one: Any) -> TunedValue:
    lenpen, ratio, closed = _number(one["lenpen"]), one["length_ratio"], one["closed"]
    if not 0 <= lenpen <= GREATEST:
        raise ValueError
    return TunedValue(
        lenpen,
        _number(one["bleu"]),
        _number(one["brevity_penalty"]),
        None if ratio is None else _number(ratio),
        _count(one["cut"]),
        None if closed is None else _count(closed),
    )


def _number(value: Any) -> float:
    if not json_files.is_number(value):
        raise TypeError
    return float(value)


def _count(value: Any) -> int:
    if not json_files.is_count(value):
        raise TypeError
    return int(value)
