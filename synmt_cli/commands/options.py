"""The options that several commands have, each declared once, and how one is declared.

    def parse(files: options.Files = None, jobs: options.Jobs = 1, ...) -> None:

Typer reads the annotations. A command's own options stand in its signature, as `option` or
`argument`, in the words of the help line that they become.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal

import typer

from synmt_cli import console
from synmt_cli.commands import completion
from synmt_cli.core.options import SEED as SEED  # where commands look for it
from synmt_cli.errors import UsageError, quoted
from synmt_cli.formats.reports.bounds import LEAST_PATIENCE
from synmt_cli.io import reading
from synmt_cli.io.compression import is_compressed_name


def option(flags: str, help: str, shown_default: str = "", **details: Any) -> Any:
    """A typer.Option from the two columns of its help: `"-j, --jobs N", "Processes."`.

    shown_default: what the help gives as the default of an option that is None until set.
    details: as typer.Option takes them, such as min and max.
    """
    *short, rest = flags.split(", ")
    long, _, metavar = rest.partition(" ")
    if shown_default:  # typer would put a text of its own in parentheses
        help += f"  [default: {shown_default}]"
    return typer.Option(*short, long, metavar=metavar or None, help=help, **details)


def argument(metavar: str, help: str, **details: Any) -> Any:
    """A typer.Argument from the two columns of its help."""
    return typer.Argument(metavar=metavar, help=help, **details)


def refuse(problems: Mapping[str, object]) -> None:
    """Raises UsageError with the first message whose value is true."""
    for message, holds in problems.items():
        if holds:
            raise UsageError(message)


def refuse_no_folder(name: str, path: str) -> None:
    """Raises UsageError if the name of a folder to write is empty, or `-`, which is stdout."""
    refuse(
        {
            f"{name} is empty: it names a folder": not path,
            f"{name} names a folder, not stdout; ./- is one of that name": path == "-",
        }
    )


def given(context: Any) -> set[str]:
    """The names of the parameters that the command line sets. context: typer's."""
    sources = ((name, context.get_parameter_source(name)) for name in context.params)
    return {name for name, source in sources if source and source.name != "DEFAULT"}


def given_of(context: Any, names: Mapping[str, str]) -> dict[str, bool]:
    """Whether the command line sets each of these options. names: parameter -> option."""
    return {option: name in given(context) for name, option in names.items()}


def refuse_given(context: Any, names: Mapping[str, str], reason: str) -> None:
    """Raises UsageError if the command line sets one of these options.

    names: parameter -> option. reason: follows the option in the message.
    """
    refuse(
        {f"{option} {reason}": is_given for option, is_given in given_of(context, names).items()}
    )


def refuse_two_stdins(paths: Iterable[str | None]) -> None:
    """Raises UsageError if `-` is named twice, because stdin can be read once."""
    refuse({"only one input can be stdin": [*paths].count("-") > 1})


def refuse_clashes(
    inputs: Iterable[str | None], *outputs: str | None, rewritten: Iterable[str | None] = ()
) -> None:
    """Raises UsageError if two inputs are stdin, or an output would replace an input.

    rewritten: further inputs, which an output may replace, because a filter may write to the file
    that it changes if what it writes is of the same format.
    """
    files = [one for one in inputs if one]
    refuse_two_stdins([*files, *rewritten])
    for output in outputs:
        if output and reading.is_among(output, files):
            raise UsageError(f"{output} is an input, which would be replaced: name another file")


def is_watched(paths: Sequence[str], line_buffered: bool) -> bool:
    """Whether results are wanted at once: with --line-buffered, or for text typed at a terminal."""
    return line_buffered or ("-" in paths and os.isatty(0))


def refuse_compressed(output: str) -> None:
    """Raises UsageError if the name would compress a model: nobody could load it."""
    if is_compressed_name(output):
        raise UsageError(f"-o {output}: a model is not compressed; name it otherwise")


def is_named_twice(paths: Iterable[str | None]) -> bool:
    """Whether two of the paths are one file, or both `-`. None and "" are files not asked for.

    /dev/null may be named any number of times.
    """
    named = [path for path in paths if path and path != os.devnull]
    places = [path if path == "-" else os.path.realpath(path) for path in named]
    return len(set(places)) < len(places)


def is_written_twice(outputs: Iterable[str | None]) -> bool:
    """Whether two of the outputs are one file, as /dev/stdout and `-` are.

    On a terminal these two count as different: it may show several outputs.
    """
    stdout = "-" if os.isatty(1) else "/dev/stdout"
    return is_named_twice(stdout if one == "-" else one for one in outputs)


def names(text: str) -> list[str]:
    """The different names in a list, in order. Spaces at its commas do not count.

    >>> names("bleu, chrf,bleu")
    ['bleu', 'chrf']
    """
    return list(dict.fromkeys(name.strip() for name in text.split(",")))


def numbers(name: str, text: str) -> list[int]:
    """The numbers in a list such as `0,3`; none in an empty text. Raises UsageError.

    >>> numbers("--heads", "0,3")
    [0, 3]
    """
    parts = text.split(",") if text else []
    for part in parts:
        if not (part.isascii() and part.isdecimal() and len(part) < 10):
            raise UsageError(f"{name} {quoted(text)}: expected numbers from 0 on, such as 0,2")
    return [int(part) for part in parts]


def _quiet(value: bool) -> bool:
    if value:
        console.set_level(console.QUIET)
    return value


def _seed(value: int) -> int:
    if value >= 2**63:  # reports are JSON, whose whole numbers have 64 bits
        raise UsageError(f"--seed {value}: at most {2**63 - 1}")
    return value


def _verbose(value: bool) -> bool:
    if value:
        console.set_level(console.VERBOSE)
    return value


# Input and output.
def _one_stdin(files: list[str] | None) -> list[str] | None:
    refuse_two_stdins(files or ())
    return files


Files = Annotated[
    list[str] | None,
    argument("FILE", "Input files; none or - is stdin.", callback=_one_stdin),
]
InputKind = Annotated[
    Literal["auto", "text", "jsonl", "conllu"],
    option("--from", "What the input is; auto looks at the first record."),
]
ExcludedKind = Annotated[
    Literal["auto", "text", "jsonl", "conllu"],
    option("--exclude-format", "What the files of --exclude are; auto looks at each."),
]
Output = Annotated[
    str, option("-o, --output FILE", "Write to this file, whole or not at all; - is stdout.")
]
LineBuffered = Annotated[
    bool, option("--line-buffered", "Write each record as soon as it is ready.")
]
ReportFormat = Annotated[
    Literal["table", "tsv", "csv", "json", "latex", "markdown"],
    option("--format", "How to print the results; latex is for booktabs."),
]
ListFormat = Annotated[
    Literal["text", "tsv", "csv", "json", "latex", "markdown"],
    option("--format", "How to print the list; latex is for booktabs."),
]
PropertyFormat = Annotated[
    Literal["tsv", "json"], option("--format", "A property a line, or one JSON object for all.")
]

OnBadTree = Annotated[
    Literal["error", "failed"],
    option(
        "--on-bad-tree",
        "A sentence of CoNLL-U that is not a tree: error ends the run, failed makes it a failed "
        "segment.",
    ),
]

# Work.
Jobs = Annotated[int, option("-j, --jobs N", "Processes; 0 uses every core.", min=0, max=9999)]
Strict = Annotated[bool, option("--strict", "End at the first failed or skipped segment (65).")]
Seed = Annotated[int, option("--seed N", "Seed of every random choice.", min=0, callback=_seed)]
Quiet = Annotated[bool, option("-q, --quiet", "Show errors only.", callback=_quiet)]
Verbose = Annotated[
    bool,
    option(
        "-v, --verbose",
        "Also show the options in effect, the files read and written, and the time taken.",
        callback=_verbose,
    ),
]

# Vocabularies.
VocabularyModel = Annotated[str, option("-m, --model MODEL", "The vocabulary.")]
PieceVocabulary = Annotated[
    str | None, option("--spm MODEL", "Vocabulary of the pieces; without it, words only.")
]
TransitionVocabulary = Annotated[
    str | None, option("--spm MODEL", "Vocabulary of transitions over pieces.")
]
TargetVocabulary = Annotated[
    str | None, option("--tgt-spm MODEL", "Vocabulary of the target, if it has its own.")
]

# Transitions.
OnNonprojective = Annotated[
    Literal["drop", "keep", "error"],
    option(
        "--on-nonprojective",
        "A tree that is not projective: drop writes no transitions, keep lifts the tree first, "
        "error ends the run.",
    ),
]
SplitTransitions = Annotated[
    bool, option("--split-transitions", "Write an arc as two tokens, direction and label.")
]
Glue = Annotated[bool, option("--glue", "Write <+> before a word that follows without a space.")]
MultiwordTokens = Annotated[
    Literal["words", "token"],
    option("--multiword", "Write a multiword token as its words, or as one word."),
]

# Trained models.
RunModel = Annotated[str, option("-m, --model RUN", "Run directory.")]
RunParser = Annotated[str, option("--parser MODEL", "Parser for text instead of the run's own.")]
Checkpoint = Annotated[
    str, option("--checkpoint NAME", "best, last or step-N.", autocompletion=completion.checkpoint)
]
Device = Annotated[
    str,
    option(
        "--device NAME",
        "cpu, cuda, cuda:1, or auto: a GPU if there is one.",
        autocompletion=completion.device,
    ),
]
Patience = Annotated[
    float | None,
    option(
        "--patience P",
        "Stop when P * beam translations are finished; without it, when no better one is possible.",
        min=LEAST_PATIENCE,
    ),
]
BatchSize = Annotated[int, option("--batch-size N", "At most N segments in a batch.", min=1)]
Threads = Annotated[int, option("--threads N", "Threads; 0 leaves the number to torch.", min=0)]
MeasuredRuns = Annotated[
    list[str], option("-m, --model RUN", "Run directory; repeatable, each is measured.")
]
LongestMeasured = Annotated[
    int, option("--max-pieces N", "Leave out sources of more pieces.", min=1)
]
