"""The writer of results: alignment, marks, empty and undefined values, special characters."""

from __future__ import annotations

import csv
import io
import json
import shutil
import subprocess
from dataclasses import dataclass

import pytest

from synmt_cli.formats.reports.table import (
    Cell,
    Table,
    aligned,
    as_csv,
    as_json,
    as_latex,
    as_markdown,
    as_text,
    as_tsv,
)


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


def test_columns_are_those_of_a_terminal():
    """A wide character takes two of them, a mark on a letter none."""
    rows = [["犬犬", "1"], ["e" + chr(0x301), "20"], ["abc", "犬"]]
    table = Table(["system", "n"], rows)
    assert aligned(table) == ["system   n", "犬犬     1", f"{rows[1][0]}       20", "abc     犬"]


def test_tsv_has_full_figures_and_every_column():
    assert as_tsv(REPORT) == b"name\tscore\tn\na\\nb\t7.125\t\nc\tn/a\t\nn\t\t2\n"


def test_json_is_of_fields_or_of_the_document():
    assert json.loads(as_json(REPORT)) == {
        "measured": [{"name": "a\nb", "figure": 7.125}, {"name": "c", "figure": None}]
    }


def test_csv_has_the_rows_of_tsv():
    tsv = [line.split("\t") for line in as_tsv(REPORT).decode().splitlines()]
    assert [*csv.reader(io.StringIO(as_csv(REPORT).decode(), newline=""))] == tsv
    quoted = as_csv(Report([Measured('a,"b"', 1.5)])).decode()
    assert quoted.split("\n")[1] == '"a,""b""",1.5,'


def test_markdown_shows_every_character():
    assert as_markdown(REPORT).decode() == (
        "**Two\\\\tnames**\n\n"
        "| name | score |\n| :-- | --: |\n| a\\\\nb | 7.12\\* |\n| c | n/a\\* |\n\n"
        "- \\* a mark\n- and a note\n"
    )


class WithAnswer(Report):
    """A report with its table, its notes, and notes under a title of their own."""

    def sections(self):
        yield from super().sections()
        yield ["In words:", "a_b: better"]


class NotesAlone:
    def sections(self):
        yield ["first"]
        yield ["second"]


def test_a_note_that_ends_in_a_colon_is_the_title_of_its_list():
    text = as_markdown(WithAnswer(REPORT.measured)).decode()
    assert text.endswith("- \\* a mark\n- and a note\n\nIn words:\n\n- a\\_b: better\n")


def test_latex_has_every_note():
    text = as_latex(WithAnswer(REPORT.measured)).decode()
    _, notes = text.split("\\end{tabular}\n")
    style = "\\par\\smallskip{\\footnotesize\\raggedright\\noindent "
    assert notes == (
        f"{style}{{*}} a mark \\\\\nand a note\\par}}\n"
        f"{style}In words: \\\\\na\\_b: better\\par}}\n\\end{{table}}\n"
    )
    alone = as_latex(NotesAlone()).decode()
    assert [alone.count(note) for note in ("first", "second", "tabular")] == [1, 1, 0]


HOSTILE = "\\ # $ % & _ { } [ ] * ^ ~ < > | \" ` ' -- --- ?` ß ± Δ σ … +1 -2.5 \\input{x} %"


@dataclass(frozen=True)
class Hostile:
    """Names of every special character, in every place where a name can stand."""

    n: int

    def sections(self):
        rows = [[HOSTILE, "[a", Cell(-1.5, ".2f", "^**", 3)], ["*", "]", Cell(None)]] * self.n
        yield Table([HOSTILE, "*", "^"], rows, left=2, title=HOSTILE, prose=1)
        yield ["^ the best score", "* p < 0.05", HOSTILE]


def test_latex_marks_the_best_and_escapes_the_rest():
    text = as_latex(Hostile(1)).decode()
    assert text.startswith("% needs \\usepackage{booktabs}\n% needs \\usepackage[T1]{fontenc}")
    assert "{[}a & \\textbf{$-$1.50} & \\textsuperscript{**} \\\\\n{*} & {]} & n/a &  \\\\" in text
    assert "\\begin{tabular}{lp{0.5\\linewidth}r@{}l}" in text
    assert "bold: the best score \\\\\n{*} p \\textless{} 0.05" in text
    assert "-{}-{}- ?\\textasciigrave{} ß $\\pm$ $\\Delta$ $\\sigma$ \\dots{} +1 $-$2.5" in text
    assert "longtable" not in text
    assert "longtable" in as_latex(Hostile(30)).decode()


@pytest.mark.parametrize("n", [1, 30])
def test_latex_compiles_as_it_is(tmp_path, n):
    """It needs only the packages of the header's comments. The text of the page has every name."""
    if not (latex := shutil.which("pdflatex")):
        pytest.skip("no pdflatex")
    (tmp_path / "table.tex").write_bytes(as_latex(Hostile(n)))
    packages = "\\usepackage{booktabs,longtable}\\usepackage[T1]{fontenc}"
    page = (
        f"\\documentclass{{article}}{packages}\\begin{{document}}\\input{{table}}\\end{{document}}"
    )
    (tmp_path / "page.tex").write_text(page)
    command = [latex, "-interaction=nonstopmode", "-halt-on-error", "page.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stdout.decode()[-2000:]
    assert b"Missing character" not in done.stdout
