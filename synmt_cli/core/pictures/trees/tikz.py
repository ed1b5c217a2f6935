"""Trees in LaTeX, for the package tikz-dependency: text to paste or \\input into a paper.

Each line of a broken sentence is a picture of its own, in which arcs to other lines end at dots.
Letters outside the Latin scripts need LuaLaTeX or XeLaTeX and a font that has them.
"""

from collections.abc import Iterator, Sequence

from synmt_cli.core.pictures.sentences import LONGEST_LABEL, Arc, Differences, Picture, shown
from synmt_cli.core.pictures.trees.arcs import MOST_COLUMNS, Line, lines
from synmt_cli.core.trees.drawing import TooLarge
from synmt_cli.core.trees.heads import ROOT
from synmt_cli.formats.reports.table import LATEX

POINT = 1.35  # pixels that words in SVG take for each point of LaTeX's 10-point type
HEADER = "% needs \\usepackage{tikz-dependency}; letters beyond Latin need LuaLaTeX\n"
MARKED = "edge style={dashed, very thick, red!70!black}, label style={font=\\bfseries}"
_ESCAPES = {
    **{char: LATEX[char] for char in '{}$#_%\\^~<>|"'},
    "&": r"\char38{}",  # \& would begin a new word
    **{char: f"{{{char}}}" for char in "[]*-`'"},
}


def escaped(text: str, limit: int = 40) -> str:
    """Text that LaTeX prints as it is.

    >>> print(escaped("50% & {x}_1"))
    50\\% \\char38{} \\{x\\}\\_1
    """
    return "".join(_ESCAPES.get(char, char) for char in shown(text, limit))


def tree(one: Picture, width: float = 345) -> str:
    """One tree. width: the longest line, in points; a longer sentence is broken."""
    problem = one.problem
    if not problem:
        try:
            return _comment(one) + "".join(_environments(one, [one.arcs], frozenset(), width))
        except TooLarge as error:
            problem = f"not drawn: {error}"
    return f"{_comment(one)}({escaped(problem, 80)}) {escaped(one.text, 200)}\n\n"


def compared(both: Differences, width: float = 345) -> str:
    """Two trees over one sentence, the second below it; arcs that differ are dashed and red."""
    first, second = both.first, both.second
    if first.problem or second.problem or len(first.columns) > MOST_COLUMNS:
        return tree(first, width) + tree(second, width)
    layers = [first.arcs, second.arcs]
    parts = _environments(first, layers, both.differing, width)
    return f"{_comment(first)}{''.join(parts)}% {both.summary()}\n\n"


def _comment(one: Picture) -> str:
    return f"% {shown(one.id, 80)}  {shown(one.text, 80)}\n"


def _environments(
    one: Picture, layers: Sequence[Sequence[Arc]], marked: frozenset[int], width: float
) -> Iterator[str]:
    """The picture of each line. Sentences written from right to left run so in it, too."""
    rows = lines(one.columns, layers, width * POINT)
    for row in rows:
        opened = [
            any(getattr(part, f"{side}_end") == "open" for layer in row.parts for part in layer)
            for side in ("left", "right")
        ]
        yield "".join(_environment(one, row, marked, opened))


def _environment(
    one: Picture, row: Line, marked: frozenset[int], opened: Sequence[bool]
) -> Iterator[str]:
    columns = range(row.first, row.last)
    places = {column: i + 1 + opened[0] for i, column in enumerate(columns)}
    n = len(columns) + sum(opened)
    if not one.rightward:
        places = {column: n + 1 - place for column, place in places.items()}
    yield "\\begin{dependency}[theme=simple]\n\\begin{deptext}[column sep=.7em]\n"
    forms = {places[c]: _form(one, c) for c in columns}
    tags = {places[c]: f"\\small {escaped(one.columns[c].tag)}" for c in columns}
    tokens = {
        places[max(token.first, row.first)]: f"({escaped(token.form)})"
        for token in one.tokens
        if token.first < row.last and token.last >= row.first
    }
    for cells in (forms, tags, tokens):
        if cells:
            filler = "\\dots" if cells is forms else ""
            yield " \\& ".join(cells.get(i, filler) for i in range(1, n + 1)) + " \\\\\n"
    yield "\\end{deptext}\n"
    for layer, parts in enumerate(row.parts):
        for part in parts:
            yield _edge(part.of, places, n, layer, marked, one.rightward)
    yield "\\end{dependency}\n\n"


def _form(one: Picture, column: int) -> str:
    at = one.columns[column]
    form = escaped(at.form)
    return f"\\textit{{{form}}}" if at.empty else form


def _edge(
    arc: Arc, places: dict[int, int], n: int, layer: int, marked: frozenset[int], rightward: bool
) -> str:
    """The command for one arc; an end that is on another line stands at the edge."""
    styles = ["edge below"] if layer else []
    if arc.dependent in marked and not arc.enhanced:
        styles.append(MARKED)
    if arc.enhanced:
        styles.append("edge style={densely dotted}")
    options = f"[{', '.join(styles)}]" if styles else ""
    label = escaped(arc.label, LONGEST_LABEL) or "{}"
    if arc.head == ROOT:
        return f"\\deproot{options}{{{places[arc.dependent]}}}{{{label}}}\n"
    edges = (1, n) if rightward else (n, 1)
    later = {column: edges[column > min(places)] for column in arc[:2] if column not in places}
    head, dependent = (places.get(column, later.get(column, 1)) for column in arc[:2])
    return f"\\depedge{options}{{{head}}}{{{dependent}}}{{{label}}}\n"
