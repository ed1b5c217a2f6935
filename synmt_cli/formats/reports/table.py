"""The one writer of results: as text for people, as TSV and as JSON for programs.

A result says what it has for each form (`Tabular`); the layout is decided here. The same
result gives the same bytes wherever it is printed: no width, no colour, no locale.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple, Protocol

import orjson

from synmt_cli.errors import printable

ALL, NONE = "all", "n/a"
Value = str | int | float | None  # None: not defined


class Cell(NamedTuple):
    """A value and how people read it. spec: as `format` takes it.

    after: marks or a remark that follow the value. room: how many characters stay free for
    them, so that the values of a column are aligned whatever their marks are.
    """

    value: Value
    spec: str = ""
    after: str = ""
    room: int = 0

    @property
    def text(self) -> str:
        """The value as it is shown, without what comes after it."""
        return NONE if self.value is None else format(self.value, self.spec)


Row = Sequence[Cell | Value]
Record = dict[str, Value]  # column -> plain value; a column that does not apply is left out
Notes = list[str]  # lines of text between tables


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under a header. left: how many columns, the first ones, are aligned to the left."""

    header: Row
    rows: Sequence[Row]
    left: int = 1
    title: str = ""

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
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        left = [text.ljust(width) for text, width in zip(row, widths, strict=True)]
        right = [text.rjust(width) for text, width in zip(row, widths, strict=True)]
        lines.append("  ".join(left[: table.left] + right[table.left :]).rstrip())
    return lines


def as_tsv(result: Tabular) -> bytes:
    """The records under a header, with figures at full precision. What a record lacks is empty."""
    records = [*result.records()]
    columns = list(dict.fromkeys(name for record in records for name in record))
    rows = [[Cell(record.get(name, "")).text for name in columns] for record in records]
    lines = ["\t".join(map(printable, row)) + "\n" for row in [columns, *rows]]
    return "".join(lines).encode()


def as_json(result: Tabular) -> bytes:
    """One JSON object and LF: of each dataclass `document()`, if it has that, or its fields.

    A figure that is not defined is null.
    """
    layout = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
    return orjson.dumps(result, _document, layout | orjson.OPT_PASSTHROUGH_DATACLASS)


def _document(one: Any) -> Any:
    if hasattr(one, "document"):
        return one.document()
    return {field.name: getattr(one, field.name) for field in fields(one)}


FORMATS = {"table": as_text, "tsv": as_tsv, "json": as_json}
