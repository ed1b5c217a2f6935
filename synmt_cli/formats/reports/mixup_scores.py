"""What `synmt mixup score` reports."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from synmt_cli.formats.reports.table import ALL, Cell, Notes, Record, Table, Value

COUNTS = ("right_active", "right_passive", "wrong_active", "wrong_passive", "undecided")
MARKED = {"object": "object only", "subject": "subject only", "both": "both", ALL: ALL}


@dataclass(frozen=True, slots=True)
class JudgedTranslation:
    """One translation. outcome: of COUNTS. reason: why it is undecided."""

    id: str
    construction: str
    order: str
    sentence: str
    translation: str
    outcome: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class MixupGroup:
    """The sentences of one construction and order, `all` for every construction."""

    construction: str
    order: str
    counts: dict[str, int]

    @property
    def n(self) -> int:
        """Sentences."""
        return sum(self.counts.values())

    @property
    def right(self) -> int:
        """Those whose roles are kept, active and passive."""
        return self.counts["right_active"] + self.counts["right_passive"]

    @property
    def accuracy(self) -> float:
        """In percent of all, undecided ones included."""
        return 100 * self.right / self.n

    def document(self) -> dict[str, Value]:
        """Everything, by name."""
        names = {"construction": self.construction, "order": self.order}
        sums = {"n": self.n, "right": self.right}
        return {**names, **sums, **self.counts, "accuracy": self.accuracy}


@dataclass(frozen=True, slots=True)
class JudgedSystem:
    """One system."""

    name: str
    judged: list[JudgedTranslation]

    def groups(self) -> Iterator[MixupGroup]:
        """Every construction in both orders, then both orders over all."""
        orders = list(dict.fromkeys(one.order for one in self.judged))
        for construction in (*dict.fromkeys(one.construction for one in self.judged), ALL):
            for order in orders:
                outcomes = [
                    one.outcome
                    for one in self.judged
                    if one.order == order and construction in (ALL, one.construction)
                ]
                counts = {name: outcomes.count(name) for name in COUNTS}
                yield MixupGroup(construction, order, counts)

    def document(self) -> dict[str, object]:
        """Groups, and every sentence."""
        return {"name": self.name, "groups": [*self.groups()], "sentences": self.judged}


@dataclass(frozen=True, slots=True)
class MixupReport:
    """The systems in the order given."""

    systems: list[JudgedSystem]

    def sections(self) -> Iterator[Table | Notes]:
        """One row for each system and group."""
        rows = []
        for one in self.systems:
            for group in one.groups():
                right, passive, wrong, wrong_passive, undecided = group.counts.values()
                start = (one.name, MARKED[group.construction], group.order.upper(), group.n)
                shown = (group.right, Cell(group.accuracy, ".1f"), right, passive)
                rows.append(
                    (*start, *shown, wrong + wrong_passive, wrong, wrong_passive, undecided)
                )
        figures = ("right", "%", "active", "passive", "wrong", "active", "passive", "undecided")
        yield Table(["system", "marked", "order", "n", *figures], rows, left=3)

    def records(self) -> Iterator[Record]:
        """One for each system and group."""
        for one in self.systems:
            for group in one.groups():
                yield {"system": one.name, **group.document()}
