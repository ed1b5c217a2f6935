"""`synmt view`: dependency trees drawn for a terminal."""

import os
from typing import Annotated, Literal

from synmt_cli.commands import Manual, options
from synmt_cli.commands.options import option
from synmt_cli.core.jobs.delinearize import DelinearizeJob
from synmt_cli.core.jobs.view import Drawing, read
from synmt_cli.core.text.vocabulary import Vocabulary
from synmt_cli.core.transitions.delinearizer import Delinearizer
from synmt_cli.core.trees.drawing import CELL_LIMIT
from synmt_cli.io import writing

MANUAL = Manual(
    input="CoNLL-U, records or transitions: `2\tdog\tdog\tNOUN\t_\t_\t3\tnsubj\t_\t_`",
    output="For each segment a line `# ID  TEXT`, a line for each word,"
    " ` ╭─┴─ dog  NOUN  nsubj`, and an empty line.",
    memory=f"One sentence and its drawing, at most {CELL_LIMIT:,} words times columns of lines.",
    examples=(
        "synmt view dev.en.conllu | head -20",
        "echo 'The dog sees the cat.' | synmt parse -m en.udpipe | synmt view",
        "synmt featurize --spm spm.model dev.en.conllu | synmt view --ascii --width 60",
        "echo 'the dog LEFT-ARC:det sleeps LEFT-ARC:nsubj' | synmt view",
    ),
    see_also=("parse", "featurize", "delinearize", "info", "check"),
)


def view(
    files: options.Files = None,
    kind: Annotated[
        Literal["auto", "conllu", "jsonl", "transitions"],
        option("--from", "What the input is; auto looks at its beginning."),
    ] = "auto",
    spm: options.TransitionVocabulary = None,
    ascii: Annotated[bool, option("--ascii", "Draw with ASCII characters.")] = False,
    width: Annotated[
        int | None,
        option(
            "--width N",
            "Cut lines to N columns; the default is the width of a terminal, no cut in a file.",
            min=1,
        ),
    ] = None,
    output: options.Output = "-",
    line_buffered: options.LineBuffered = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Draw dependency trees, a word a line in the order of the sentence.

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
    the status. A sentence of several roots (a line of several sentences) is one drawing. A tree
    with too many lines side by side is not drawn, which is reported (see MEMORY).

    Colours are used only on a terminal, and not if NO_COLOR is set.
    """
    on_terminal = output == "-" and os.isatty(1)
    if width is None and on_terminal:
        width = os.get_terminal_size(1).columns or None
    colour = on_terminal and not os.environ.get("NO_COLOR")
    drawing = Drawing(ascii, width, colour)
    job = DelinearizeJob(Delinearizer(None if spm is None else Vocabulary.load(spm)), "conllu")
    with writing.output(output, line_buffered) as writer:
        for one in read(files or (), kind, job):
            writer.write(drawing.block(one).encode())
