"""Charts as lines of characters, for a terminal without pictures."""

from collections.abc import Iterator, Sequence
from string import ascii_letters

from synmt_cli.core.pictures.charts import Chart, Charts, HeatMap, Series
from synmt_cli.core.pictures.sentences import shown, shown_end, shown_ends
from synmt_cli.io.display_width import cut, padded, width

MARKS = "".join(dict.fromkeys("ox+*#@%&" + ascii_letters))
HEIGHT = 14
SHADES = " .:-=+*#%@"
NAME_ROOM = 30


def text(charts: Charts, columns: int) -> str:
    """The charts one below the other. columns: how wide they may be."""
    lines: list[str] = []
    for chart in charts:
        lines.append("")
        lines += _heat(chart, columns) if isinstance(chart, HeatMap) else _chart(chart, columns)
    return "".join(f"{line.rstrip()}\n" for line in lines[1:])


def _chart(chart: Chart, columns: int) -> Iterator[str]:
    yield shown(chart.y_label, columns)
    yield from _bars(chart, columns) if chart.ticks else _lines(chart, columns)


def _lines(chart: Chart, columns: int) -> Iterator[str]:
    """A grid with a mark for each series; where marks meet, the last one drawn is seen."""
    points = [(x, y) for one in chart.series for x, y in _points(one)]
    low, high = min(y for _, y in points), max(y for _, y in points)
    left, right = min(x for x, _ in points), max(x for x, _ in points)
    room = max(len(f"{value:,.2f}") for value in (low, high))
    n = max(columns - room - 3, 10)
    grid = [[" "] * n for _ in range(HEIGHT)]
    for i, one in enumerate(chart.series):
        for x, y in _points(one):
            column = round((n - 1) * (x - left) / ((right - left) or 1))
            row = round((HEIGHT - 1) * (high - y) / ((high - low) or 1))
            grid[row][column] = MARKS[i % len(MARKS)]
    for row, cells in enumerate(grid):
        value = high - (high - low) * row / (HEIGHT - 1)
        label = f"{value:,.2f}" if row in (0, HEIGHT // 2, HEIGHT - 1) else ""
        yield f"{label:>{room}} |{''.join(cells)}"
    ends = _number(left), shown_end(chart.x_label), _number(right)
    gap = max(n - sum(map(len, ends)), 2)
    yield " " * room + " +" + "-" * n
    yield f"{' ' * room}  {ends[0]}{' ' * (gap // 2)}{ends[1]}{' ' * (gap - gap // 2)}{ends[2]}"
    for i, name in enumerate(shown_ends([one.name for one in chart.series], columns - 4)):
        yield f"  {MARKS[i % len(MARKS)]} {name}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,g}"


def _bars(chart: Chart, columns: int) -> Iterator[str]:
    """A row for each category and series: a mark at its value, a line for its interval."""
    values = [
        one
        for series in chart.series
        for one in (*series.y, *series.low, *series.high, *((0,) if chart.zero else ()))
        if one is not None
    ]
    if not values:
        yield "  nothing was measured"
        return
    low, high = min(values), max(values)
    own = not chart.has_names  # else a row for each system
    several = len(chart.series) > 1 and own
    names = shown_ends([one.replace("\n", " ") for one in chart.starred], NAME_ROOM)
    systems = shown_ends([one.name if several else "" for one in chart.series], NAME_ROOM)
    rooms = [max(map(width, texts), default=0) for texts in (names, systems)]
    n = max(columns - sum(rooms) - 14, 10)
    # The index of each category's point, which may stand a little aside.
    places = [{round(x): i for i, x in enumerate(one.x)} for one in chart.series]
    for category, name in enumerate(names):
        for one, system, place in zip(chart.series, systems, places, strict=True):
            at = place.get(category)
            if at is not None and (own or one.y[at] is not None):
                bar = _bar(one, at, low, (n - 1) / ((high - low) or 1), n, chart.zero)
                start = f"{padded(name, rooms[0])}  {padded(system, rooms[1])}"
                value = one.y[at]
                figure = "-" if value is None else f"{value:.{chart.digits}f}"
                yield f"{start}{figure:>9} {bar}"
                name = ""
    ends = [f"{value:,.{chart.digits}f}" for value in (low, high)]
    yield f"{'':{sum(rooms) + 12}}{ends[0]}{ends[1]:>{max(n - len(ends[0]), 1)}}"


def _bar(one: Series, at: int, low: float, scale: float, n: int, zero: bool) -> str:
    cells = [" "] * n
    ends = [side[at] if at < len(side) else None for side in (one.low, one.high)]
    if ends[0] is not None and ends[1] is not None:
        first, last = (round((end - low) * scale) for end in ends if end is not None)
        cells[first : last + 1] = "-" * (last + 1 - first)
    if zero:
        cells[round(-low * scale)] = "|"
    value = one.y[at]
    if value is not None:
        cells[round((value - low) * scale)] = "o"
    return "".join(cells)


def _heat(one: HeatMap, columns: int) -> Iterator[str]:
    yield shown_end(one.title.replace("\n", ", "), columns)
    names = [cut(shown(name), NAME_ROOM) for name in one.rows]
    room = max(map(width, names), default=0)
    cell = 4 if one.in_percent else 2
    n = max((columns - room - len(" || 0.00")) // cell, 1)
    rest = "…" if n < len(one.columns) else ""
    for i, name in enumerate(names):
        strongest = "" if one.in_percent else f" {max(one.weights[i], default=0):.2f}"
        yield f"{padded(name, room)} |{''.join([*_cells(one, i)][:n])}{rest or '|'}{strongest}"
    yield from _wrapped("columns: ", [shown(name, 16) for name in one.columns[:n]], columns)
    if rest:
        yield f"{n} of {len(one.columns)} columns fit: see a wider terminal, or a picture"
    if not one.in_percent:
        yield "a shade is the share of the row's strongest weight, which stands at its end"


def _wrapped(begin: str, words: Sequence[str], columns: int) -> Iterator[str]:
    """The words with commas, in as many lines as they take."""
    line = begin
    for i, word in enumerate(words):
        piece = word if i == len(words) - 1 else f"{word}, "
        if line != begin and width(line + piece.rstrip()) > columns:
            yield line
            line = " " * len(begin)
        line += piece
    yield line


def _cells(one: HeatMap, row: int) -> Iterator[str]:
    """Two columns for each weight, `]` after an edge of the tree; or a number in percent.

    A shade is the share of the row's strongest weight, as in `view`: among many tokens, most heads
    give none of them much weight.
    """
    strongest = max(one.weights[row], default=0) or 1
    for column, weight in enumerate(one.weights[row]):
        if one.in_percent:
            yield f"{100 * weight:3.0f} "
        else:
            shade = SHADES[min(int(weight / strongest * len(SHADES)), len(SHADES) - 1)]
            yield shade + ("]" if (row, column) in one.outlined else " ")


def _points(one: Series) -> Sequence[tuple[float, float]]:
    return [(x, y) for x, y in zip(one.x, one.y, strict=True) if y is not None]
