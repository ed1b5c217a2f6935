"""What `synmt mixup score` reports, and its three forms: a table, TSV, JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import orjson

from synmt_cli.errors import printable
from synmt_cli.formats.reports.scores import ALL, columns

COUNTS = ("right_active", "right_passive", "wrong_active", "wrong_passive", "undecided")


@dataclass(frozen=True, slots=True)
class Judged:
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


@dataclass(frozen=True, slots=True)
class Scored:
    """One system."""

    name: str
    judged: list[Judged]

    def groups(self) -> Iterator[MixupGroup]:
        """Every construction in both orders, then both orders over all."""
        orders = list(dict.fromkeys(one.order for one in self.judged))
        for construction in (*dict.fromkeys(one.construction for one in self.judged), ALL):
            for order in orders:
                inside = [
                    one.outcome
                    for one in self.judged
                    if one.order == order and construction in (ALL, one.construction)
                ]
                counts = {name: inside.count(name) for name in COUNTS}
                yield MixupGroup(construction, order, counts)


def to_json(systems: list[Scored]) -> bytes:
    """One JSON object and LF, with every sentence."""
    document = {
        "systems": [
            {
                "name": one.name,
                "groups": [
                    {
                        "construction": group.construction,
                        "order": group.order,
                        "n": group.n,
                        "right": group.right,
                        **group.counts,
                        "accuracy": group.accuracy,
                    }
                    for group in one.groups()
                ],
                "sentences": one.judged,
            }
            for one in systems
        ]
    }
    return orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def to_tsv(systems: list[Scored]) -> bytes:
    """A line for each system and group, under a header."""
    rows = [["system", "construction", "order", "n", "right", *COUNTS, "accuracy"]]
    for one in systems:
        for group in one.groups():
            counts = map(str, (group.n, group.right, *group.counts.values()))
            rows.append([one.name, group.construction, group.order, *counts, repr(group.accuracy)])
    return b"".join("\t".join(map(printable, row)).encode() + b"\n" for row in rows)


def to_table(systems: list[Scored]) -> bytes:
    """Aligned columns for people."""
    marked = {"object": "object only", "subject": "subject only", "both": "both", ALL: ALL}
    head = ["right", "%", "active", "passive", "wrong", "active", "passive", "undecided"]
    rows = [["system", "marked", "order", "n", *head]]
    for one in systems:
        for group in one.groups():
            right, passive, wrong, wrong_passive, undecided = group.counts.values()
            start = [one.name, marked[group.construction], group.order.upper(), str(group.n)]
            figures = (right, passive, wrong + wrong_passive, wrong, wrong_passive, undecided)
            shown = [str(group.right), f"{group.accuracy:.1f}", *map(str, figures)]
            rows.append([*start, *shown])
    return "\n".join(columns(rows, left=3)).encode() + b"\n"


FORMATS = {"table": to_table, "tsv": to_tsv, "json": to_json}
