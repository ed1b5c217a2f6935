"""The `synmt` program: which commands exist, and how each run ends.

A command is a module in commands/ with a function of its name and a MANUAL. A module is
imported only when its command runs, so `synmt --help` stays fast and never loads torch.
"""

import contextlib
import difflib
import errno
import functools
import gc
import importlib
import io
import os
import re
import resource
import shlex
import signal
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any, NoReturn

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup

from synmt_cli import __version__, console, signals
from synmt_cli.commands import Manual, completion, options
from synmt_cli.errors import (
    BUG,
    CreateError,
    SynmtError,
    UsageError,
    WriteError,
    is_of_memory,
    quoted,
)
from synmt_cli.io import memory, writing

# name: (module in commands/, what it does). The order is the order of the pipe.
COMMANDS: dict[str, tuple[str, str]] = {
    "init": ("init", "Write a folder in which make compares models on your text."),
    "parse": ("parse", "Parse text: one block of CoNLL-U for each line."),
    "parser train": ("parser_train", "Train a UDPipe parser from CoNLL-U."),
    "evaltree": ("evaltree", "Compare trees with gold trees: UAS, LAS and more."),
    "perturb": ("perturb", "Put noise into trees, or replace them."),
    "vocab train": ("vocab_train", "Train a subword vocabulary from text."),
    "vocab encode": ("vocab_encode", "Split text into subword pieces."),
    "vocab decode": ("vocab_decode", "Join subword pieces to text."),
    "vocab info": ("vocab_info", "Show the properties of a vocabulary."),
    "vocab convert": ("vocab_convert", "Give another program's sentencepiece model synmt's ids."),
    "featurize": ("featurize", "Join trees, pieces and targets into JSONL records."),
    "linearize": ("linearize", "Write trees as transitions, one line each."),
    "delinearize": ("delinearize", "Turn transitions back into text or trees."),
    "filter": ("filter", "Keep the pairs that are fit to train on."),
    "split": ("split", "Split a parallel text into parts that share no line."),
    "multitask": ("multitask", "Make records that teach a plain model syntax."),
    "variants": ("variants", "List the model variants, their papers and options."),
    "settings": ("settings", "List the settings of models and training, and their presets."),
    "train": ("train", "Train a model from JSONL records."),
    "average": ("average", "Average several checkpoints into one model."),
    "export": ("export", "Write a model for CTranslate2."),
    "translate": ("translate", "Translate records, trees or text."),
    "likelihood": ("likelihood", "Score given translations by their log-probability."),
    "tune": ("tune", "Find the length penalty that is best on development data."),
    "score": ("score", "Score translations, with significance."),
    "map": ("map", "Run a command over many processes or machines."),
    "bucket-by-length": ("bucket_by_length", "Count, label or split segments by length."),
    "challenge": ("challenge", "Select sentences with long-distance phenomena."),
    "mixup make": ("mixup_make", "Write German sentences in both word orders."),
    "mixup score": ("mixup_score", "Check whether translations keep subject and object."),
    "analyze awsl": ("analyze_awsl", "Weigh syntax against plain attention in each layer."),
    "analyze heads": ("analyze_heads", "Find attention heads that see dependencies."),
    "analyze attention": ("analyze_attention", "Show attention weights as JSONL."),
    "analyze probe": ("analyze_probe", "Probe what the encoder knows about sentences."),
    "plot curves": ("plot_curves", "Draw training curves."),
    "plot scores": ("plot_scores", "Draw the scores of systems, with intervals."),
    "plot attention": ("plot_attention", "Draw attention weights as heat maps."),
    "plot heads": ("plot_heads", "Draw which attention heads see dependencies."),
    "plot awsl": ("plot_awsl", "Draw the weight of syntax by layer."),
    "report": ("report", "Write a comparison as one page."),
    "info": ("info", "Describe files: what they are, and their main figures."),
    "check": ("check", "Report everything that is wrong with files."),
    "view": ("view", "Draw dependency trees."),
    "synth": ("synth", "Make English-German sentence pairs with gold trees."),
}
CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
# The metavars of options that must not be empty: an empty list or pattern has a meaning, an empty
# name has none.
NAMES = (
    "FILE",
    "MODEL",
    "RUN",
    "DIR",
    "TOML",
    "TEMPLATE",
    "NAME",
    "NAME[+NAME]",
    "TIME",
    "ADDRESS",
)
GROUPS = {
    "parser": "Train parsers.",
    "vocab": "Train and apply subword vocabularies.",
    "mixup": "See whether models read case or word order.",
    "analyze": "Look into trained models.",
    "plot": "Draw figures for papers and terminals.",
}


class Command(TyperCommand):
    """A command that with --verbose shows its options, and the time and memory that it took."""

    def invoke(self, ctx: Any) -> Any:
        """Runs the command."""
        _refuse_empty(self, ctx)
        start = time.perf_counter()
        console.debug(f"options: {_options(self, ctx.params)}")
        result = super().invoke(ctx)
        console.debug(f"done in {time.perf_counter() - start:,.2f} s, {_usage_of_machine()}")
        return result


def _refuse_empty(command: TyperCommand, context: Any) -> None:
    """Raises UsageError if a name is empty, as in `--parser "$UNSET"`."""
    given = options.given(context)
    for parameter in command.params:
        name, metavar = parameter.name or "", getattr(parameter, "metavar", None)
        is_empty = context.params[name] == "" and parameter.default in ("", None)
        if name in given and is_empty and metavar in NAMES:
            raise UsageError(f"{parameter.opts[-1]} is empty: leave it out, or give its {metavar}")


def _options(command: TyperCommand, values: dict[str, Any]) -> str:
    """The arguments and options in force, defaults included, as one would type them."""
    words: list[str] = []
    for parameter in command.params:
        value = values.get(parameter.name or "")
        if value is None or value is False or value == "" or parameter.name == "verbose":
            continue
        name = [] if isinstance(parameter, TyperArgument) else [max(parameter.opts, key=len)]
        if value is True:
            words += name
            continue
        if parameter.nargs > 1:
            words += [*name, *map(shlex.quote, map(str, value))]
            continue
        for one in value if isinstance(value, (list, tuple)) else [value]:
            words += [*name, shlex.quote(str(one))]
    return " ".join(words)


def _usage_of_machine() -> str:
    """CPU time and peak memory of this process and of the children that it waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    seconds = sum(one.ru_utime + one.ru_stime for one in used)
    unit = 1 if sys.platform == "darwin" else 1024  # bytes
    memory = max(one.ru_maxrss for one in used) * unit / 2**20
    return f"{seconds:,.2f} s of CPU time, at most {memory:,.0f} MiB in a process"


class Commands(TyperGroup):
    """Finds commands in COMMANDS, `parser train` as the entry "parser train"."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The names at this level, in the order of the table."""
        prefix = self._prefix()
        below = (name.removeprefix(prefix) for name in COMMANDS if name.startswith(prefix))
        return list(dict.fromkeys(name.split()[0] for name in below))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command or group of that name, or None."""
        full = f"{self._prefix()}{cmd_name}"
        if full in COMMANDS:
            return load(full)
        if full in GROUPS:
            return Commands(
                name=full,
                help=GROUPS[full],
                no_args_is_help=True,
                rich_markup_mode=None,
                context_settings=CONTEXT,
            )
        return None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Resolves as TyperGroup does. Raises UsageError, with similar names, if none is found."""
        name = f"{self._prefix()}{args[0]}"
        if not (name in COMMANDS or name in GROUPS or ctx.resilient_parsing):
            raise UsageError(
                f"no command {quoted(name)}{_nearest(args[0], self._prefix())} "
                f"(see {ctx.command_path} --help)"
            )
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Names and one-liners straight from the table: no module is imported for help."""
        rows = [
            (name, COMMANDS.get(self._prefix() + name, ("", GROUPS.get(name, "")))[1])
            for name in self.list_commands(ctx)
        ]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def _prefix(self) -> str:
        return f"{self.name} " if self.name in GROUPS else ""


def _nearest(name: str, prefix: str) -> str:
    """`; did you mean ...?` with commands of a similar name, "" if there are none.

    prefix: the group's name and a space, or ""; its own commands come before those of others.
    """
    last = {command: command.split()[-1] for command in (*COMMANDS, *GROUPS)}
    own = {command: word for command, word in last.items() if command == prefix + word}
    for known in (own, last):
        near = difflib.get_close_matches(name, set(known.values()), 1)
        if near:
            meant = [command for command, word in known.items() if word in near]
            return f"; did you mean {' or '.join(f'synmt {one}' for one in meant)}?"
    return ""


def module(name: str) -> Any:
    """The module of a command. `name` is a key of COMMANDS."""
    return importlib.import_module(f"synmt_cli.commands.{COMMANDS[name][0]}")


def function(name: str) -> Callable[..., None]:
    """The function of a command."""
    command: Callable[..., None] = getattr(module(name), name.replace(" ", "_").replace("-", "_"))
    return command


def manual(name: str) -> Manual:
    """The sections of a command's help and man page that its options do not give."""
    sections: Manual = module(name).MANUAL
    return sections


@functools.cache
def load(name: str) -> TyperCommand:
    """Imports a command, with its examples at the end of its help."""
    one = typer.Typer(add_completion=False, rich_markup_mode=None)
    lines = "\n".join(f"  {example}" for example in manual(name).examples)
    one.command(
        name.split()[-1],
        cls=Command,
        epilog=f"\b\nExamples:\n{lines}",
        context_settings=CONTEXT,
    )(function(name))
    command = typer.main.get_command(one)
    assert isinstance(command, TyperCommand)
    for parameter in command.params:
        if isinstance(parameter, TyperArgument):
            # Help names it by its metavar alone: `FILE`, not `FILE <list[str]>`.
            parameter.display_type_rich = lambda ctx: None  # type: ignore[method-assign]
    return command


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings=CONTEXT,
)


def _version(value: bool) -> None:
    if value:
        typer.echo(f"synmt {__version__}")
        raise typer.Exit


@app.callback()
def synmt(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Print the version and exit."
    ),
) -> None:
    """Syntax-aware neural machine translation, one small tool at a time.

    Most commands read files or stdin and write to stdout, so that pipes join them:

    \b
      synmt parse -m de.udpipe < train.de | synmt featurize --spm spm.model --tgt train.en > t.jsonl
      synmt parse -m de.udpipe < dev.de | synmt featurize --spm spm.model --tgt dev.en > d.jsonl
      synmt train --variant pascal --train t.jsonl --dev d.jsonl --parser de.udpipe --run runs/p
      synmt translate -m runs/p < test.de > pascal.en
      synmt score test.en pascal.en
    """


@functools.cache
def program() -> TyperGroup:
    """All commands."""
    group = typer.main.get_command(app)
    assert isinstance(group, TyperGroup)
    return group


def main() -> NoReturn:
    """Runs `synmt` and ends the process. Errors that a user can cause print no traceback."""
    writing.guard_descriptors()
    signals.install()
    memory.guard_imports()
    # Torch's threads wait for each other in a busy loop. If fewer cores are free than there are
    # threads, a long loop takes the core from the thread that is waited for.
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", "1000")
    # Importing torch's compiler makes the folder for its results. This folder exists already;
    # training that does compile uses another (core/training/device/compiled.py).
    os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", os.sep)
    try:
        run = _complete_for_bash if completion.is_asked_by_bash() else _run
        status = run(sys.argv[1:])
        signals.close()
    except signals.Interrupted as error:  # while another error was being reported
        signals.close()
        status = 128 + error.number
    if status > 128:  # a signal may have come before a generator's `finally`, which runs now
        gc.collect()
    _leave(status)


def _run(arguments: list[str]) -> int:
    console.command = _name(arguments)
    try:
        result = program()(arguments, prog_name="synmt", standalone_mode=False)
        if sys.stdout is not None:
            sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except BaseException as error:
        return _status(error)


def _complete_for_bash(arguments: list[str]) -> int:
    """Answers bash, which cuts words and replaces only what follows the last cut."""
    kept = completion.whole(os.environ)
    answer = io.StringIO()
    with contextlib.redirect_stdout(answer):
        status = _run(arguments)
    typer.echo(completion.after_cut(answer.getvalue(), kept), nl=False)
    return status


def _status(error: BaseException) -> int:
    """Reports what ended the run, in one line where a user can act on it. Returns the status."""
    match error:
        case SynmtError():
            console.error(str(error))
            return error.exit_code
        case typer.TyperException():
            return _usage(error.format_message())
        # A signal may come while a wait of `threading` has given its lock away, which the end of
        # the wait then finds free.
        case (
            signals.Interrupted(number=number)
            | RuntimeError(__context__=signals.Interrupted(number=number))
        ):
            return 128 + number
        # typer turns a closed pipe into exit(1), in any mode
        case BrokenPipeError() | SystemExit(__context__=BrokenPipeError()):
            return 128 + signal.SIGPIPE
        case SystemExit():  # shell completion
            return error.code if isinstance(error.code, int) else UsageError.exit_code
        case RuntimeError() | ImportError() | OSError() | MemoryError() if is_of_memory(error):
            console.error("out of memory: try smaller batches or fewer processes")
            return WriteError.exit_code
        case OSError():
            return _system(error)
    return _bug(error)


def _bug(error: BaseException) -> int:
    """Reports a mistake of synmt's, or of the user's file of variants. Returns the status."""
    from synmt_cli.core.variants import own_file

    if (line := own_file.line_in(own_file.path(), error)) is not None:
        message = f"{own_file.path()}:{line}: {type(error).__name__}: {error}"
    elif own_file.path():
        what = f"a mistake in {own_file.path()}, or a bug in synmt"
        message = f"this is {what}; please report a bug with the lines above"
    else:
        message = "this is a bug in synmt; please report it with the lines above"
    console.error(message, above="".join(traceback.format_exception(own_file.from_own(error))))
    return BUG


def _system(error: OSError) -> int:
    """Reports what the system refused. Returns the status."""
    if error.errno == errno.ENOENT and error.filename is None:  # only tempfile and getcwd name none
        problem = "no folder for temporary files can be written; set TMPDIR to one"
        try:
            os.getcwd()
        except FileNotFoundError:
            problem = "the current folder is gone; change to one that exists"
        console.error(problem)
        return CreateError.exit_code
    of_any_file = error.errno in (errno.EMFILE, errno.ENFILE)
    where = error.filename or ("files" if of_any_file else "stdout")
    console.error(f"{where}: {error.strerror or error}")
    return WriteError.exit_code


def _usage(message: str) -> int:
    """Reports wrong usage. Returns the status."""
    if message.startswith("Usage: "):  # no command: the message is the help
        with contextlib.suppress(OSError):  # nobody reads stderr; the status still tells
            typer.echo(message, err=True)
    else:
        message = " ".join(message.split()).replace("Value error, ", "")
        if found := re.fullmatch(r"No such option: (\S+) \(Possible options: (.*)\)", message):
            near = difflib.get_close_matches(found[1], found[2].split(", "), 1, cutoff=0)
            message = f"no option {found[1]}; did you mean {near[0]}?"
        console.error(f"{message} (see {console.command} --help)")
    return UsageError.exit_code


def _name(arguments: list[str]) -> str:
    """`synmt COMMAND` if the arguments begin with a command, otherwise `synmt`."""
    if arguments and arguments[0].startswith("-"):
        return "synmt"
    words = [word for word in arguments if not word.startswith("-")]
    for n in (2, 1):
        if " ".join(words[:n]) in COMMANDS:
            return " ".join(["synmt", *words[:n]])
    return "synmt"


def _leave(status: int) -> NoReturn:
    """Ends at once with `status`; a normal exit would turn it into 120 if a last flush failed."""
    if "synmt_cli.pool" in sys.modules:  # an error may still hold the generator of results
        sys.modules["synmt_cli.pool"].end_children()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            if stream is not None:
                stream.flush()
    os._exit(status)
