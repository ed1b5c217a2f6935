"""`synmt linearize`: CoNLL-U to transitions."""

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, Literal

from synmt_cli import console, pool
from synmt_cli.commands import Manual, conllu_work, options
from synmt_cli.commands.options import option
from synmt_cli.core.jobs.cutting import batches, cut_by_line
from synmt_cli.core.jobs.done import Done
from synmt_cli.core.jobs.linearize import LinearizeJob
from synmt_cli.core.jobs.linearize import symbols as symbols_of
from synmt_cli.core.jobs.work import Work, where
from synmt_cli.core.segments.bad_trees import BadTrees, OnBadTree
from synmt_cli.core.text.vocabulary import Vocabulary
from synmt_cli.core.transitions.linearizer import Linearizer
from synmt_cli.formats import conllu
from synmt_cli.io import reading, writing

MANUAL = Manual(
    input="CoNLL-U: `2\tdog\tdog\tNOUN\t_\t_\t3\tnsubj\t_\t_`",
    output="A line for each line: `The dog LEFT-ARC:det sleeps LEFT-ARC:nsubj . RIGHT-ARC:punct`."
    ' As JSONL: `{"id":"1","status":"ok","src":"The dog sleeps.","transitions":["The","dog",'
    '"LEFT-ARC:det",…]}`.',
    memory=conllu_work.MEMORY,
    examples=(
        "synmt linearize train.en.conllu > train.en.trans",
        "synmt linearize --glue --multiword token --on-nonprojective keep test.en.conllu"
        " | synmt delinearize | diff - test.en",
        "synmt linearize --format symbols --glue train.en.conllu"
        " | synmt vocab train --symbols - --size 320 train.en train.de -o trees.model",
        "synmt linearize --format symbols train.en.conllu"
        " | synmt vocab train --symbols - --size 320 train.en -o trees.en.model"
        " && synmt linearize --spm trees.en.model -j 2 --format jsonl dev.en.conllu",
    ),
    see_also=("delinearize", "featurize", "vocab train", "parse"),
)


def linearize(
    files: options.Files = None,
    spm: options.PieceVocabulary = None,
    on_nonprojective: options.OnNonprojective = "drop",
    split_transitions: options.SplitTransitions = False,
    glue: options.Glue = False,
    multiword: options.MultiwordTokens = "words",
    on_bad_tree: options.OnBadTree = "error",
    format: Annotated[
        Literal["text", "jsonl", "symbols"],
        option(
            "--format",
            "Write lines of tokens, or records, or only the symbols that a vocabulary needs, one "
            "a line.",
        ),
    ] = "text",
    jobs: options.Jobs = 1,
    output: options.Output = "-",
    line_buffered: options.LineBuffered = False,
    strict: options.Strict = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    r"""Write trees as transitions: the words, with the arcs between them as tokens.

    The transitions are arc-standard (Choshen and Abend 2021). Each word is pushed on a stack.
    LEFT-ARC:label removes the last word but one and makes the last one its head; RIGHT-ARC:label
    removes the last word and makes the one before it its head. Each arc comes as early as it can.
    No arc comes from the root, so n words have n - 1 arcs, and the word that is left is the root.
    With --spm each word is split into pieces by itself, and ▁ begins a word; without it a token is
    a word.

    Each line of text gives one line, which is empty where there are no transitions: for empty
    lines, for lines of several sentences (synmt parse --segment split), which are not one tree,
    and for trees that are not projective, which transitions cannot build. --on-nonprojective keep
    lifts words of such a tree to the head of their head until it is projective, the shortest arc
    first (Nivre and Nilsson 2005), and keeps their labels; a tree of more than a thousand words
    is not lifted. Failed lines and lifted trees are counted at the end; --strict ends at the
    first line that fails.

    A sentence that is not a tree, such as one with two roots, ends the run; with --on-bad-tree
    failed its line is empty and counted. --format symbols then leaves it out.

    synmt delinearize restores words, tree and labels, character by character. A word that looks
    like an arc begins with a backslash; \s in a word is a space, \r a carriage return, \b a
    byte-order mark, and \\ a backslash. With --glue it restores the spaces too, if they are
    single ones between words: <+> says that the next word follows without a space. Lemmas, tags,
    features, comments, empty nodes, enhanced arcs and the label of the root are lost, and
    multiword tokens are their words: `zu dem` for `zum`. With --multiword token each is one word,
    which depends as its highest word does, and whatever depends on one of its words depends on
    it.

    Pieces are those of the vocabulary, with its normalization. A word that contains a space or ▁
    cannot be split into pieces, and its line fails. --format symbols writes each label in both
    directions (with --glue also <+>) for vocab train --symbols: no text ever becomes such a piece.
    """
    if format == "symbols":
        options.refuse(
            {"--format symbols lists labels: it takes no --spm, --strict": spm or strict}
        )
        options.refuse_clashes(files or (), output)
        bad = BadTrees()
        instead = bad if on_bad_tree == "failed" else None
        sentences = (
            one
            for source in reading.sources(files or ())
            for one in conllu.read(source, instead=instead)
        )
        with writing.output(output) as writer:
            for symbol in symbols_of(sentences, split_transitions, glue):
                writer.write(symbol.encode() + b"\n")
        for warning in bad.warnings():
            console.warn(warning)
        return
    options.refuse_clashes([spm, *(files or ["-"])], output)
    how = on_nonprojective, split_transitions, glue, multiword
    recipe = pool.Recipe(
        partial(linearizing, spm, how, format == "jsonl", strict, on_bad_tree),
        () if spm is None else (spm,),
        pool.Care(where=where, warn=console.warn),
    )
    do, work = partial(pool.mapped, recipe, jobs=jobs, chunk=1), cut_by_line(batches(files or ()))
    conllu_work.write(do, work, files, output, line_buffered, "linearized", "lines")


def linearizing(
    spm: str | None, how: tuple[Any, ...], as_json: bool, strict: bool, on_bad_tree: OnBadTree
) -> Callable[[Work], Done]:
    """The function of a worker. how: options of Linearizer. Raises SynmtError."""
    vocabulary = None if spm is None else Vocabulary.load(spm)
    return LinearizeJob(Linearizer(vocabulary, *how), as_json, strict, on_bad_tree).run
