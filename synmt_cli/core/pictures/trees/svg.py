"""Trees as SVG: arcs over words, or upright. Colours are attributes, which a page may override.

The text in a picture is data: `element` escapes all of it, and nothing else writes markup.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Literal, NamedTuple

from synmt_cli.core.pictures.sentences import LONGEST_LABEL, Arc, Differences, Picture, Token, shown
from synmt_cli.core.pictures.trees import upright
from synmt_cli.core.pictures.trees.arcs import (
    EDGE,
    GAP,
    MOST_COLUMNS,
    SMALL,
    WORD,
    Line,
    Part,
    lines,
    text_width,
)
from synmt_cli.core.trees.drawing import TooLarge
from synmt_cli.core.trees.heads import ROOT

Layout = Literal["arcs", "upright"]
INK, QUIET, MARKED = "#1b1b1b", "#5a5a5a", "#b3380b"  # 17:1, 7:1 and 6:1 on white
FONT = "'Noto Sans', 'DejaVu Sans', 'Liberation Sans', Arial, sans-serif"
STEP = 20  # between levels of arcs, with a label between them
CORNER = 6
ARROW = 3.5
TITLE_LIMIT = 300  # characters of a sentence in a picture's title
DESCRIBED = 60  # words that a description lists
_NAMESPACE = "http://www.w3.org/2000/svg"


@dataclass(frozen=True, slots=True)
class Drawn:
    """A picture that can be placed next to others: its content, and its size in pixels."""

    content: str
    width: float
    height: float
    title: str
    description: str = ""

    def document(self, number: str = "1", paper: str = "") -> str:
        """The picture as an SVG element. number: makes its ids unique on a page.

        paper: the background colour, for a browser that shows the picture alone; "" for none.
        """
        ids = f"t{number}", f"d{number}"
        named = element("title", shown(self.title, TITLE_LIMIT), id=ids[0])
        named += element("desc", self.description, id=ids[1])
        box = f"0 0 {_n(self.width)} {_n(self.height)}"
        inside = f"{named}\n{self.content}"
        size = {"width": _n(self.width), "height": _n(self.height), "viewBox": box}
        about = {"role": "img", "aria-labelledby": " ".join(ids), "font-family": FONT}
        about |= {"style": f"background: {paper}"} if paper else {}
        return _raw("svg", inside, {"xmlns": _NAMESPACE, "class": "tree", **size, **about})


def element(name: str, text: str = "", **attributes: object) -> str:
    """An element with text in it, all escaped. `_` in names of attributes is `-`."""
    return _raw(name, escape(text), {key.replace("_", "-"): v for key, v in attributes.items()})


def _raw(name: str, content: str, attributes: dict[str, object]) -> str:
    shown = "".join(f' {key.rstrip("-")}="{escape(str(v))}"' for key, v in attributes.items())
    return f"<{name}{shown}>{content}</{name}>" if content else f"<{name}{shown}/>"


def _n(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def tree(one: Picture, layout: Layout = "arcs", width: float = 720) -> Drawn:
    """One tree. width: the longest line with arcs; an upright tree is as wide as it needs."""
    if one.problem:
        return _without_tree(one)
    try:
        if layout == "upright":
            return _upright(one, frozenset())
        return _arcs(one, [one.arcs], [frozenset()], width)
    except TooLarge as problem:
        return _without_tree(replace(one, problem=f"not drawn: {problem}"))


def compared(both: Differences, layout: Layout = "arcs", width: float = 720) -> Drawn:
    """Two trees over one sentence: arcs above and below it, those that differ dashed and red."""
    first, second = both.first, both.second
    if first.problem or second.problem or len(first.columns) > MOST_COLUMNS:
        return stacked([tree(first, layout, width), tree(second, layout, width)])
    if layout == "upright":
        pictures = [_upright(first, both.differing), _upright(second, both.differing)]
        drawn = beside(pictures, width)
    else:
        marked = [both.differing, both.differing]
        drawn = _arcs(first, [first.arcs, second.arcs], marked, width)
    note = _text(both.summary(), 0, drawn.height + SMALL + 4, SMALL, "note", _Look("start"))
    wide = max(drawn.width, text_width(both.summary(), SMALL))
    about = f"{drawn.description} {both.summary()}."
    return Drawn(f"{drawn.content}\n{note}", wide, drawn.height + 2 * SMALL, first.text, about)


def beside(pictures: Sequence[Drawn], width: float = 720) -> Drawn:
    """Pictures side by side, or one below the other if together they are wider than `width`."""
    whole = sum(one.width for one in pictures) + 2 * GAP * (len(pictures) - 1)
    if whole > width:
        return stacked(pictures)
    parts, x = [], 0.0
    for one in pictures:
        parts.append(_raw("g", one.content, {"transform": f"translate({_n(x)} 0)"}))
        x += one.width + 2 * GAP
    return _joined(parts, whole, max(one.height for one in pictures), pictures)


def stacked(pictures: Sequence[Drawn]) -> Drawn:
    """Pictures one below the other."""
    parts, y = [], 0.0
    for one in pictures:
        parts.append(_raw("g", one.content, {"transform": f"translate(0 {_n(y)})"}))
        y += one.height + 2 * GAP
    whole = max((one.width for one in pictures), default=1)
    return _joined(parts, whole, max(y - 2 * GAP, 1), pictures)


def _joined(parts: list[str], width: float, height: float, pictures: Sequence[Drawn]) -> Drawn:
    title = " / ".join(dict.fromkeys(one.title for one in pictures))
    about = " ".join(one.description for one in pictures[:4])
    return Drawn("\n".join(parts), width, height, title, about)


def nothing() -> Drawn:
    """The picture of no segments, which says so."""
    return _without_tree(Picture("", "nothing to draw", problem="no segments"))


def heading(text: str, drawn: Drawn) -> Drawn:
    """The picture with a line of text above it."""
    text, height = shown(text, 100), SMALL + 9.0
    line = _text(text, 0, SMALL, SMALL, "heading", _Look("start"))
    content = line + _raw("g", drawn.content, {"transform": f"translate(0 {_n(height)})"})
    width = max(drawn.width, text_width(text, SMALL))
    return Drawn(content, width, drawn.height + height, drawn.title, drawn.description)


def _without_tree(one: Picture) -> Drawn:
    text = shown(f"({one.problem})  {one.text}", 90)
    line = _text(text, 0, WORD, WORD, "note", _Look("start"))
    return Drawn(line, text_width(text, WORD), WORD * 1.5, one.text or one.id, text)


def described(one: Picture) -> str:
    """The tree in words, for those who do not see it."""
    forms = [shown(column.form) for column in one.columns]
    arcs = [arc for arc in one.arcs if not arc.enhanced]
    said = [
        f"{forms[arc.dependent]}: {shown(arc.label, LONGEST_LABEL)}"
        + ("" if arc.head == ROOT else f" of {forms[arc.head]}")
        for arc in arcs[:DESCRIBED]
    ]
    more = f"; and {len(arcs) - DESCRIBED:,} more words" if len(arcs) > DESCRIBED else ""
    return "; ".join(said) + more + "."


# --- arcs over words ---


def _arcs(
    one: Picture, layers: Sequence[Sequence[Arc]], marked: Sequence[frozenset[int]], width: float
) -> Drawn:
    """The lines of a sentence with arcs above its words, and with a second layer below them."""
    rows = lines(one.columns, layers, width, one.tokens)
    whole = max((row.width for row in rows), default=1)
    parts, y = [], 0.0
    for row in rows:
        drawing = _LineDrawing(one, row, marked, whole)
        content, height = drawing.drawn()
        parts.append(_raw("g", content, {"transform": f"translate(0 {_n(y)})"}))
        y += height + 8
    return Drawn("\n".join(parts), whole, max(y - 8, 1), one.text, described(one))


@dataclass(frozen=True, slots=True)
class _LineDrawing:
    """Draws a line of a sentence; if that is written from right to left, places are mirrored."""

    one: Picture
    row: Line
    marked: Sequence[frozenset[int]]
    whole: float

    def drawn(self) -> tuple[str, float]:
        """The line's content, and its height."""
        base = EDGE + SMALL + STEP * self.row.levels(0) + 6
        parts = [self._part(part, base, -1, 0) for part in self.row.parts[0]]
        parts += [self._column(column, base) for column in range(self.row.first, self.row.last)]
        y = base + WORD + 6 + (SMALL + 4 if any(c.tag for c in self.one.columns) else 0)
        tokens = [
            token
            for token in self.one.tokens
            if token.first < self.row.last and token.last >= self.row.first
        ]
        parts += [self._token(token, y) for token in tokens]
        y += WORD + 8 if tokens else 0
        if len(self.row.parts) > 1:
            base = y + 4
            parts += [self._part(part, base, 1, 1) for part in self.row.parts[1]]
            y = base + STEP * self.row.levels(1) + SMALL + EDGE
        return "\n".join(parts), y

    def _x(self, x: float) -> float:
        return x if self.one.rightward else self.whole - x

    def _column(self, column: int, base: float) -> str:
        at = self.one.columns[column]
        x = self._x(self.row.middles[column - self.row.first])
        marks = any(column in one for one in self.marked)
        kind = "word empty" if at.empty else "word marked" if marks else "word"
        form = _text(
            shown(at.form),
            x,
            base + WORD,
            WORD,
            kind,
            _Look(title=at.form, right=self.one.rightward),
        )
        tag = _text(shown(at.tag), x, base + WORD + SMALL + 5, SMALL, "tag") if at.tag else ""
        return form + tag

    def _token(self, token: Token, y: float) -> str:
        """A bracket below the words of a multiword token, and its form."""
        first, last = max(token.first, self.row.first), min(token.last, self.row.last - 1)
        a, b = (self._x(self.row.middles[c - self.row.first]) for c in (first, last))
        a, b = min(a, b) - 8, max(a, b) + 8
        path = f"M{_n(a)} {_n(y - 2)}v4H{_n(b)}v-4"
        text = _text(
            shown(token.form),
            (a + b) / 2,
            y + WORD,
            SMALL + 1,
            "token",
            _Look(right=self.one.rightward),
        )
        return element("path", d=path, fill="none", stroke=QUIET, class_="bracket") + text

    def _part(self, part: Part, base: float, way: int, layer: int) -> str:
        """A piece of an arc. way: -1 above the words, 1 below them."""
        differs = part.of.dependent in self.marked[layer] and not part.of.enhanced
        y = base + way * (STEP * part.level)
        left, right = self._x(part.left), self._x(part.right)
        ends = part.left_end, part.right_end
        if left > right:
            left, right, ends = right, left, ends[::-1]
        kind = "arc marked" if differs else "arc empty" if part.of.enhanced else "arc"
        style = {"stroke-width": "2" if differs else "1.2", "stroke": MARKED if differs else INK}
        if differs or part.of.enhanced:
            style["stroke-dasharray"] = "5 3" if differs else "1 3"
        path = _bracket(left, right, base, y, ends)
        parts = [element("path", d=path, fill="none", class_=kind, **style)]
        for x, end in zip((left, right), ends, strict=True):
            if end == "dependent":
                parts.append(_arrow(x, base, way, style["stroke"], kind))
        label = self._label(part, ends, right - left)
        half = text_width(label, SMALL) / 2
        middle = min(max((left + right) / 2, half), self.whole - half)
        below = y + (SMALL + 1 if way > 0 else -3)
        parts.append(_text(label, middle, below, SMALL, f"label {kind}", _Look(differs=differs)))
        return "".join(parts)

    def _label(self, part: Part, ends: tuple[str, str], room: float) -> str:
        """The label; for an arc to another line also the word there, if there is room."""
        label = shown(part.of.label, LONGEST_LABEL)
        if "open" not in ends:
            return label
        here = "head" if "head" in ends else "dependent"
        other = part.of.dependent if here == "head" else part.of.head
        form = shown(self.one.columns[other].form, LONGEST_LABEL)
        way = "→" if ends[1] == "open" else "←"
        whole = f"{label} {way} {form}" if way == "→" else f"{form} {way} {label}"
        return whole if text_width(whole, SMALL) < room else label


def _bracket(left: float, right: float, base: float, y: float, ends: tuple[str, str]) -> str:
    """The path of an arc from base to y and back; open ends run to the edge."""
    if ends[0] == "root":
        return f"M{_n(left)} {_n(y)}V{_n(base)}"
    bend = min(CORNER, (right - left) / 2)
    turn = bend if y > base else -bend
    start = f"M{_n(left)} {_n(y)}"
    if ends[0] != "open":
        start = f"M{_n(left)} {_n(base)}V{_n(y - turn)}q0 {_n(turn)} {_n(bend)} {_n(turn)}"
    if ends[1] == "open":
        return f"{start}H{_n(right)}"
    return f"{start}H{_n(right - bend)}q{_n(bend)} 0 {_n(bend)} {_n(-turn)}V{_n(base)}"


def _arrow(x: float, base: float, way: int, colour: str, kind: str) -> str:
    tip = base - way * 2.5
    path = f"M{_n(x)} {_n(tip)}l{-ARROW} {way * 7}h{2 * ARROW}z"
    return element("path", d=path, fill=colour, class_=f"arrow {kind}")


class _Look(NamedTuple):
    """How a text is written. title: the whole word, if cut. right: written left to right."""

    anchor: str = "middle"
    title: str = ""
    right: bool = True
    differs: bool = False


_PLAIN = _Look()


def _text(text: str, x: float, y: float, size: float, kind: str, look: _Look = _PLAIN) -> str:
    """A line of text; words, tags, labels and notes have their own looks."""
    anchor, title, right, differs = look
    first = kind.split()[0]
    style: dict[str, object] = {"fill": INK if first in ("word", "token") else QUIET}
    if differs or kind == "word marked":
        style |= {"fill": MARKED, "font-weight": "bold"}
    if "empty" in kind:
        style |= {"fill": QUIET, "font-style": "italic"}
    style |= {} if right else {"direction": "rtl", "unicode-bidi": "embed"}
    place = {"x": _n(x), "y": _n(y), "font-size": size, "class": kind}
    whole = element("title", shown(title, 400)) if title and shown(title) != title else ""
    anchored = {"text-anchor": anchor} if anchor != "start" or right else {"text-anchor": "end"}
    return _raw("text", escape(text) + whole, {**place, **anchored, **style})


# --- upright ---


def _upright(one: Picture, marked: frozenset[int]) -> Drawn:
    """An upright tree: each word below its head, at its depth, in the order of the sentence."""
    placed = upright.layout(one)
    parts = []
    for arc in one.arcs:
        if arc.head == ROOT:
            continue
        (x1, y1), (x2, y2) = placed.at[arc.head], placed.at[arc.dependent]
        differs = arc.dependent in marked and not arc.enhanced
        stroke: dict[str, object] = {
            "stroke": MARKED if differs else QUIET,
            "stroke-width": 2 if differs else 1.2,
        }
        if differs or arc.enhanced:
            stroke["stroke-dasharray"] = "5 3" if differs else "1 3"
        kind = "edge marked" if differs else "edge"
        ends: dict[str, object] = {
            "x1": _n(x1),
            "y1": _n(y1 + upright.BELOW),
            "x2": _n(x2),
            "y2": _n(y2 - WORD),
        }
        parts.append(_raw("line", "", {"class": kind, **ends, **stroke}))
    labels = {arc.dependent: arc.label for arc in reversed(one.arcs)}
    for i, column in enumerate(one.columns):
        (x, y), differs = placed.at[i], i in marked
        kind = "word empty" if column.empty else "word marked" if differs else "word"
        look = _Look(title=column.form, right=one.rightward)
        parts.append(_text(shown(column.form), x, y, WORD, kind, look))
        below = upright.tag_and_label(column, labels.get(i, ""))
        parts.append(_text(below, x, y + SMALL + 4, SMALL, "label", _Look(differs=differs)))
    return Drawn("\n".join(parts), placed.width, placed.height, one.text, described(one))
