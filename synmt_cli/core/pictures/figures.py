"""Charts as SVG, PDF and PNG, by matplotlib, which is an optional extra and imported only here.

The same charts give the same bytes. Colours are after Okabe and Ito, darker where they had too
little contrast on white; series differ in their marks and dashes too, so that a figure can be read
in grey.
"""

import io
import logging
import math
import os
import re
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from itertools import zip_longest
from pathlib import PurePath
from typing import Any, NamedTuple

from synmt_cli.core.pictures.charts import Chart, Charts, HeatMap, Series
from synmt_cli.core.pictures.sentences import shown, shown_end, shown_ends
from synmt_cli.errors import UsageError, require_packages
from synmt_cli.io.display_width import width

KINDS = ("png", "svg", "pdf")
PALETTE = ("#0072B2", "#D55E00", "#008060", "#A0508C", "#8A6A00", "#444444")
MARKS = "osD^vPX*"
DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (5, 1.5, 1, 1.5)), (0, (8, 2)))
MARKER = 5  # points, for the marks at the ends of an interval
CHARACTER = 0.6  # mean width of a character, in font sizes
AT_LEFT = 0.5  # inches of a chart that its y axis takes
INK = "#1b1b1b"
MOST_TOKENS = 200  # in a heat map


@dataclass(frozen=True, slots=True)
class Size:
    """The size of a figure: its width in inches and its type in points.

    live: for a page, with text as text and ink in the page's colour. name: differs between the
    figures of a page, so that the ids in them differ.
    """

    width: float = 5.0
    font: float = 8.0
    live: bool = False
    name: str = "synmt"


def kind_of(path: str, option: str = "-o", other: str = "") -> str:
    """png, svg or pdf, by suffix. Raises UsageError, and Unavailable without matplotlib.

    other: what else the name may end in, for the message.
    """
    kind = PurePath(path).suffix.lower().removeprefix(".")
    if kind not in KINDS:
        expected = f"the name must end in .png, .svg or .pdf{other}"
        raise UsageError(f"{option} {path}: {expected}")
    require(option)
    return kind


def require(what: str) -> None:
    """Raises Unavailable without matplotlib. what: what needs it, for the message."""
    require_packages(what, "plot", "matplotlib")


def picture(charts: Charts, kind: str, size: Size | None = None) -> bytes:
    """The bytes of the picture's file. kind: one of KINDS.

    Raises UsageError for a size that has no room for its text, unless it is for a page.
    """
    size = size or Size()
    with _matplotlib(size) as figure_type:
        figure = figure_type(layout="constrained")
        if charts and isinstance(charts[0], HeatMap):
            _heat_maps(figure, charts, size)  # type: ignore[arg-type]
        else:
            _charts(figure, charts, size)  # type: ignore[arg-type]
        buffer = io.BytesIO()
        dates = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}
        try:
            figure.savefig(
                buffer, format=kind, dpi=300, metadata=dates[kind], transparent=size.live
            )
        except UserWarning:
            problem = "the picture is too small for its text: take a larger --width or a smaller"
            raise UsageError(f"{problem} --font-size") from None
    return buffer.getvalue()


def for_page(charts: Charts, title: str, width: float = 8.5) -> str:
    """The SVG element for a page, named by its title, in the page's own ink."""
    text = picture(charts, "svg", Size(width, 9, live=True, name=title)).decode()
    text = text[text.index("<svg") :]
    # A style in an SVG would apply to the whole page, whose own style says the same of charts.
    text = re.sub(r"<(metadata|style)\b.*?</\1>", "", text, flags=re.DOTALL)
    text = re.sub(r'<g id="[^"]*"', "<g", text)
    text = re.sub("<[^<>]*>", _in_colours_of_the_page, text)  # tags: a name may look like a colour
    return text.replace("<svg ", f'<svg class="chart" role="img" aria-label="{escape(title)}" ', 1)


def _in_colours_of_the_page(tag: re.Match[str]) -> str:
    text = tag[0].replace(INK, "currentColor")
    for i, colour in enumerate(PALETTE):
        text = text.replace(colour.lower(), f"var(--c{i}, {colour})")
    return text


@contextmanager
def _matplotlib(size: Size) -> Iterator[Any]:
    """The type of figures, with settings that hold only here."""
    with _temporary_cache(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing", UserWarning)
        collapsed = "constrained_layout not applied"
        warnings.filterwarnings("ignore" if size.live else "error", collapsed, UserWarning)
        logging.getLogger("matplotlib").setLevel(logging.ERROR)
        import matplotlib
        from matplotlib.figure import Figure

        ink = dict.fromkeys(
            ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), INK
        )
        settings: dict[Any, Any] = {
            **ink,
            "svg.hashsalt": size.name,
            "svg.fonttype": "none" if size.live else "path",
            "pdf.fonttype": 42,  # fonts as some publishers ask for
            "text.parse_math": False,  # a name may have any character
            "font.size": size.font,
            "axes.titlesize": size.font,
            "legend.fontsize": size.font,
            "axes.linewidth": 0.6,
            "lines.linewidth": 1.3,
            "lines.markersize": 4,
            "axes.spines.top": False,
            "axes.spines.right": False,
        }
        with matplotlib.rc_context(settings):
            yield Figure


def _charts(figure: Any, charts: Sequence[Chart], size: Size) -> None:
    """Two charts a row where the figure is wide enough for them, else one."""
    crowded = any(one.n_intervals > _most_intervals(size.width / 2) for one in charts)
    n_columns = 2 if size.width >= 5 and len(charts) > 1 and not crowded else 1
    n_rows = max(-(-len(charts) // n_columns), 1)
    height = (0.4 if crowded else 0.62) * size.width / n_columns
    figure.set_size_inches(size.width, height * n_rows + 0.3)
    looks = _looks(charts)
    handles: dict[str, tuple[str, Any]] = {}  # label and artist of each group
    for i, chart in enumerate(charts):
        axes = figure.add_subplot(n_rows, n_columns, i + 1)
        _chart(axes, chart, looks, handles)
    if len(handles) > 1:
        _legend(figure, handles)


def _most_intervals(width: float) -> int:
    """How many intervals fit side by side in a chart of so many inches, axis and gaps included."""
    return int(0.8 * (width - AT_LEFT) * 72 / MARKER)


def _legend(figure: Any, handles: dict[str, tuple[str, Any]]) -> None:
    """Draws the legend above the charts, in as many columns as fit."""
    labels, artists = zip(*handles.values(), strict=True)
    for n_columns in range(len(handles), 0, -1):
        legend = figure.legend(
            artists,
            labels,
            loc="outside upper center",
            ncols=n_columns,
            frameon=False,
        )
        if legend.get_window_extent().width <= figure.bbox.width or n_columns == 1:
            return
        legend.remove()


class Look(NamedTuple):
    """How a series, or a group of them, looks in all charts of a figure.

    place: its index in colours, marks and dashes. faint: whether it is one of several seeds.
    """

    place: int
    label: str
    faint: bool


def _looks(charts: Sequence[Chart]) -> dict[str, Look]:
    """The look of each group, or of a series without one, by its name."""
    members: dict[str, dict[str, None]] = {}
    for chart in charts:
        for one in chart.series:
            members.setdefault(one.group or one.name, {})[one.name] = None
    labels = shown_ends([name if len(of) > 1 else next(iter(of)) for name, of in members.items()])
    return {
        name: Look(i, f"{label} ({len(of)} seeds)" if len(of) > 1 else label, len(of) > 1)
        for i, (label, (name, of)) in enumerate(zip(labels, members.items(), strict=True))
    }


def _chart(
    axes: Any, chart: Chart, looks: dict[str, Look], handles: dict[str, tuple[str, Any]]
) -> None:
    for one in chart.series:
        name = one.group or one.name
        drawn = _series(axes, one, looks[name], chart)
        if drawn is not None and not chart.has_names:  # else the names stand below the axis
            handles.setdefault(name, (looks[name].label, drawn))
    axes.set_xlabel(shown_end(chart.x_label, 60))
    axes.set_ylabel(shown(chart.y_label, 60))
    if chart.note:
        axes.text(1, 1.01, chart.note, transform=axes.transAxes, ha="right", va="bottom")
    if chart.zero:
        axes.axhline(0, color=INK, linewidth=0.6)
    if chart.limits:
        axes.set_ylim(*chart.limits)
    _x_axis(axes, chart)
    axes.grid(axis="y", color="#888888", alpha=0.25, linewidth=0.5)


def _x_axis(axes: Any, chart: Chart) -> None:
    if chart.ticks:
        ticks = _lines(chart.starred, 24)
        longest = max(width(line) for tick in ticks for line in tick.split("\n"))
        turned = {"rotation": 30, "ha": "right"} if longest > _room(axes, len(ticks)) else {}
        axes.set_xticks(range(len(ticks)), ticks, **turned)
        axes.set_xlim(-0.6, len(ticks) - 0.4)
    else:
        whole = all(float(x).is_integer() for one in chart.series for x in one.x)
        axes.xaxis.get_major_locator().set_params(integer=whole, min_n_ticks=1)
        axes.xaxis.set_major_formatter(lambda x, _: f"{x:,.0f}" if whole else f"{x:.3g}")


def _lines(texts: Sequence[str], limit: int) -> list[str]:
    """The texts with lines of at most `limit` characters: first lines stay different, and so on."""
    lines = zip_longest(*(one.split("\n") for one in texts), fillvalue="")
    return [
        "\n".join(one) for one in zip(*(shown_ends(line, limit) for line in lines), strict=True)
    ]


def _room(axes: Any, n: int) -> float:
    """How many characters each of n labels below the axis may have."""
    figure_width, columns = axes.figure.get_figwidth(), axes.get_gridspec().ncols
    points = 72 * (figure_width / columns - AT_LEFT)
    return float(points / n / (CHARACTER * axes.xaxis.label.get_size()))


def _series(axes: Any, one: Series, look: Look, chart: Chart) -> Any:
    """Draws a series; returns what a legend shows, None for an empty one."""
    points = [(x, y) for x, y in zip(one.x, one.y, strict=True) if y is not None]
    if not points:
        return None
    colour, mark = PALETTE[look.place % len(PALETTE)], MARKS[look.place % len(MARKS)]
    for x, dots in zip(one.x, one.dots, strict=False):
        axes.plot([x + 0.12] * len(dots), dots, ".", color=colour, alpha=0.6, markersize=3)
    for x, low, high in zip(one.x, one.low, one.high, strict=False):
        if low is not None and high is not None:
            axes.plot(
                [x, x], [low, high], color=colour, linewidth=1.1, marker="_", markersize=MARKER
            )
    dash = DASHES[look.place % len(DASHES)] if chart.joined else "none"
    every = max(1, len(points) // 8) if chart.joined and not chart.ticks else 1
    end = len(chart.ticks) - chart.n_apart if chart.n_apart else math.inf
    gap = (math.nan, math.nan)
    broken = [one for at in points for one in ([at] if at[0] < end else [gap, at])]
    (line,) = axes.plot(
        *zip(*broken, strict=True),
        color=colour,
        marker=mark,
        linestyle=dash,
        markevery=every,
        alpha=0.75 if look.faint else 1.0,
        linewidth=1.0 if look.faint else 1.3,
        clip_on=chart.limits is None,  # marks at a limit are not cut
    )
    return line


def _heat_maps(figure: Any, maps: Sequence[HeatMap], size: Size) -> None:
    """Maps side by side, darker for more weight; a frame marks the edges of a tree.

    Shares in percent are as dark as they are large. Other weights are shaded by their square root,
    up to the strongest of all maps, so that a head that looks everywhere is not white next to one
    that looks at one token.
    """
    from matplotlib.colors import PowerNorm

    longest = max(max(len(one.rows), len(one.columns)) for one in maps)
    if longest > MOST_TOKENS:
        raise UsageError(f"{longest:,} tokens in a segment, and {MOST_TOKENS} are the most")
    n_columns = min(len(maps), max(1, int(size.width // (1.2 + 0.11 * longest))))
    n_rows = -(-len(maps) // n_columns)
    map_width = size.width / n_columns
    shape = len(maps[0].rows) / max(len(maps[0].columns), 1)
    figure.set_size_inches(size.width, n_rows * (0.8 + max(map_width - 0.8, 0.8) * shape))
    in_percent = maps[0].in_percent
    strongest = max((weight for one in maps for row in one.weights for weight in row), default=0)
    norm = PowerNorm(1 if in_percent else 0.5, 0, 1 if in_percent else strongest or 1)
    room = int(72 * map_width / (CHARACTER * size.font))
    titles = _lines([one.title for one in maps], room)
    for i, one in enumerate(maps):
        axes = figure.add_subplot(n_rows, n_columns, i + 1)
        mesh = axes.imshow([*map(list, one.weights)], cmap="Greys", norm=norm)
        for row, column in sorted(one.outlined):
            xs, ys = [-0.5, 0.5, 0.5, -0.5, -0.5], [-0.5, -0.5, 0.5, 0.5, -0.5]
            axes.plot([column + x for x in xs], [row + y for y in ys], color=PALETTE[1], lw=1)
        if one.in_percent:
            _percents(axes, one)
        labels = [[shown(name, 16) for name in names] for names in (one.columns, one.rows)]
        axes.set_xticks(range(len(labels[0])), labels[0], rotation=90)
        axes.set_yticks(range(len(labels[1])), labels[1])
        axes.tick_params(length=0)
        axes.set_title(titles[i])
    label = maps[0].what if in_percent else f"{maps[0].what}, shaded by its square root"
    figure.colorbar(mesh, ax=figure.axes, label=label, fraction=0.03, pad=0.01)


def _percents(axes: Any, one: HeatMap) -> None:
    for row, weights in enumerate(one.weights):
        for column, weight in enumerate(weights):
            ink = "white" if weight > 0.5 else INK
            axes.text(column, row, f"{100 * weight:.0f}", color=ink, ha="center", va="center")


@contextmanager
def _temporary_cache() -> Iterator[None]:
    """Lets matplotlib keep its cache in a folder that is removed afterwards."""
    before = os.environ.get("MPLCONFIGDIR")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["MPLCONFIGDIR"] = folder
        try:
            yield
        finally:
            if before is None:
                del os.environ["MPLCONFIGDIR"]
            else:
                os.environ["MPLCONFIGDIR"] = before
