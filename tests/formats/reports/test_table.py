"""The writer of results: alignment, marks, empty and undefined values, and room for more forms."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import dataclass

from synmt_cli.formats.reports.table import Cell, Table, aligned, as_json, as_text, as_tsv


@dataclass(frozen=True)
class Measured:
    name: str
    score: float | None

    def document(self):
        return {"name": self.name, "figure": self.score}


@dataclass(frozen=True)
class Report:
    measured: list[Measured]

    def sections(self):
        rows = [[one.name, Cell(one.score, ".2f", after="*", room=2)] for one in self.measured]
        yield Table(["name", Cell("score", room=2)], rows, title="Two\tnames")
        yield ["* a mark", "and a note"]

    def records(self):
        for one in self.measured:
            yield {"name": one.name, "score": one.score}
        yield {"name": "n", "n": len(self.measured)}


REPORT = Report([Measured("a\nb", 7.125), Measured("c", None)])


def test_text_aligns_values_without_their_marks():
    assert as_text(REPORT).decode() == (
        "Two\\tnames\n\nname  score\na\\nb   7.12*\nc       n/a*\n\n* a mark\nand a note\n"
    )


def test_left_columns_and_remarks():
    table = Table(["a", "b", "c"], [["x", "y", Cell(1234, ",", after=" (+1)")]], left=2)
    assert aligned(table) == ["a  b           c", "x  y  1,234 (+1)"]


def test_tsv_has_full_figures_and_every_column():
    assert as_tsv(REPORT) == b"name\tscore\tn\na\\nb\t7.125\t\nc\tn/a\t\nn\t\t2\n"


def test_json_is_of_fields_or_of_the_document():
    assert json.loads(as_json(REPORT)) == {
        "measured": [{"name": "a\nb", "figure": 7.125}, {"name": "c", "figure": None}]
    }


def as_csv(result):
    records = [*result.records()]
    file = io.StringIO()
    writer = csv.DictWriter(file, dict.fromkeys(name for one in records for name in one))
    writer.writeheader()
    writer.writerows(records)
    return file.getvalue()


def as_markdown(result):
    blocks = []
    for section in result.sections():
        if isinstance(section, Table):
            header, *rows = [
                "| " + " | ".join(cell.text + cell.after for cell in row) + " |"
                for row in section.cells()
            ]
            rule = "|" + "---|" * section.left + "--:|" * (len(section.header) - section.left)
            blocks += [f"**{section.title}**", "\n".join([header, rule, *rows])]
        else:
            blocks.append("  \n".join(section))
    return "\n\n".join(blocks)


def test_a_further_form_is_one_more_function():
    assert as_csv(REPORT) == 'name,score,n\r\n"a\nb",7.125,\r\nc,,\r\nn,,2\r\n'
    assert as_markdown(REPORT).split("\n\n")[1:] == [
        "| name | score |\n|---|--:|\n| a\nb | 7.12* |\n| c | n/a* |",
        "* a mark  \nand a note",
    ]
