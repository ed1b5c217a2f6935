"""What `synmt mixup score` reports."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass

from synmt_cli.formats.reports.table import ALL, Cell, Notes, Record, Row, Table

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
    """The n sentences of one construction and order, `all` for every construction.

    right: those whose roles are kept, active and passive. accuracy: their percentage of all
    sentences, undecided ones included.
    """

    construction: str
    order: str
    n: int
    right: int
    right_active: int
    right_passive: int
    wrong_active: int
    wrong_passive: int
    undecided: int
    accuracy: float


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
                n, right = len(outcomes), counts["right_active"] + counts["right_passive"]
                accuracy = 100 * right / n
                yield MixupGroup(construction, order, n, right, **counts, accuracy=accuracy)

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
                start = (one.name, MARKED[group.construction], group.order.upper(), group.n)
                right = (group.right, Cell(group.accuracy, ".1f"))
                wrong = (group.wrong_active + group.wrong_passive, group.wrong_active)
                voices = (group.right_active, group.right_passive)
                rows.append((*start, *right, *voices, *wrong, group.wrong_passive, group.undecided))
        figures = ("right", "%", "active", "passive", "wrong", "active", "passive", "undecided")
        yield Table(["system", "marked", "order", "n", *figures], rows, left=3)

    def records(self) -> Iterator[Record]:
        """One for each system and group."""
        for one in self.systems:
            for group in one.groups():
                yield {"system": one.name, **asdict(group)}
