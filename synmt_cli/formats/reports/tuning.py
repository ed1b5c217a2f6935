"""What `synmt tune` reports: BLEU on dev for each length penalty."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from synmt_cli.formats.reports import documents
from synmt_cli.formats.reports.table import BEST, Cell, Notes, Record, Table
from synmt_cli.io import json_files

COMMAND = "tune"
GREATEST = 10  # length penalty


@dataclass(frozen=True, slots=True)
class TunedValue:
    """Translations with one length penalty. bleu: in percent.

    brevity_penalty: BLEU's. length_ratio: words of the translations for each of the references,
    by BLEU's tokens. cut: translations that reached the length limit. closed: trees that ended
    before they were one, None where models write none.
    """

    lenpen: float
    bleu: float
    brevity_penalty: float
    length_ratio: float | None
    cut: int
    closed: int | None


@dataclass(frozen=True, slots=True)
class TuningReport:
    """All values in rising order; best is the first with the highest BLEU."""

    segments: int
    beam: int
    best: TunedValue
    values: list[TunedValue]
    signature: str

    def sections(self) -> Iterator[Table | Notes]:
        """The table, and which value is the best."""
        header = ["lenpen", "BLEU", "BP", "length", "cut"]
        has_trees = self.best.closed is not None
        rows = [
            [
                Cell(one.lenpen, "g"),
                Cell(one.bleu, ".2f", BEST if one is self.best else "", 1),
                Cell(one.brevity_penalty, ".3f"),
                Cell(one.length_ratio, ".3f"),
                Cell(one.cut, ","),
                *([Cell(one.closed, ",")] if has_trees else []),
            ]
            for one in self.values
        ]
        yield [f"{self.segments:,} segments, beam {self.beam:,}"]
        yield Table([*header, *(["closed"] if has_trees else [])], rows)
        yield [f"best lenpen: {self.best.lenpen:g}", self.signature]

    def records(self) -> Iterator[Record]:
        """One for each value."""
        for one in self.values:
            yield {
                "lenpen": one.lenpen,
                "bleu": one.bleu,
                "brevity_penalty": one.brevity_penalty,
                "length_ratio": one.length_ratio,
                "cut": one.cut,
                **({} if one.closed is None else {"closed": one.closed}),
                "best": int(one is self.best),
                "beam": self.beam,
                "segments": self.segments,
            }


def read(path: str) -> TuningReport:
    """The report in a file of --format json, `-` for stdin. Raises DataError, ReadError."""
    document, source = documents.load(path, COMMAND)
    try:
        values = [_value(one) for one in document["values"]]
        best = values.index(_value(document["best"]))
        segments, beam = _count(document["segments"]), _count(document["beam"])
        signature = str(document["signature"])
    except (KeyError, TypeError, ValueError):
        problem = "values are missing or of other types"
        raise documents.foreign(source, COMMAND, problem) from None
    return TuningReport(segments, beam, values[best], values, signature)


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
