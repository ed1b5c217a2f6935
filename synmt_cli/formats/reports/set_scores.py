"""Scores on several test sets: read from `synmt score --format json`, compared, and shown."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import orjson

from synmt_cli.errors import DataError, printable, quoted
from synmt_cli.formats.reports.scores import ALL, columns
from synmt_cli.io import reading

DIGITS = 2  # of a score in a table
TSV_COLUMNS = (
    "system",
    "set",
    "metric",
    "baseline",
    "score",
    "delta",
    "wins",
    "losses",
    "ties",
    "p",
)


@dataclass(frozen=True, slots=True)
class SetScores:
    """What one file holds: the name of each system and its score by metric name."""

    source: str
    systems: list[tuple[str, dict[str, float]]]


@dataclass(frozen=True, slots=True)
class SetPair:
    """One score of a system and that of the baseline. better: 1 won, -1 lost, 0 a tie."""

    set: str
    metric: str
    baseline: float
    score: float
    better: int


@dataclass(frozen=True, slots=True)
class Compared:
    """A system against the baseline over (set, metric) pairs. p: of wins and losses."""

    name: str
    pairs: list[SetPair]
    p: float

    def n(self, better: int) -> int:
        """How many pairs are won (1), lost (-1), tied (0)."""
        return sum(pair.better == better for pair in self.pairs)


@dataclass(frozen=True, slots=True)
class SetReport:
    """All systems against the first. formula: how p was computed."""

    sets: list[str]
    metrics: list[str]
    baseline: str
    systems: list[Compared]
    formula: str


def read(path: str) -> SetScores:
    """The scores in a file that `synmt score --format json` wrote. Raises DataError, ReadError."""
    with reading.open_source(path) as source:
        data = b"".join(reading.chunks(source))
    try:
        document = orjson.loads(data.removeprefix(reading.BOM))
    except orjson.JSONDecodeError as error:
        raise _foreign(source.name, f"invalid JSON: {printable(str(error))}") from None
    systems = document.get("systems") if isinstance(document, dict) else None
    if not isinstance(systems, list) or not systems:
        raise _foreign(source.name, "no field systems")
    return SetScores(source.name, [_system(one, source.name) for one in systems])


def _system(value: object, source: str) -> tuple[str, dict[str, float]]:
    name = value.get("name") if isinstance(value, dict) else None
    scores = value.get("scores") if isinstance(value, dict) else None
    if not isinstance(name, str) or not isinstance(scores, dict):
        raise _foreign(source, "a system without name or scores")
    return name, {metric: _score(one, metric, source) for metric, one in scores.items()}


def _score(value: object, metric: str, source: str) -> float:
    score = value.get("score") if isinstance(value, dict) else None
    if isinstance(score, bool) or not isinstance(score, int | float) or not math.isfinite(score):
        raise _foreign(source, f"the score of {quoted(metric)} is no number")
    return float(score)


def _foreign(source: str, problem: str) -> DataError:
    return DataError(source, None, f"not from `synmt score --format json`: {problem}")


def to_json(report: SetReport) -> bytes:
    """One JSON object and LF, with every pair."""
    document = {
        "test": "sign",
        "unit": "set x metric",
        "definition": report.formula,
        "sets": report.sets,
        "metrics": report.metrics,
        "baseline": report.baseline,
        "systems": [
            {
                "name": one.name,
                "wins": one.n(1),
                "losses": one.n(-1),
                "ties": one.n(0),
                "n": one.n(1) + one.n(-1),
                "p": one.p,
                "pairs": [
                    {
                        "set": pair.set,
                        "metric": pair.metric,
                        "baseline": pair.baseline,
                        "score": pair.score,
                        "delta": pair.score - pair.baseline,
                    }
                    for pair in one.pairs
                ],
            }
            for one in report.systems
        ],
    }
    return orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def to_tsv(report: SetReport) -> bytes:
    """A header, a line for each system and pair, and one with set `all` for each system."""
    rows: list[tuple[str, ...]] = [TSV_COLUMNS]
    for one in report.systems:
        for pair in one.pairs:
            figures = (pair.baseline, pair.score, pair.score - pair.baseline)
            rows.append((one.name, pair.set, pair.metric, *map(repr, figures), *[""] * 4))
        counts = (str(one.n(better)) for better in (1, -1, 0))
        rows.append((one.name, ALL, ALL, "", "", "", *counts, repr(one.p)))
    return b"".join("\t".join(map(printable, row)).encode() + b"\n" for row in rows)


def to_table(report: SetReport) -> bytes:
    """Every pair, then what they come to, for people."""
    parts = [list(_pairs_table(report)), list(_test_table(report))]
    return "\n\n".join("\n".join(part) for part in parts).encode() + b"\n"


def _pairs_table(report: SetReport) -> Iterator[str]:
    rows = [["set", "metric", report.baseline, *(one.name for one in report.systems)]]
    for pairs in zip(*(one.pairs for one in report.systems), strict=True):
        first = pairs[0]
        deltas = [
            f"{one.score:.{DIGITS}f} ({one.score - one.baseline:+.{DIGITS}f})" for one in pairs
        ]
        rows.append([first.set, first.metric, f"{first.baseline:.{DIGITS}f}", *deltas])
    yield from columns(rows, left=2)


def _test_table(report: SetReport) -> Iterator[str]:
    yield f"Sign test over (set, metric) pairs against {printable(report.baseline)}"
    yield ""
    rows = [["system", "better", "worse", "ties", "p"]]
    for one in report.systems:
        counts = (str(one.n(better)) for better in (1, -1, 0))
        shown_p = "<0.0001" if one.p < 0.00005 else f"{one.p:.4f}"
        stars = "**" if one.p < 0.01 else "*" if one.p < 0.05 else ""
        rows.append([one.name, *counts, f"{shown_p}{stars:<2}"])
    yield from columns(rows)
    yield ""
    yield f"p: {report.formula}; * p < 0.05, ** p < 0.01"


FORMATS = {"table": to_table, "tsv": to_tsv, "json": to_json}
