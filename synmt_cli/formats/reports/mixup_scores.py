"""The report of `synmt mixup score`."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from synmt_cli.formats.reports.table import ALL, Cell, Notes, Record, Row, Table

KNOWN_BY = frozenset({"systems"})  # fields, for `synmt info`
COUNTS = ("right_active", "right_passive", "wrong_active", "wrong_passive", "undecided")
MARKED = {"object": "object only", "subject": "subject only", "both": "both", ALL: ALL}


@dataclass(frozen=True, slots=True)
class JudgedTranslation:
    """One translation. outcome: one of COUNTS. reason: why it is undecided."""

    id: str
    construction: str
    order: str
    sentence: str
    translation: str
    outcome: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class JudgedSystem:
    """One system and its translations."""

    name: str
    judged: list[JudgedTranslation]

    def groups(self) -> Iterator[dict[str, Any]]:
        """Every construction in both orders, then both orders over all constructions.

        Each has n, its number of sentences; how many have each outcome; and `right`, how many keep
        the roles, active or passive. accuracy: their percentage of all sentences, undecided ones
        included.
        """
        orders = list(dict.fromkeys(one.order for one in self.judged))
        for construction in (*dict.fromkeys(one.construction for one in self.judged), ALL):
            for order in orders:
                outcomes = [
                    one.outcome
                    for one in self.judged
                    if one.order == order and construction in (ALL, one.construction)
                ]
                counts = {name: outcomes.count(name) for name in COUNTS}
                n, right = len(outcomes), counts["right_active"] + counts["right_passive"]
                start = {"construction": construction, "order": order, "n": n, "right": right}
                yield {**start, **counts, "accuracy": 100 * right / n}

    def document(self) -> dict[str, object]:
        """Groups, and every sentence."""
        return {"name": self.name, "groups": [*self.groups()], "sentences": self.judged}


@dataclass(frozen=True, slots=True)
class MixupReport:
    """The systems in the order given."""

    systems: list[JudgedSystem]

    def sections(self) -> Iterator[Table | Notes]:
        """One row for each system and group."""
        rows: list[Row] = []
        for one in self.systems:
            for group in one.groups():
                start = (one.name, MARKED[group["construction"]], group["order"].upper())
                right = (group["n"], group["right"], Cell(group["accuracy"], ".1f"))
                voices = [group[name] for name in COUNTS[:4]]
                wrong = sum(voices[2:])
                rows.append((*start, *right, *voices[:2], wrong, *voices[2:], group["undecided"]))
        figures = ("right", "%", "active", "passive", "wrong", "active", "passive", "undecided")
        yield Table(["system", "marked", "order", "n", *figures], rows, left=3)

    def records(self) -> Iterator[Record]:
        """One for each system and group."""
        for one in self.systems:
            for group in one.groups():
                yield {"system": one.name, **group}
