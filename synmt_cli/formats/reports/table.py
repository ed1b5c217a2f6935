"""The one writer of results: as text for people, for papers and pages, and for programs.

A result says what it has for each form (`Tabular`); the layout is decided here. The same
result gives the same bytes wherever it is printed: no width, no colour, no locale. Text, LaTeX
and Markdown show the tables and notes, with rounded figures; TSV and CSV have every figure at
full precision, and JSON the result as an object.
"""

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from itertools import chain
from typing import Any, NamedTuple, Protocol

import orjson

from synmt_cli.errors import printable
from synmt_cli.io.display_width import width

ALL, NOT_AVAILABLE = "all", "n/a"
BEST = "^"  # the mark of the best value, the first of its marks; LaTeX and Markdown set it bold
PAGE = 40  # rows that fit a page of LaTeX; a longer table is broken over pages
Value = str | int | float | None  # None: not defined


class Cell(NamedTuple):
    """A value and how people read it. spec: as `format` takes it.

    after: marks (BEST, stars) or a remark that follow the value. room: how many characters stay
    free for them, so that the values of a column are aligned whatever their marks are.
    """

    value: Value
    spec: str = ""
    after: str = ""
    room: int = 0

    @property
    def text(self) -> str:
        """The value as it is shown, without what comes after it."""
        return NOT_AVAILABLE if self.value is None else format(self.value, self.spec)


Row = Sequence[Cell | Value]
Record = dict[str, Value]  # column -> plain value; a column that does not apply is left out
Notes = list[str]  # lines of text between tables


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under a header. left: how many columns, the first ones, are aligned to the left.

    prose: a column of running text, which LaTeX breaks into lines; -1 is none.
    """

    header: Row
    rows: Sequence[Row]
    left: int = 1
    title: str = ""
    prose: int = -1

    def cells(self) -> Iterator[list[Cell]]:
        """The header, then each row."""
        for row in (self.header, *self.rows):
            yield [one if isinstance(one, Cell) else Cell(one) for one in row]


class Tabular(Protocol):
    """A result that can be written in every form."""

    def sections(self) -> Iterable[Table | Notes]:
        """The tables and notes that people read."""

    def records(self) -> Iterable[Record]:
        """Every figure, as rows of one table."""


def as_text(result: Tabular) -> bytes:
    """Titles, tables with aligned columns, and notes, with an empty line between them."""
    blocks: list[list[str]] = []
    for section in result.sections():
        if isinstance(section, Table):
            blocks += [[section.title]] if section.title else []
            blocks.append(aligned(section))
        else:
            blocks.append(section)
    return "\n\n".join("\n".join(map(printable, block)) for block in blocks).encode() + b"\n"


def aligned(table: Table) -> list[str]:
    """The lines of a table's header and rows.

    >>> aligned(Table(["system", "BLEU"], [["a.en", Cell(7.1, ".2f")]]))
    ['system  BLEU', 'a.en    7.10']
    """
    rows = [
        [printable(cell.text) + printable(cell.after).ljust(cell.room) for cell in row]
        for row in table.cells()
    ]
    widths = [max(map(width, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        spaces = [" " * (room - width(text)) for text, room in zip(row, widths, strict=True)]
        left = [text + space for text, space in zip(row, spaces, strict=True)]
        right = [space + text for text, space in zip(row, spaces, strict=True)]
        lines.append("  ".join(left[: table.left] + right[table.left :]).rstrip())
    return lines


def as_tsv(result: Tabular) -> bytes:
    """The records under a header, with figures at full precision. Missing values are empty."""
    return "".join("\t".join(row) + "\n" for row in _flat(result)).encode()


def shares(what: str, counts: Mapping[str, int]) -> bytes:
    r"""TSV of counts with their shares of the sum in percent. what: the header of the names.

    >>> shares("bucket", {"0-19": 3, "20+": 1})
    b'bucket\tn\t%\n0-19\t3\t75.0\n20+\t1\t25.0\n'
    """
    total = max(sum(counts.values()), 1)
    rows = [f"{name}\t{n}\t{100 * n / total:.1f}\n" for name, n in counts.items()]
    return "".join([f"{what}\tn\t%\n", *rows]).encode()


def as_csv(result: Tabular) -> bytes:
    """The same rows as `as_tsv`, with commas, quoted where a value needs it (RFC 4180), and LF."""
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows(_flat(result))
    return file.getvalue().encode()


def _flat(result: Tabular) -> Iterator[list[str]]:
    records = [*result.records()]
    columns = list(dict.fromkeys(name for record in records for name in record))
    yield [*map(printable, columns)]
    for record in records:
        yield [printable(Cell(record.get(name, "")).text) for name in columns]


def as_markdown(result: Tabular) -> bytes:
    """Tables with pipes (GitHub Flavored Markdown), titles in bold, notes as lists.

    A first note that ends in a colon is the title of its list.
    """
    blocks = []
    for section in result.sections():
        if isinstance(section, Table):
            blocks += [f"**{_in_markdown(section.title)}**"] if section.title else []
            blocks.append("\n".join(_pipes(section)))
        else:
            title = [first for first in section[:1] if first.endswith(":")]
            blocks += map(_in_markdown, title)
            notes = map(_in_words, section[len(title) :])
            blocks.append("\n".join(f"- {_in_markdown(note)}" for note in notes))
    return "\n\n".join(blocks).encode() + b"\n"


def _pipes(table: Table) -> Iterator[str]:
    right = len(table.header) - table.left
    rules = ["| " + " | ".join([":--"] * table.left + ["--:"] * right) + " |"]
    rows = (map(_markdown_cell, row) for row in table.cells())
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    yield from chain(lines[:1], rules, lines[1:])


def _markdown_cell(cell: Cell) -> str:
    best = cell.after.startswith(BEST)
    text = _in_markdown(cell.text)
    return (f"**{text}**" if best else text) + _in_markdown(cell.after.removeprefix(BEST))


def _in_markdown(text: str) -> str:
    r"""Text as Markdown that shows it.

    >>> print(_in_markdown("a|b_c*"), _in_markdown("1. x"))
    a\|b\_c\* 1\. x
    """
    escaped = re.sub(r"([\\`*_\[\]<>|~$&#])", r"\\\1", printable(text))
    return re.sub(r"^(\d*)([.)+-])(?=\s)", r"\1\\\2", escaped)


def as_latex(result: Tabular) -> bytes:
    r"""Tables for \input, in the style of booktabs; the notes stand under the last table.

    The first lines are comments that name the packages. A table of more than PAGE rows is a
    longtable.
    """
    tables: list[tuple[Table | None, list[Notes]]] = []
    for section in result.sections():
        if isinstance(section, Table):
            tables.append((section, []))
        else:
            if not tables:
                tables.append((None, []))
            tables[-1][1].append(section)
    blocks = [_environment(table, notes) if table else _footnotes(notes) for table, notes in tables]
    text = "\n".join("\n".join(block) for block in blocks)
    long = any(table is not None and len(table.rows) > PAGE for table, _ in tables)
    head = r"% needs \usepackage{booktabs}" + (r" and \usepackage{longtable}" if long else "")
    if not text.isascii():
        head += (
            "\n% needs \\usepackage[T1]{fontenc}; for scripts other than Latin, LuaLaTeX or XeLaTeX"
        )
    return f"{head}\n{text}\n".encode()


def _environment(table: Table, notes: Sequence[Notes]) -> list[str]:
    header, *rows = table.cells()
    marked = [any(cell.after for cell in column) for column in zip(header, *rows, strict=True)]
    spec = "".join(
        r"p{0.5\linewidth}"
        if i == table.prose
        else "l"
        if i < table.left
        else "r@{}l"
        if m
        else "r"
        for i, m in enumerate(marked)
    )
    lines = [" & ".join(map(_latex_cell, row, marked)) + r" \\" for row in rows]
    top = [r"\toprule", " & ".join(map(_latex_head, header, marked)) + r" \\", r"\midrule"]
    caption = rf"\caption{{{_in_latex(table.title)}}}" if table.title else ""
    if len(rows) > PAGE:
        start = [rf"\begin{{longtable}}{{{spec}}}", *([caption + r" \\"] if caption else [])]
        lines = [*start, *top, r"\endhead", *lines, r"\bottomrule", r"\end{longtable}"]
        return [*lines, *_footnotes(notes)]
    start = [r"\begin{table}", r"\centering", *([caption] if caption else [])]
    lines = [rf"\begin{{tabular}}{{{spec}}}", *top, *lines, r"\bottomrule", r"\end{tabular}"]
    return [*start, *lines, *_footnotes(notes), r"\end{table}"]


def _footnotes(notes: Sequence[Notes]) -> list[str]:
    paragraphs = [" \\\\\n".join(_in_latex(_in_words(note)) for note in one) for one in notes]
    style = r"\footnotesize\raggedright\noindent"
    return [rf"\par\smallskip{{{style} {lines}\par}}" for lines in paragraphs if lines]


def _latex_head(cell: Cell, marked: bool) -> str:
    text = _in_latex(cell.text + cell.after)
    return rf"\multicolumn{{2}}{{c}}{{{text}}}" if marked else text


def _latex_cell(cell: Cell, marked: bool) -> str:
    """marked: the column is two columns, of values that end and marks that begin at one edge."""
    text, marks = _in_latex(cell.text), cell.after.removeprefix(BEST)
    if marks != cell.after:
        text = rf"\textbf{{{text}}}"
    if marks and not marks.strip("*"):
        return rf"{text} & \textsuperscript{{{marks}}}"
    space = "~" if marks.startswith(" ") else ""  # TeX ignores one at the edge of a column
    return f"{text} & {space}{_in_latex(marks.lstrip())}" if marked else text


def _in_words(note: str) -> str:
    """A note for the forms that print the best value bold."""
    return "bold: " + note[2:] if note.startswith(f"{BEST} ") else note


MINUS = r"(?<![\w.)\]-])-(?=\.?\d)|(?<=\s)-(?=\s)"  # before a number, or between two things
LATEX = {
    **{char: f"\\{char}" for char in "#$%&_{}"},
    **{char: f"{{{char}}}" for char in "[]*"},  # \\ before them would take them as its arguments
    "\\": r"\textbackslash{}",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\char34{}",  # babel gives it a meaning of its own in some languages
    "`": r"\textasciigrave{}",
    "±": r"$\pm$",
    "×": r"$\times$",
    "≥": r"$\geq$",
    "≤": r"$\leq$",
    "−": "$-$",
    "Δ": r"$\Delta$",
    "σ": r"$\sigma$",
    "–": r"\textendash{}",
    "…": r"\dots{}",
}


def _in_latex(text: str) -> str:
    r"""Text as LaTeX that shows it: special characters, no ligatures of hyphens, minus signs.

    >>> print(_in_latex("a_b"), _in_latex("[-0.5, +1]"), _in_latex("a--b"))
    a\_b {[}$-$0.5, +1{]} a-{}-b
    """
    words = re.sub(MINUS, "−", printable(text))
    return re.sub("-(?=-)", "-{}", "".join(LATEX.get(char, char) for char in words))


def as_json(result: Tabular) -> bytes:
    """One JSON object and LF. A dataclass is its `document()`, if it has one, or its fields.

    A figure that is not defined is null. Bytes of file names that are not UTF-8 are escaped.
    """
    return orjson.dumps(_document(result), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def _document(one: Any) -> Any:
    if isinstance(one, str):
        return one.encode(errors="backslashreplace").decode()
    if hasattr(one, "document"):
        return _document(one.document())
    if is_dataclass(one):
        return {field.name: _document(getattr(one, field.name)) for field in fields(one)}
    if isinstance(one, Mapping):
        return {_document(name): _document(value) for name, value in one.items()}
    if isinstance(one, Sequence):
        return [_document(value) for value in one]
    return one


FORMATS = {
    "table": as_text,
    "tsv": as_tsv,
    "csv": as_csv,
    "json": as_json,
    "latex": as_latex,
    "markdown": as_markdown,
}
