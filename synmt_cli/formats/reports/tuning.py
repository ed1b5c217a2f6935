"""The report of `synmt tune`: BLEU on dev for each length penalty."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

from synmt_cli.errors import DataError, counted
from synmt_cli.formats.reports import documents
from synmt_cli.formats.reports.bounds import LEAST_PATIENCE, MOST_BEAM, MOST_LENPEN
from synmt_cli.formats.reports.table import BEST, Cell, Notes, Record, Table
from synmt_cli.io import reading

KNOWN_BY = frozenset({"segments", "best", "values"})  # fields, for `synmt info`
COMMAND = "tune"
ROUNDING = 1e-6  # how far BLEU may be above 100, and the brevity penalty above 1
FIRST_TOKENIZER = "13a"  # the tokenizer of reports that do not name one


@dataclass(frozen=True, slots=True)
class TunedValue:
    """Translations with one length penalty, by one model or several. bleu: in percent.

    brevity_penalty: BLEU's. length_ratio: words of the translations for each word of the
    references, as BLEU counts them. cut: translations that reached the length limit. closed: trees
    that had to be completed, None if models write no trees.
    """

    lenpen: float
    bleu: float
    brevity_penalty: float
    length_ratio: float | None
    cut: int
    closed: int | None


@dataclass(frozen=True, slots=True)
class TuningReport:
    """All values in rising order; best is the first with the highest BLEU.

    patience: the search's, None if it ended when no prefix could be better. tokenize: BLEU's
    tokenizer.
    """

    segments: int
    beam: int
    patience: float | None
    best: TunedValue
    values: list[TunedValue]
    signature: str
    tokenize: str = FIRST_TOKENIZER

    @property
    def doubts(self) -> list[str]:
        """Why the best value may not be the best one, in words."""
        best, values = self.best, self.values
        scores = {one.bleu for one in values}
        if len(values) == 1:
            return []
        if len(scores) == 1:
            return [
                f"all values have the same BLEU, {best.bleu:.2f}: it decides nothing, and "
                f"{best.lenpen:g} is only the first"
            ]
        if best is values[-1] and best.lenpen < MOST_LENPEN:
            end = "greatest value tried: greater"
        elif best is values[0] and best.bleu > values[-1].bleu and best.lenpen > 0:
            end = "smallest value tried: smaller"
        else:
            return []
        return [f"the best, {best.lenpen:g}, is the {end} ones may be better"]

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
        patience = "" if self.patience is None else f", patience {self.patience:g}"
        yield [f"{counted(self.segments, 'segment')}, beam {self.beam:,}{patience}"]
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
                **({} if self.patience is None else {"patience": self.patience}),
                "tokenize": self.tokenize,
                "segments": self.segments,
            }


def read(path: str) -> TuningReport:
    """The report in a file of --format json, `-` for stdin. Raises DataError, ReadError."""
    return parsed(*documents.load(path, COMMAND))


def parsed(document: Any, source: str) -> TuningReport:
    """The report in a JSON value. source: for messages. Raises DataError."""
    try:
        values = [_value(one) for one in document["values"]]
        best = values.index(_value(document["best"]))
        segments, beam = documents.count(document["segments"]), documents.count(document["beam"])
        patience = _patience(document.get("patience"))  # reports did not have it at first
        tokenize = documents.text(document.get("tokenize", FIRST_TOKENIZER))  # nor this
        if not 1 <= beam <= MOST_BEAM:
            raise ValueError
        signature = str(document["signature"])
    except (KeyError, TypeError, ValueError):
        problem = "values are missing, of other types or out of range"
        raise documents.foreign(source, COMMAND, problem) from None
    return TuningReport(segments, beam, patience, values[best], values, signature, tokenize)


def read_all(paths: Sequence[str]) -> TuningReport:
    """The means over several models, such as seeds; best is the best of the means.

    Raises ReadError, and DataError, also if files differ in beam, patience, tokenizer or length
    penalties.
    """
    reports = [read(path) for path in paths]
    if len(reports) == 1:
        return reports[0]
    first, first_path = reports[0], reading.source_name(paths[0])
    for path, report in zip(paths, reports, strict=True):
        if problem := _difference(report, first, first_path):
            raise DataError(reading.source_name(path), None, problem)
    values = [_mean(each) for each in zip(*(report.values for report in reports), strict=True)]
    n_segments = sum(report.segments for report in reports)
    return replace(first, segments=n_segments, best=best_of(values), values=values)


def _difference(report: TuningReport, first: TuningReport, path: str) -> str:
    """How a report differs from the first one, at `path`, so that they have no mean; or ""."""
    searches = (
        (f"with --beam {one.beam}", with_patience(one.patience), f"with --tokenize {one.tokenize}")
        for one in (report, first)
    )
    for own, other in zip(*searches, strict=True):
        if own != other:
            return f"tuned {own}, but {path} {other}"
    if [one.lenpen for one in report.values] != [one.lenpen for one in first.values]:
        return f"other length penalties than in {path}"
    return ""


def with_patience(patience: float | None) -> str:
    """The patience of a search, as messages say it.

    >>> with_patience(1.0), with_patience(None)
    ('with --patience 1', 'without --patience')
    """
    return "without --patience" if patience is None else f"with --patience {patience:g}"


def best_of(values: Sequence[TunedValue]) -> TunedValue:
    """The first value with the highest BLEU."""
    return max(values, key=lambda one: one.bleu)


def _mean(values: Sequence[TunedValue]) -> TunedValue:
    ratios = [one.length_ratio for one in values if one.length_ratio is not None]
    closed = [one.closed for one in values if one.closed is not None]
    return TunedValue(
        values[0].lenpen,
        fmean(one.bleu for one in values),
        fmean(one.brevity_penalty for one in values),
        fmean(ratios) if ratios else None,
        sum(one.cut for one in values),
        sum(closed) if closed else None,
    )


def _patience(value: Any) -> float | None:
    patience = None if value is None else documents.number(value)
    if patience is not None and patience < LEAST_PATIENCE:
        raise ValueError
    return patience


def _within(value: Any, most: float) -> float:
    """The value, a number from 0 to `most`. Raises TypeError, ValueError."""
    number = documents.number(value)
    if not 0 <= number <= most:
        raise ValueError
    return number


def _value(one: Any) -> TunedValue:
    ratio, closed = one["length_ratio"], one["closed"]
    return TunedValue(
        _within(one["lenpen"], MOST_LENPEN),
        _within(one["bleu"], 100 + ROUNDING),
        _within(one["brevity_penalty"], 1 + ROUNDING),
        None if ratio is None else _within(ratio, documents.LARGEST),
        documents.count(one["cut"]),
        None if closed is None else documents.count(closed),
    )
