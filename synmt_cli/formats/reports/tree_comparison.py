"""The report of `synmt evaltree` on several parsers. Figures are F1 in percent."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from synmt_cli.errors import counted
from synmt_cli.formats.reports.score.scores import LEAST, MARKS
from synmt_cli.formats.reports.score.systems import TESTS, MetricInfo, PairedComparison, shown_p
from synmt_cli.formats.reports.table import ALL, BEST, Cell, Notes, Record, Row, Table, Value
from synmt_cli.formats.reports.tree_scores import LABELS, MatchCount, TreeGroup, extent, settings

KNOWN_BY = frozenset({"gold", "subtypes", "systems"})  # fields, for `synmt info`
METRICS = {name: MetricInfo(name, label, "", True, 2) for name, label in LABELS.items()}
BY_GROUP = ("uas", "las")  # metrics that are shown for each group


@dataclass(frozen=True, slots=True)
class ComparedParser:
    """One parser. tested: its comparisons by metric, none for the first parser."""

    name: str
    scores: dict[str, MatchCount]
    groups: list[TreeGroup]
    tested: dict[str, PairedComparison]

    def f1(self, metric: str) -> float | None:
        """Its F1 by a metric."""
        return self.scores[metric].figure("f1")


@dataclass(frozen=True, slots=True)
class ParserReport:
    """Parsers in the order given. by: the kind of grouping, or None.

    units: how many stretches of text the test draws from. punct: whether punctuation counts.
    """

    gold: str
    subtypes: bool
    units: int
    parsers: list[ComparedParser]
    by: str | None = None
    formula: str = ""
    interval_n: int = 0
    punct: bool = True

    def scored(self) -> list[ComparedParser]:
        """All that have scores of their own: the parsers."""
        return self.parsers

    @property
    def pairs(self) -> list[PairedComparison]:
        """Every comparison."""
        return [pair for one in self.parsers for pair in one.tested.values()]

    @property
    def corrected(self) -> bool:
        """Whether p is corrected for the number of comparisons."""
        return any(pair.corrected is not None for pair in self.pairs)

    def sections(self) -> Iterator[Table | Notes]:
        """F1 of every metric, the comparisons, the groups, then what the marks mean."""
        yield self._scores()
        if any(one.tested for one in self.parsers):
            yield self._comparisons()
        if self.by:
            yield from map(self._groups, BY_GROUP)
        yield [*self._legend()]

    def _scores(self) -> Table:
        rows: list[Row] = []
        for metric, label in LABELS.items():
            figures = [one.f1(metric) for one in self.parsers]
            best = max((n for n in figures if n is not None), default=None)
            best = None if figures.count(best) == len(figures) else best
            row = [Cell(label)]
            for one, figure in zip(self.parsers, figures, strict=True):
                marks = BEST * (figure is not None and figure == best)
                marks += one.tested[metric].mark() if metric in one.tested else ""
                row.append(Cell(figure, ".2f", marks, MARKS))
            rows.append(row)
        whole = self.parsers[0].scores
        how = settings(self.subtypes, self.punct)
        header: Row = ["F1", *(Cell(one.name, room=MARKS) for one in self.parsers)]
        return Table(header, rows, title=f"against {self.gold}: {extent(whole)}; {how}")

    def _comparisons(self) -> Table:
        rows: list[Row] = []
        for one in self.parsers[1:]:
            for metric, pair in one.tested.items():
                info = METRICS[metric]
                delta, interval = info.difference(pair.delta), info.interval(pair.ci95, "+")
                shown: list[Cell | Value] = [delta, interval, shown_p(pair.p)]
                shown += [shown_p(pair.corrected)] if self.corrected else []
                facts = (pair.definition, Cell(pair.n, ","), pair.seed)
                rows.append([one.name, info.label, *shown, *facts])
        p = ["p", "p (Holm)"] if self.corrected else ["p"]
        names = ["delta", "95 % interval", *p, "definition", "n", "seed"]
        title = f"{TESTS[pair.test]} against {self.parsers[0].name}"
        return Table(["system", "metric", *names], rows, 2, title[0].upper() + title[1:])

    def _groups(self, metric: str) -> Table:
        """A row for each group of any parser, with F1, or with recall where F1 has no meaning."""
        rows: list[Row] = []
        for name, groups in self._by_name():
            count = next(one for one in groups if one is not None).scores[metric]
            row: list[Cell] = [Cell(name), Cell(count.gold, ",")]
            figure = "recall" if count.system is None else "f1"
            figures = [None if one is None else one.scores[metric].figure(figure) for one in groups]
            for i, value in enumerate(figures):
                first = figures[0]
                change = ""
                if i and first is not None and value is not None:
                    change = f" ({value - first:+.2f})"
                row.append(Cell(value, ".2f", change))
            rows.append(row)
        label = f"{LABELS[metric]} {'F1' if figure == 'f1' else figure}"
        header = [self.by or "", "words", *(one.name for one in self.parsers)]
        return Table(header, rows, title=f"{label} by {self.by}")

    def _by_name(self) -> Iterator[tuple[str, Sequence[TreeGroup | None]]]:
        by_name = [{group.name: group for group in one.groups} for one in self.parsers]
        for name in dict.fromkeys(name for groups in by_name for name in groups):
            yield name, [groups.get(name) for groups in by_name]

    def _legend(self) -> Iterator[str]:
        yield f"{BEST} the best score"
        for pair in self.pairs[:1]:
            first = self.parsers[0].name
            stars = f"* p < 0.05, ** p < 0.01 against {first}"
            if self.corrected:
                stars += f", by p (Holm): corrected for {len(self.pairs)} comparisons"
            yield stars
            yield f"p, {pair.definition}: {self.formula}, over {self.units:,} stretches of text"
            families = {"": len(self.pairs)} if self.corrected else {}
            if least := pair.least(families):
                yield LEAST.format(least)
            yield (
                f"95 % interval of delta = system - {first}: percentile bootstrap, "
                f"{counted(self.interval_n, 'sample')}, seed {pair.seed}"
            )

    def records(self) -> Iterator[Record]:
        """One for each parser, group and metric; the group of everything is `all`."""
        for one in self.parsers:
            for group in (TreeGroup(ALL, None, one.scores), *one.groups):
                for metric, count in group.scores.items():
                    start: Record = {"parser": one.name, "group": group.name, "metric": metric}
                    tested = one.tested.get(metric) if group.name == ALL else None
                    yield {**start, **count.document(), **(tested.record() if tested else {})}

    def document(self) -> dict[str, object]:
        """Each parser with its scores, groups and comparisons with the first."""
        systems = [
            {"name": one.name, "scores": one.scores, "groups": one.groups, "paired": one.tested}
            for one in self.parsers
        ]
        head = {"gold": self.gold, "subtypes": self.subtypes, "by": self.by, "units": self.units}
        last = {"systems": systems, "punct": self.punct}
        return {**head, "formula": self.formula, **last}
