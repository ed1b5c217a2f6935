"""The report of `synmt evaltree`. Figures are in percent."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field

from synmt_cli.errors import counted
from synmt_cli.formats.reports.table import ALL, Cell, Notes, Record, Row, Table, Value

KNOWN_BY = frozenset({"gold", "subtypes", "scores"})  # fields, for `synmt info`
LABELS = {
    "tokens": "Tokens",
    "sentences": "Sentences",
    "words": "Words",
    "upos": "UPOS",
    "xpos": "XPOS",
    "ufeats": "UFeats",
    "alltags": "AllTags",
    "lemmas": "Lemmas",
    "uas": "UAS",
    "las": "LAS",
    "la": "LA",
    "clas": "CLAS",
    "mlas": "MLAS",
    "blex": "BLEX",
}
FIGURES = ("precision", "recall", "f1", "aligned_accuracy")
NAMES = ("precision", "recall", "F1")  # the first figures, as tables name them
# The columns of groups in tables: counts, then metrics and figures. JSON and TSV have all.
COUNTS = {
    "length": ("sentences", "words"),
    "deprel": ("gold", "system"),
    "upos": ("words",),
    "distance": ("gold", "system"),
}
SHOWN = {
    "length": [(metric, "f1") for metric in ("uas", "las", "la", "clas")],
    "deprel": [*(("las", figure) for figure in FIGURES[:3]), ("uas", "recall")],
    "upos": [(metric, "f1") for metric in ("uas", "las", "la", "upos")],
    "distance": [(metric, figure) for metric in ("uas", "las") for figure in FIGURES[:3]],
}


@dataclass(frozen=True, slots=True)
class MatchCount:
    """How many are correct, and how many there are in gold, in system, and aligned.

    A count that makes no sense is None, and so is a figure that needs it, or that would divide
    by 0. precision = correct / system, recall = correct / gold,
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

    def cell(self, name: str) -> Cell:
        """One of FIGURES as a table shows it."""
        return Cell(self.figure(name), ".2f")

    def document(self) -> dict[str, Value]:
        """FIGURES and the counts they are made of."""
        return {**{name: self.figure(name) for name in FIGURES}, **asdict(self)}


def extent(scores: Mapping[str, MatchCount]) -> str:
    """How much was compared, for titles."""
    return ", ".join(counted(scores[f"{what}s"].gold, what) for what in ("sentence", "word"))


def settings(subtypes: bool, punct: bool) -> str:
    """How words are compared, for titles."""
    labels = "labels with subtypes" if subtypes else "universal labels"
    return labels if punct else f"{labels}, without punctuation"


@dataclass(frozen=True, slots=True)
class TreeGroup:
    """Words that are counted together. sentences: how many, None if they are not counted."""

    name: str
    sentences: int | None
    scores: dict[str, MatchCount]

    def count(self, name: str) -> Cell:
        """One of COUNTS."""
        las = self.scores["las"]
        counts = {"sentences": self.sentences, "words": las.gold, "gold": las.gold}
        return Cell(counts.get(name, las.system), ",")


@dataclass(frozen=True, slots=True)
class TreeReport:
    """The results of one comparison. by: the kind of grouping or, without groups, None.

    punct: whether punctuation counts.
    """

    gold: str
    system: str
    subtypes: bool
    scores: dict[str, MatchCount]
    by: str | None = None
    groups: list[TreeGroup] = field(default_factory=list)
    punct: bool = True

    def scored(self) -> list["TreeReport"]:
        """All that have scores of their own: this report."""
        return [self]

    def sections(self) -> Iterator[Table | Notes]:
        """Every metric, then the groups."""
        rows: list[Row] = []
        for metric, count in self.scores.items():
            aligned = count.cell("aligned_accuracy") if count.aligned else ""
            rows.append([LABELS[metric], *map(count.cell, FIGURES[:3]), aligned])
        how = settings(self.subtypes, self.punct)
        title = f"{self.system} against {self.gold}: {extent(self.scores)}; {how}"
        yield Table(["metric", *NAMES, "aligned"], rows, title=title)
        if self.by:
            names = dict(zip(FIGURES, NAMES, strict=False))
            shown = [f"{LABELS[metric]} {names[figure]}" for metric, figure in SHOWN[self.by]]
            rows = [
                [
                    group.name,
                    *map(group.count, COUNTS[self.by]),
                    *(group.scores[metric].cell(figure) for metric, figure in SHOWN[self.by]),
                ]
                for group in self.groups
            ]
            yield Table([self.by, *COUNTS[self.by], *shown], rows)

    def records(self) -> Iterator[Record]:
        """One for each group and metric; the group of everything is `all`."""
        for group in (TreeGroup(ALL, None, self.scores), *self.groups):
            for metric, count in group.scores.items():
                yield {"group": group.name, "metric": metric, **count.document()}
