"""Scores on several test sets: read from `synmt score --format json`, compared, and shown."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from synmt_cli.errors import DataError, quoted
from synmt_cli.formats.reports import documents
from synmt_cli.formats.reports.score.systems import MOST_DIGITS, shown_p, stars
from synmt_cli.formats.reports.table import ALL, Cell, Notes, Record, Row, Table

KNOWN_BY = frozenset({"sets", "baseline", "systems"})  # fields, for `synmt info`
DIGITS = 2  # after the point of a score in a table, if the report does not say
LOWER_IS_BETTER = frozenset({"ter"})  # in reports that do not say so


@dataclass(frozen=True, slots=True)
class SetScores:
    """The contents of one file: the name of each system and its score by metric name.

    lower: the metrics whose lower scores are better. digits: how many the scores of a metric have
    after the point; DIGITS for a metric that is missing.
    """

    source: str
    systems: list[tuple[str, dict[str, float]]]
    lower: frozenset[str] = LOWER_IS_BETTER
    digits: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SetPair:
    """The score of a system and that of the baseline. better: 1 won, -1 lost, 0 a tie.

    digits: how many a table shows after the point.
    """

    set: str
    metric: str
    baseline: float
    score: float
    better: int
    digits: int = DIGITS

    @property
    def delta(self) -> float:
        """score - baseline."""
        return self.score - self.baseline

    def document(self) -> Record:
        """The names and scores, and the difference in place of `better`."""
        names = {"set": self.set, "metric": self.metric}
        return {**names, "baseline": self.baseline, "score": self.score, "delta": self.delta}


@dataclass(frozen=True, slots=True)
class ComparedSystem:
    """A system against the baseline over (set, metric) pairs. p: by its wins and losses."""

    name: str
    pairs: list[SetPair]
    p: float

    @property
    def counts(self) -> dict[str, int]:
        """Pairs won, lost and tied."""
        better = [pair.better for pair in self.pairs]
        return {"wins": better.count(1), "losses": better.count(-1), "ties": better.count(0)}

    def document(self) -> dict[str, object]:
        """The counts, p, and every pair."""
        n = len(self.pairs) - self.counts["ties"]
        test = {**self.counts, "n": n, "p": self.p}
        return {"name": self.name, **test, "pairs": self.pairs}


@dataclass(frozen=True, slots=True)
class SetReport:
    """All systems against the first, over test sets. formula: how p was computed."""

    sets: list[str]
    metrics: list[str]
    baseline: str
    systems: list[ComparedSystem]
    formula: str

    def sections(self) -> Iterator[Table | Notes]:
        """Every pair, then the test."""
        rows = []
        for pairs in zip(*(one.pairs for one in self.systems), strict=True):
            first = pairs[0]
            shown = f".{first.digits}f"
            scores = [Cell(one.score, shown, f" ({one.delta:+{shown}})") for one in pairs]
            rows.append([first.set, first.metric, Cell(first.baseline, shown), *scores])
        names = [one.name for one in self.systems]
        yield Table(["set", "metric", self.baseline, *names], rows, left=2)
        counts: list[Row] = [
            [one.name, *one.counts.values(), shown_p(one.p, stars(one.p), 2)]
            for one in self.systems
        ]
        title = f"Sign test over (set, metric) pairs against {self.baseline}"
        yield Table(["system", "better", "worse", "ties", "p"], counts, title=title)
        yield [f"p: {self.formula}; * p < 0.05, ** p < 0.01"]

    def records(self) -> Iterator[Record]:
        """One for each system and pair, and one with set `all` for each system."""
        for one in self.systems:
            for pair in one.pairs:
                yield {"system": one.name, **pair.document()}
            yield {"system": one.name, "set": ALL, "metric": ALL, **one.counts, "p": one.p}

    def document(self) -> dict[str, object]:
        """The facts of the test, then every pair by system."""
        return {
            "test": "sign",
            "unit": "set x metric",
            "definition": self.formula,
            "sets": self.sets,
            "metrics": self.metrics,
            "baseline": self.baseline,
            "systems": self.systems,
        }


def read(path: str) -> SetScores:
    """The scores in a file that `synmt score --format json` wrote. Raises DataError, ReadError."""
    document, source = documents.load(path, "score")
    systems = document.get("systems") if isinstance(document, dict) else None
    if not isinstance(systems, list) or not systems:
        raise _foreign(source, "no field systems")
    scores = [_system(one, source) for one in systems]
    metrics = _metrics(document.get("metrics"), source)
    if metrics is None:
        return SetScores(source, scores)
    lower = {name for name, one in metrics.items() if one.get("higher_is_better") is False}
    shown = {name: one.get("digits") for name, one in metrics.items()}
    digits = {name: n for name, n in shown.items() if type(n) is int and 0 <= n <= MOST_DIGITS}
    return SetScores(source, scores, frozenset(lower), digits)


def _metrics(metrics: object, source: str) -> dict[str, dict[str, Any]] | None:
    """The metrics that a report describes, by name; None if it describes none."""
    if metrics is None:
        return None
    found = {}
    for one in metrics if isinstance(metrics, list) else [None]:
        if not isinstance(one, dict) or not isinstance(one.get("name"), str):
            raise _foreign(source, "a metric without name")
        found[one["name"]] = one
    return found


def _system(value: object, source: str) -> tuple[str, dict[str, float]]:
    name = value.get("name") if isinstance(value, dict) else None
    scores = value.get("scores") if isinstance(value, dict) else None
    if not isinstance(name, str) or not isinstance(scores, dict):
        raise _foreign(source, "a system without name or scores")
    return name, {metric: _score(one, metric, source) for metric, one in scores.items()}


def _score(value: object, metric: str, source: str) -> float:
    try:
        return documents.number(value.get("score") if isinstance(value, dict) else None)
    except (TypeError, ValueError):
        problem = f"the score of {quoted(metric)} is not a number within {documents.LARGEST:g}"
        raise _foreign(source, problem) from None


def _foreign(source: str, problem: str) -> DataError:
    return documents.foreign(source, "score", problem)
