"""`synmt view`: dependency trees drawn for a terminal, a page or a paper."""

import os
from collections.abc import Iterator, Mapping
from itertools import zip_longest
from typing import Annotated, Literal

from synmt_cli import console
from synmt_cli.commands import Manual, options
from synmt_cli.commands.options import option
from synmt_cli.core.jobs.delinearize import DelinearizeJob
from synmt_cli.core.jobs.view import Drawing, read, read_pictures
from synmt_cli.core.pictures.sentences import Differences, Picture, differences
from synmt_cli.core.pictures.trees import page as tree_page
from synmt_cli.core.pictures.trees import svg, tikz
from synmt_cli.core.pictures.trees.arcs import MOST_COLUMNS
from synmt_cli.core.text.vocabulary import Vocabulary
from synmt_cli.core.transitions.delinearizer import Delinearizer
from synmt_cli.core.trees.drawing import CELL_LIMIT
from synmt_cli.errors import DataError, UsageError, counted, quoted
from synmt_cli.io import reading, writing

MANUAL = Manual(
    input="CoNLL-U, records or transitions: `2\tdog\tdog\tNOUN\t_\t_\t3\tnsubj\t_\t_`; weights of"
    " `analyze attention`",
    output="For each segment a line `# ID  TEXT`, a line for each word,"
    " ` ╭─┴─ dog  NOUN  nsubj`, and an empty line. svg: one picture, `<svg xmlns=…`; html: one"
    " page that needs no network; tikz: an environment `dependency` for each line of a sentence.",
    memory=f"One sentence and its drawing, at most {CELL_LIMIT:,} words times columns of lines;"
    f" in pictures at most {MOST_COLUMNS:,} words. svg: all of its drawings.",
    examples=(
        "synmt view dev.en.conllu | head -20",
        "echo 'The dog sees the cat.' | synmt parse -m en.udpipe | synmt view",
        "synmt featurize --spm spm.model dev.en.conllu | synmt view --ascii --width 60",
        "echo 'the dog LEFT-ARC:det sleeps LEFT-ARC:nsubj' | synmt view",
        "head -1 dev.jsonl | synmt analyze attention -m runs/pascal | synmt view",
        "synmt view --format html --beside dev.de.conllu -o trees.html dev.en.conllu",
        "synmt parse -m en.udpipe test.en |"
        " synmt view --format svg --compare - --id 3 -o parse.svg test.en.conllu",
        "synmt view --format tikz --id 7 dev.en.conllu > figure.tex",
    ),
    see_also=(
        "parse",
        "featurize",
        "delinearize",
        "evaltree",
        "analyze attention",
        "info",
        "check",
    ),
)
Format = Literal["text", "svg", "html", "tikz"]
Pair = tuple[Picture, Picture | None]


def view(
    files: options.Files = None,
    kind: Annotated[
        Literal["auto", "conllu", "jsonl", "transitions"],
        option("--from", "What the input is; auto looks at its beginning."),
    ] = "auto",
    form: Annotated[
        Format, option("--format", "Lines for a terminal, a picture, a page, or LaTeX.")
    ] = "text",
    layout: Annotated[
        svg.Layout | None,
        option(
            "--layout",
            "svg, html: arcs over the words, or the tree upright.",
            shown_default="arcs",
        ),
    ] = None,
    compare: Annotated[
        str | None,
        option(
            "--compare FILE",
            "Other trees over the same words; arcs that differ are dashed and red.",
        ),
    ] = None,
    differing: Annotated[
        bool, option("--differing", "With --compare: draw only segments whose trees differ.")
    ] = False,
    beside: Annotated[
        str | None,
        option("--beside FILE", "Trees to draw beside these, such as the translations'."),
    ] = None,
    id: Annotated[
        list[str] | None, option("--id ID", "Draw only the segment of this id; repeatable.")
    ] = None,
    spm: options.TransitionVocabulary = None,
    ascii: Annotated[bool, option("--ascii", "Draw with ASCII characters.")] = False,
    width: Annotated[
        int | None,
        option(
            "--width N",
            "Cut lines to N columns; the default is the width of a terminal, no cut in a file. "
            "Pictures are broken into lines of N pixels (720), in LaTeX of N points (345).",
            min=1,
        ),
    ] = None,
    output: options.Output = "-",
    line_buffered: options.LineBuffered = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Draw dependency trees, a word a line in the order of the sentence, or as pictures.

    \b
    # 1  The dog sees the cat .
       ╭─ The   DET    det
     ╭─┴─ dog   NOUN   nsubj
    ─┼─── sees  VERB   root
     │ ╭─ the   DET    det
     ├─┴─ cat   NOUN   obj
     ╰─── .     PUNCT  punct

    A word joins the vertical line of its head by ╭, ├ or ╰. If it has dependents, it has a line
    of its own, which begins at ┬, ┼ or ┴; a root's line comes from the edge. Where a tree is not
    projective, lines cross without joining, ─│─. The columns are FORM, UPOS and DEPREL.
    Characters that could disturb a terminal are escaped; wide ones count as two columns.

    Empty lines, failed records and records without a tree are shown as the first line alone, with
    the status. A record of several sentences is one drawing; in CoNLL-U each sentence has its own.
    A tree with too many lines side by side is not drawn, which is reported (see MEMORY in
    synmt-view(1)).

    Colours are used only on a terminal, and not if NO_COLOR is set or TERM is dumb.

    Weights of `analyze attention` are drawn as a shaded row for each token, layer and head, with
    the strongest key and its weight at the end; a shade is the share of that weight.

    --format svg, html and tikz draw arcs over the words, with UPOS below, a bracket for each
    multiword token (in tikz its form in parentheses), and dotted arcs for what DEPS says of empty
    nodes. A sentence that is too long goes on in further lines; an arc between two lines names its
    other end where there is room (in tikz it ends at dots). Hebrew and Arabic run to the left.
    --layout upright puts each word below its head. svg is one picture of all segments; tikz is text
    for a paper that uses the package tikz-dependency.

    With --format svg, html or tikz, --compare draws a second tree over the same sentence, such as a
    parse against gold: below the words, with the arcs that differ dashed and red in both trees. The
    words must be the same. --differing leaves out segments whose trees are the same, and says how
    many differ. --beside draws the trees of another file next to these. Both need files of as many
    segments; sentences with the same synmt_line (parse --segment split) are one, whose id is that
    line.
    """
    options.refuse_clashes([*(files or ["-"]), compare, beside], output)
    second = beside if compare is None else compare
    options.refuse(
        {
            "--compare and --beside draw pictures: name --format svg, html or tikz": form == "text"
            and second is not None,
            "--compare and --beside exclude each other": None not in (compare, beside),
            "--differing is for --compare": differing and compare is None,
            "--layout is for --format svg and html": layout and form in ("text", "tikz"),
            "--ascii is for --format text": ascii and form != "text",
        }
    )
    job = DelinearizeJob(Delinearizer(None if spm is None else Vocabulary.load(spm)), "conllu")
    wanted = dict.fromkeys(id or (), False)
    with writing.output(output, line_buffered) as writer:
        if form == "text":
            drawing = _for_terminal(ascii, width, output)
            for one in read(files or (), kind, job):
                if _is_wanted(one.id, wanted):
                    writer.write(drawing.block(one).encode())
            _refuse_missing(wanted)
        else:
            pairs = _pairs(
                read_pictures(files or (), kind, job, by_line=second is not None),
                None if second is None else read_pictures([second], "auto", job, by_line=True),
                reading.source_name(second or ""),
            )
            chosen = (pair for pair in pairs if _is_wanted(pair[0].id, wanted))
            drawn: Iterator[Pair | Differences] = chosen
            if compare is not None:
                drawn = _compared(chosen, differing)
            if form == "tikz":
                parts = _tikz(drawn, width or 345)
            else:
                title = ", ".join(files or ["trees"])
                how = layout or "arcs", width or 720
                parts = _html(drawn, *how, title) if form == "html" else _svg(drawn, *how)
            if wanted:  # they are few, and all must be there before anything is written
                parts = iter([*parts])
                _refuse_missing(wanted)
            for part in parts:
                writer.write(part.encode())


def _refuse_missing(wanted: Mapping[str, bool]) -> None:
    """Raises UsageError for an id that was not found."""
    if missing := [one for one, found in wanted.items() if not found]:
        raise UsageError(f"--id {quoted(missing[0])}: no segment has this id")


def _for_terminal(ascii: bool, width: int | None, output: str) -> Drawing:
    on_terminal = output == "-" and os.isatty(1)
    if width is None and on_terminal:
        width = os.get_terminal_size(1).columns or None
    is_plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return Drawing(ascii, width, on_terminal and not is_plain)


def _is_wanted(id: str, wanted: dict[str, bool]) -> bool:
    """Whether a segment is drawn, as all are without --id. Notes that its id was found."""
    if id in wanted:
        wanted[id] = True
    return id in wanted or not wanted


def _pairs(first: Iterator[Picture], second: Iterator[Picture] | None, name: str) -> Iterator[Pair]:
    """Yields each segment with that of the second file. Raises DataError if a file ends early."""
    if second is None:
        yield from ((one, None) for one in first)
        return
    for number, (one, other) in enumerate(zip_longest(first, second), 1):
        if one is None or other is None:
            shorter, longer = (name, "the first file")[:: 1 if other is None else -1]
            ends = f"ends after {counted(number - 1, 'segment')}"
            raise DataError(shorter, None, f"{ends}, but {longer} continues")
        yield one, other


def _compared(pairs: Iterator[Pair], only_differing: bool) -> Iterator[Differences]:
    """Yields the differences of each pair.

    only_differing: leaves out pairs without any, and says at the end how many pairs differ.
    """
    n = n_differing = 0
    for first, second in pairs:
        assert second is not None, "both files have as many segments"
        found = differences(first, second)
        n += 1
        n_differing += not found.alike
        if not (only_differing and found.alike):
            yield found
    if only_differing:
        console.info(f"{n_differing:,} of {n:,} segments differ")


def _svg(drawn: Iterator[Pair | Differences], layout: svg.Layout, width: int) -> Iterator[str]:
    pictures = []
    for number, one in enumerate(drawn, 1):
        picture = svg.beside(_drawings(one, layout, width), width)
        name = one.first.id if isinstance(one, Differences) else one[0].id
        pictures.append(svg.heading(name or str(number), picture))
    if len(pictures) == 1:
        yield picture.document(paper="#fff") + "\n"
    else:
        whole = svg.stacked(pictures or [svg.nothing()])
        yield whole.document(paper="#fff") + "\n"


def _html(
    drawn: Iterator[Pair | Differences], layout: svg.Layout, width: int, title: str
) -> Iterator[str]:
    yield tree_page.head(title)
    number = 0
    for number, one in enumerate(drawn, 1):
        first = one.first if isinstance(one, Differences) else one[0]
        yield tree_page.figure(first, _drawings(one, layout, width), number)
    yield tree_page.foot(number)


def _drawings(one: Pair | Differences, layout: svg.Layout, width: int) -> list[svg.Drawn]:
    if isinstance(one, Differences):
        return [svg.compared(one, layout, width)]
    return [svg.tree(picture, layout, width) for picture in one if picture]


def _tikz(drawn: Iterator[Pair | Differences], width: int) -> Iterator[str]:
    yield tikz.HEADER
    for one in drawn:
        if isinstance(one, Differences):
            yield tikz.compared(one, width)
        else:
            yield from (tikz.tree(picture, width) for picture in one if picture)
