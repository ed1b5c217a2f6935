"""What `synmt evaltree` reports, and its three forms: a table, TSV, JSON.

Figures are in percent.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import orjson

from synmt_cli.errors import printable
from synmt_cli.formats.reports.scores import ALL, NONE, columns

LABELS = {
    "tokens": "Tokens",
    "sentences": "Sentences",
    "words": "Words",
    "upos": "UPOS",
    "uas": "UAS",
    "las": "LAS",
    "la": "LA",
    "clas": "CLAS",
}
FIGURES = ("precision", "recall", "f1", "aligned_accuracy")
COUNTS = ("correct", "gold", "system", "aligned")


@dataclass(frozen=True, slots=True)
class Count:
    """How many are right of those in gold, in system, and of the aligned ones.

    None where it makes no sense: then so are the figures that need it, as are those whose
    whole is 0. precision = correct / system, recall = correct / gold,
    f1 = 2 correct / (gold + system), aligned_accuracy = correct / aligned.
    """

    correct: int
    gold: int
    system: int | None
    aligned: int | None = None

    def figure(self, name: str) -> float | None:
        """One of FIGURES, in percent."""
        if name == "f1":
            whole = None if self.system is None else (self.gold + self.system) / 2
        else:
            wholes = {"precision": self.system, "recall": self.gold}
            whole = wholes.get(name, self.aligned)
        return 100 * self.correct / whole if whole else None


@dataclass(frozen=True, slots=True)
class TreeGroup:
    """Words of one length of sentence or of one label. sentences: None where it has none."""

    name: str
    sentences: int | None
    scores: dict[str, Count]


@dataclass(frozen=True, slots=True)
class TreeReport:
    """All that one run found. by: `length`, `deprel` or, without groups, None."""

    gold: str
    system: str
    subtypes: bool
    scores: dict[str, Count]
    by: str | None = None
    groups: list[TreeGroup] = field(default_factory=list)


def to_json(report: TreeReport) -> bytes:
    """One JSON object and LF. A figure that is not defined is null."""
    document = {
        "gold": report.gold,
        "system": report.system,
        "subtypes": report.subtypes,
        "scores": _scores_json(report.scores),
        "by": report.by,
        "groups": [
            {
                "name": group.name,
                "sentences": group.sentences,
                "scores": _scores_json(group.scores),
            }
            for group in report.groups
        ],
    }
    return orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def _scores_json(scores: dict[str, Count]) -> dict[str, dict[str, float | int | None]]:
    return {
        metric: {
            **{name: count.figure(name) for name in FIGURES},
            **{name: getattr(count, name) for name in COUNTS},
        }
        for metric, count in scores.items()
    }


def to_tsv(report: TreeReport) -> bytes:
    """A line for each group and metric, under a header; the group of everything is `all`."""
    rows = [["group", "metric", *FIGURES, *COUNTS]]
    for name, scores in ((ALL, report.scores), *((one.name, one.scores) for one in report.groups)):
        for metric, count in scores.items():
            figures = (count.figure(one) for one in FIGURES)
            counts = (getattr(count, one) for one in COUNTS)
            shown = (NONE if one is None else repr(one) for one in (*figures, *counts))
            rows.append([printable(name), metric, *shown])
    return "".join("\t".join(row) + "\n" for row in rows).encode()


def to_table(report: TreeReport) -> bytes:
    """Aligned columns for people: every metric, then the groups."""
    parts = [_scores_table(report)]
    if report.by is not None:
        table = {"length": _lengths_table, "deprel": _labels_table}[report.by]
        parts.append(list(columns([*table(report)])))
    return "\n\n".join("\n".join(part) for part in parts).encode() + b"\n"


def _scores_table(report: TreeReport) -> list[str]:
    labels = "labels with subtypes" if report.subtypes else "universal labels"
    n = f"{report.scores['sentences'].gold:,} sentences, {report.scores['words'].gold:,} words"
    title = f"{printable(report.system)} against {printable(report.gold)}: {n}; {labels}"
    rows = [["metric", "precision", "recall", "F1", "aligned"]]
    for metric, count in report.scores.items():
        rows.append([LABELS[metric], *(_shown(count, name) for name in FIGURES)])
    return [title, "", *columns(rows)]


def _lengths_table(report: TreeReport) -> Iterator[list[str]]:
    metrics = ("uas", "las", "la", "clas")
    yield ["length", "sentences", "words", *(f"{LABELS[metric]} F1" for metric in metrics)]
    for group in report.groups:
        scores = group.scores
        counts = f"{group.sentences:,}", f"{scores['words'].gold:,}"
        yield [group.name, *counts, *(_shown(scores[metric], "f1") for metric in metrics)]


def _labels_table(report: TreeReport) -> Iterator[list[str]]:
    yield ["deprel", "gold", "system", "LAS precision", "LAS recall", "LAS F1", "UAS recall"]
    for group in report.groups:
        las = group.scores["las"]
        counts = f"{las.gold:,}", f"{las.system:,}"
        figures = (_shown(las, name) for name in FIGURES[:3])
        yield [group.name, *counts, *figures, _shown(group.scores["uas"], "recall")]


def _shown(count: Count, name: str) -> str:
    value = count.figure(name)
    if value is None:
        return "" if name == "aligned_accuracy" else NONE
    return f"{value:.2f}"


FORMATS = {"table": to_table, "tsv": to_tsv, "json": to_json}
