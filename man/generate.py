"""Writes the man pages: synmt.1 and one for each command into man1/, synmt-config.5 into man5/.

Everything comes from the command table, the option tables and each module's MANUAL, so a
page cannot differ from the program. `python man/generate.py --check` only compares.
"""

from __future__ import annotations

import inspect
import sys
from pathlib import Path

import typer

from synmt_cli import __version__, cli
from synmt_cli.core.run import settings
from synmt_cli.core.run.presets import PRESETS
from synmt_cli.formats.reports.settings import shown

HERE = Path(__file__).parent
SECTIONS = {"config": 5}  # of the pages that are of no command
EXIT_STATUS = (
    ("0", "Done."),
    ("1", "A question was answered no (check, score --fail-under)."),
    ("2", "Wrong usage."),
    ("65", "Bad data, named with file and line; or streams of different lengths."),
    ("66, 73", "Cannot read; cannot create."),
    ("74", "I/O error such as a full disk; out of memory; a worker was lost."),
    (
        "69",
        "A parser or vocabulary is missing or damaged; or a device, a package, or the memory to "
        "load one, is missing; the message says what to do.",
    ),
    ("70", "A bug in synmt, or in the file of SYNMT_VARIANTS."),
    ("75", "Stopped and saved; the same command resumes (train)."),
    (
        "78",
        "A configuration, vocabulary or machine does not fit the run, or the loss is not a number.",
    ),
    ("129, 130, 141, 143", "SIGHUP, SIGINT, SIGPIPE, SIGTERM."),
)
ENVIRONMENT = (
    (
        "SYNMT_VARIANTS",
        "A Python file with variants of your own (docs/own-variants.md). Every command that makes "
        "or reads models runs it, whatever their variant; so do variants and settings.",
    ),
    ("TMPDIR", "Where temporary files are."),
    ("NO_COLOR", "Messages have no colour."),
)
STREAMS = """\
Every command of the pipe reads FILEs or stdin and writes stdout or the file named by -o. A segment
is a line; only LF ends a line. A CR before it is dropped, and so is a byte order mark at the
beginning of a file. Each segment of the input gives one result, in the same order; an empty
line gives an empty one. Input is UTF-8; gz, bz2, xz and zst are recognised by their first
bytes when read, and chosen by suffix when written. A file named by -o appears whole or not at
all. A line can have at most 64 MiB. Messages go to stderr; NO_COLOR is honoured.
If an option that takes one value is given several times, the last one counts."""


def escape(text: str) -> str:
    """Text with the characters that roff would interpret escaped."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq")
    return "\n".join("\\&" + line if line.startswith(".") else line for line in text.split("\n"))


def section(name: str, *paragraphs: str) -> str:
    """A section with its heading; "" without paragraphs."""
    body = "\n.PP\n".join(escape(p) for p in paragraphs if p)
    return f".SH {name}\n{body}\n" if body else ""


def verbatim(text: str) -> str:
    """Text whose lines are not filled."""
    return f".nf\n{escape(text)}\n.fi\n"


def tagged(rows: list[tuple[str, str]]) -> str:
    """A definition list."""
    return "".join(f".TP\n\\fB{escape(tag)}\\fR\n{escape(text)}\n" for tag, text in rows)


def heading(name: str, what: str, number: int = 1) -> str:
    """Title line and NAME. number: the manual's section."""
    title = name.replace(" ", "-")
    return (
        f'.TH "{title.upper()}" {number} "" "synmt {__version__}" "synmt"\n'
        f".SH NAME\n{escape(title)} \\- {escape(what.rstrip('.'))}\n"
    )


def description(function: object) -> str:
    """A docstring as roff: paragraphs are filled, except those after \\b."""
    parts = []
    for paragraph in (inspect.getdoc(function) or "").split("\n\n"):
        if paragraph.startswith("\b"):
            parts.append(verbatim(paragraph.removeprefix("\b\n")))
        else:
            parts.append(escape(paragraph) + "\n")
    return ".SH DESCRIPTION\n" + ".PP\n".join(parts)


def page(name: str) -> str:
    """The page of one command. `name` is a key of cli.COMMANDS."""
    command, manual = cli.load(name), cli.manual(name)
    context = typer.Context(command, info_name=f"synmt {name}", **cli.CONTEXT)
    options = [r for p in command.get_params(context) if (r := p.get_help_record(context))]
    usage = " ".join(command.collect_usage_pieces(context))
    others = ", ".join(map(reference, manual.see_also))
    return "".join(
        [
            heading(f"synmt {name}", cli.COMMANDS[name][1]),
            f".SH SYNOPSIS\n\\fBsynmt {escape(name)}\\fR {escape(usage)}\n",
            description(cli.function(name)),
            ".SH OPTIONS\n" + tagged(options),
            section("INPUT", manual.input),
            section("OUTPUT", manual.output),
            section("MEMORY", manual.memory),
            ".SH EXIT STATUS\n" + tagged(list(EXIT_STATUS)),
            ".SH EXAMPLES\n" + "".join(map(verbatim, manual.examples)),
            ".SH SEE ALSO\n\\fBsynmt\\fR(1)" + (f", {others}" if others else "") + "\n",
        ]
    )


def reference(name: str) -> str:
    """Another page, as SEE ALSO names it."""
    return f"\\fBsynmt\\-{escape(name.replace(' ', '-'))}\\fR({SECTIONS.get(name, 1)})"


CONFIG = """\
A setting is section.key=value for synmt train --set, and the line key = value below [section] in
a file of TOML for synmt train --config and in the config.toml that a run directory keeps. The
sections are model, training, and the names of variants. The keys variant and preset stand before
all sections. The preset overrides the defaults, --config the preset, and --set and options of a
setting's own, such as --seed, override both. synmt settings prints the same."""
EXAMPLE = """\
variant = "pascal"
preset = "tiny"

[model]
dropout = 0.2

[training]
lr = 0.002
betas = [0.9, 0.98]

[pascal]
heads = 1"""


def configuration() -> str:
    """The page of all settings and presets."""
    known = settings.every()
    rows = [
        (
            f"{one.key} = {shown(one.option.default)}",
            f"{one.option.meaning} ({one.option.values()})",
        )
        for one in known
    ]
    presets = [(name, ", ".join(set_by(name, known)) or "The defaults.") for name in PRESETS]
    return "".join(
        [
            heading("synmt config", "settings of models and training, and config.toml", 5),
            section("DESCRIPTION", CONFIG),
            ".SH EXAMPLE\n" + verbatim(EXAMPLE),
            ".SH SETTINGS\n" + tagged(rows),
            ".SH PRESETS\n" + tagged(presets),
            ".SH SEE ALSO\n" + ", ".join(map(reference, ("settings", "train", "variants"))) + "\n",
        ]
    )


def set_by(preset: str, known: list[settings.Setting]) -> list[str]:
    """What a preset sets that is not the default."""
    return [
        f"{one.key} = {shown(value)}"
        for one in known
        if preset in one.presets and (value := one.presets[preset]) != one.option.default
    ]


def overview() -> str:
    """The page of `synmt` itself."""
    rows = [(f"synmt {name}", what) for name, (_, what) in cli.COMMANDS.items()]
    return "".join(
        [
            heading("synmt", "syntax-aware neural machine translation as small tools"),
            ".SH SYNOPSIS\n\\fBsynmt\\fR COMMAND [OPTIONS] [ARGS]...\n",
            description(cli.synmt),
            ".SH COMMANDS\n" + tagged(rows),
            ".SH OPTIONS\n" + tagged(_root_options()),
            section("STREAMS", STREAMS),
            ".SH ENVIRONMENT\n" + tagged(list(ENVIRONMENT)),
            ".SH EXIT STATUS\n" + tagged(list(EXIT_STATUS)),
        ]
    )


def _root_options() -> list[tuple[str, str]]:
    command = cli.program()
    context = typer.Context(command, info_name="synmt", **cli.CONTEXT)
    return [r for p in command.get_params(context) if (r := p.get_help_record(context))]


def pages() -> dict[str, str]:
    """Path in man/ -> text of every page."""
    commands = {f"man1/synmt-{name.replace(' ', '-')}.1": page(name) for name in cli.COMMANDS}
    return {"man1/synmt.1": overview(), **commands, "man5/synmt-config.5": configuration()}


def main() -> None:
    """Writes the pages, or with --check exits 1 if one of them is out of date."""
    current = pages()
    for path in {*HERE.glob("man?/*.?")} - {HERE / name for name in current}:
        if "--check" in sys.argv:
            sys.exit(f"{path.name} is of no command: run `make man`")
        path.unlink()
    for name, text in current.items():
        path = HERE / name
        if "--check" in sys.argv:
            if not path.exists() or path.read_text(encoding="utf-8") != text:
                sys.exit(f"{name} is out of date: run `make man`")
        else:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
