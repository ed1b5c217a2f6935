"""What `synmt score` reports, and its three forms: a table, TSV, JSON.

The same report gives the same bytes wherever it is printed: no width, no colour, no locale.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import orjson

from synmt_cli.errors import printable

TESTS = {
    "bs": "paired bootstrap",
    "ar": "paired approximate randomization",
    "sign": "sign test over sentences",
}
TSV_COLUMNS = (
    "bucket",
    "sentences",
    "system",
    "metric",
    "score",
    "delta",
    "ci95_low",
    "ci95_high",
    "p",
    "test",
    "definition",
    "n",
    "seed",
    "signature",
)
ALL, NONE = "all", "n/a"


@dataclass(frozen=True, slots=True)
class Paired:
    """A comparison with the baseline. delta: system - baseline. ci95: of delta, (low, high).

    n: samples drawn, or in a sign test the sentences that were not ties.
    """

    test: str
    definition: str
    n: int
    seed: int
    delta: float
    ci95: tuple[float, float]
    p: float

    def mark(self) -> str:
        """Stars for significance. No difference is never significant, whatever p says."""
        if self.delta == 0:
            return ""
        return "**" if self.p < 0.01 else "*" if self.p < 0.05 else ""


@dataclass(frozen=True, slots=True)
class MetricInfo:
    """A metric as reports name it. digits: how many are printed after the point."""

    name: str
    label: str
    signature: str
    higher_is_better: bool
    digits: int


@dataclass(frozen=True, slots=True)
class System:
    """One system: its score by metric name and, but for the baseline, its comparisons."""

    name: str
    scores: dict[str, float]
    paired: dict[str, Paired] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ScoredBucket:
    """Scores by metric name of each system, in their order, or None where n is 0.

    low, high: the least and the greatest length, high None where there is no limit.
    """

    name: str
    low: int
    high: int | None
    n: int
    scores: list[dict[str, float | None]]

    def delta(self, system: int, metric: str) -> float | None:
        """That system's score - the first system's, or None where n is 0."""
        score, baseline = self.scores[system][metric], self.scores[0][metric]
        return None if score is None or baseline is None else score - baseline


@dataclass(frozen=True, slots=True)
class ScoreReport:
    """All that one run found. formula: how p was computed; interval_n: samples behind ci95."""

    n: int
    references: list[str]
    metrics: list[MetricInfo]
    systems: list[System]
    buckets: list[ScoredBucket] = field(default_factory=list)
    formula: str = ""
    interval_n: int = 0


def to_json(report: ScoreReport) -> bytes:
    """One JSON object and LF. `paired` of the baseline is empty, a bucket's empty score null."""
    signatures = {metric.name: metric.signature for metric in report.metrics}
    document = {
        "n": report.n,
        "references": report.references,
        "systems": [
            {
                "name": system.name,
                "scores": {
                    name: {"score": score, "signature": signatures[name]}
                    for name, score in system.scores.items()
                },
                "paired": system.paired,
            }
            for system in report.systems
        ],
        "buckets": [_bucket_json(report, bucket) for bucket in report.buckets],
    }
    return orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def _bucket_json(report: ScoreReport, bucket: ScoredBucket) -> dict[str, object]:
    systems = [
        {
            "name": system.name,
            "scores": {
                name: {"score": score, "delta": bucket.delta(i, name)}
                for name, score in bucket.scores[i].items()
            },
        }
        for i, system in enumerate(report.systems)
    ]
    limits = {"low": bucket.low, "high": bucket.high}
    return {"name": bucket.name, **limits, "n": bucket.n, "systems": systems}


def to_tsv(report: ScoreReport) -> bytes:
    """A header, then one line for each bucket, system and metric; bucket `all` is the whole."""
    rows: list[tuple[str, ...]] = [TSV_COLUMNS]
    for system in report.systems:
        for metric in report.metrics:
            comparison = _comparison_cells(system.paired.get(metric.name))
            start = (ALL, str(report.n), system.name, metric.name)
            rows.append((*start, repr(system.scores[metric.name]), *comparison, metric.signature))
    for bucket in report.buckets:
        for i, system in enumerate(report.systems):
            for metric in report.metrics:
                score, delta = bucket.scores[i][metric.name], bucket.delta(i, metric.name)
                start = (bucket.name, str(bucket.n), system.name, metric.name)
                figures = (_figure(score), _figure(delta) if i else "")
                rows.append((*start, *figures, *[""] * 7, metric.signature))
    return b"".join("\t".join(map(printable, row)).encode() + b"\n" for row in rows)


def _comparison_cells(paired: Paired | None) -> tuple[str, ...]:
    if paired is None:
        return ("",) * 8
    numbers = (paired.delta, *paired.ci95, paired.p)
    return (
        *map(repr, numbers),
        paired.test,
        paired.definition,
        str(paired.n),
        str(paired.seed),
    )


def _figure(value: float | None) -> str:
    return NONE if value is None else repr(value)


def to_table(report: ScoreReport) -> bytes:
    """Aligned columns for people: scores, comparisons, buckets, then what the marks mean."""
    parts = [_scores_table(report)]
    if any(system.paired for system in report.systems):
        parts.append(_paired_table(report))
    parts += [_bucket_table(report, metric) for metric in report.metrics if report.buckets]
    parts.append(list(_legend(report)))
    text = "\n\n".join("\n".join(part) for part in parts)
    return text.encode() + b"\n"


def _scores_table(report: ScoreReport) -> list[str]:
    many = len(report.systems) > 1
    margin = " " * 3 if many else ""  # room for the marks
    rows = [["system", *(metric.label for metric in report.metrics)]]
    for system in report.systems:
        row = [system.name]
        for metric in report.metrics:
            scores = [other.scores[metric.name] for other in report.systems]
            best = max(scores) if metric.higher_is_better else min(scores)
            score, paired = system.scores[metric.name], system.paired.get(metric.name)
            stars = paired.mark() if paired else ""
            crown = "^" if many and score == best else ""
            row.append(f"{score:.{metric.digits}f}{(crown + stars):<{len(margin)}}")
        rows.append(row)
    rows[0][1:] = [label + margin for label in rows[0][1:]]
    references = ", ".join(printable(name) for name in report.references)
    return [f"{report.n:,} sentences against {references}", "", *columns(rows)]


def _paired_table(report: ScoreReport) -> list[str]:
    paired = [
        (system.name, metric, system.paired[metric.name])
        for system in report.systems[1:]
        for metric in report.metrics
    ]
    rows = [["system", "metric", "delta", "95 % interval", "p", "definition", "n", "seed"]]
    for name, metric, one in paired:
        low, high = (f"{limit:+.{metric.digits}f}" for limit in one.ci95)
        delta = f"{one.delta:+.{metric.digits}f}"
        shown_p = "<0.0001" if one.p < 0.00005 else f"{one.p:.4f}"
        facts = [one.definition, f"{one.n:,}", str(one.seed)]
        rows.append([name, metric.label, delta, f"[{low}, {high}]", shown_p, *facts])
    title = f"{TESTS[paired[0][2].test]} against {printable(report.systems[0].name)}"
    return [title[0].upper() + title[1:], "", *columns(rows, left=2)]


def _bucket_table(report: ScoreReport, metric: MetricInfo) -> list[str]:
    names = [system.name for system in report.systems]
    rows = [["words", "n", *names]]
    for bucket in report.buckets:
        row = [bucket.name, f"{bucket.n:,}"]
        for i in range(len(names)):
            score, delta = bucket.scores[i][metric.name], bucket.delta(i, metric.name)
            shown = NONE if score is None else f"{score:.{metric.digits}f}"
            change = "" if i == 0 or delta is None else f" ({delta:+.{metric.digits}f})"
            row.append(shown + change)
        rows.append(row)
    return [f"{metric.label} by source length", "", *columns(rows)]


def _legend(report: ScoreReport) -> Iterator[str]:
    compared = [one for system in report.systems for one in system.paired.values()]
    if len(report.systems) > 1:
        yield "^ the best score"
    if compared:
        one, baseline = compared[0], printable(report.systems[0].name)
        yield f"* p < 0.05, ** p < 0.01 against {baseline}: {TESTS[one.test]}"
        yield f"p, {one.definition}: {report.formula}"
        yield (
            f"95 % interval of delta = system - {baseline}: percentile bootstrap, "
            f"{report.interval_n:,} samples, seed {one.seed}"
        )
    for metric in report.metrics:
        better = "" if metric.higher_is_better else " (lower is better)"
        yield f"{metric.label}|{metric.signature}{better}"


def columns(rows: Sequence[Sequence[str]], left: int = 1) -> Iterator[str]:
    """Lines of aligned columns, the first `left` to the left and the others to the right.

    >>> list(columns([["system", "BLEU"], ["a.en", "7.10"]]))
    ['system  BLEU', 'a.en    7.10']
    """
    cells = [[printable(cell) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]))]
    for row in cells:
        aligned = [
            cell.ljust(width) if i < left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  ".join(aligned).rstrip()


FORMATS = {"table": to_table, "tsv": to_tsv, "json": to_json}
