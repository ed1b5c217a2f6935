"""The import rule and the bans of the house, kept by a test rather than by memory."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

from synmt_cli.cli import COMMANDS, GROUPS

PACKAGE = Path(__file__).parents[1] / "synmt_cli"
FILES = sorted(PACKAGE.rglob("*.py"))

# Each room imports only itself and rooms with a smaller number.
ROOMS = {
    "__init__": 0,
    "errors": 0,
    "signals": 0,
    "io": 1,
    "pool": 1,
    "formats": 2,
    "core": 3,
    "synth": 3,
    "commands": 4,
    "cli": 4,
    "console": 4,
    "__main__": 4,
}
# The rooms inside core and synth, from the ground up: each imports only itself and those before it.
CORE = (
    "options",
    "trees",
    "segments",
    "text",
    "transitions",
    "model",
    "variants",
    "data",
    "run",
    "pictures",
    "decoding",
    "distributed",
    "training",
    "filtering",
    "evaluation",
    "challenge",
    "jobs",
    "analysis",
    "inspection",
    "report",
    "experiment",
)
SYNTH = (
    *("settings", "lexicon", "meaning", "words", "tokens", "english", "german"),
    *("description", "sampling", "pairs", "files"),
)
INNER = {"core": CORE, "synth": SYNTH}
# Modules that a room never imports, at the top of a file or inside a function; "" is every room.
PICKLES = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "marshal", "shelve"}
BANNED = {
    "": PICKLES | {"click", "typer._click"},
    "formats": {"torch", "typer", "rich"},
    "core": {"typer", "rich"},
    "synth": {"torch", "typer", "rich"},
    "core/trees": {"torch"},
    "core/pictures": {"torch"},
    "errors": {"torch", "typer", "rich"},
    "signals": {"torch", "typer", "rich"},
    "io": {"torch", "typer", "rich"},
    "pool": {"torch", "typer", "rich"},
    "cli": {"torch", "rich"},
    "commands": {"rich"},
}
# Not loaded when only help is asked for.
HEAVY = (
    *("torch", "numpy", "sacrebleu", "sentencepiece", "ufal.udpipe", "safetensors", "py3langid"),
    *("ray", "matplotlib", "jinja2"),
)
# file: what it may do although it is banned, each with its reason.
ALLOWED = {
    "cli.py": {"sys.stdout"},  # flushes what typer wrote (help)
    "io/writing.py": {"sys.stdout"},  # makes help the same bytes in every locale
}


def tree(path):
    return ast.parse(path.read_bytes())


def imports(node):
    """Every module that is named by an import, also inside functions."""
    for one in ast.walk(node):
        if isinstance(one, ast.Import):
            yield from (alias.name for alias in one.names)
        elif isinstance(one, ast.ImportFrom):
            assert one.level == 0, "no relative imports: the rooms must show"
            yield one.module
            yield from (f"{one.module}.{alias.name}" for alias in one.names)


def within(name, banned):
    return any(name == one or name.startswith(f"{one}.") for one in banned)


def place(path):
    return path.relative_to(PACKAGE).as_posix().removesuffix(".py")


def number(module):
    """The room's number of `synmt_cli.room...`; names of the package itself are 0."""
    parts = module.split(".")
    return ROOMS.get(parts[1], 0) if len(parts) > 1 else 0


each_file = pytest.mark.parametrize("path", FILES, ids=place)


def test_every_room_has_its_place():
    top = {p.stem for p in PACKAGE.iterdir() if p.suffix == ".py" or (p / "__init__.py").exists()}
    assert top == set(ROOMS)


@each_file
def test_rooms_import_only_what_is_left_of_them(path):
    here = ROOMS[place(path).split("/")[0]]
    ours = [name for name in imports(tree(path)) if within(name, {"synmt_cli"})]
    assert [name for name in ours if number(name) > here] == []


@each_file
def test_no_room_imports_what_is_banned_there(path):
    banned = set()
    for room, names in BANNED.items():
        inside = not room or place(path) == room or place(path).startswith(f"{room}/")
        banned |= names if inside else set()
    assert [name for name in imports(tree(path)) if within(name, banned)] == []


def inner_room(name):
    """(outer room, place of the inner) of `core/room/...` or `synmt_cli.core.room...`; or None."""
    around, *rest = name.replace("/", ".").removeprefix("synmt_cli.").split(".")
    if around not in INNER or not rest or rest[0] == "__init__":
        return None
    return around, INNER[around].index(rest[0])


@pytest.mark.parametrize("around", INNER)
def test_every_inner_room_has_its_place(around):
    assert {p.stem for p in (PACKAGE / around).iterdir() if p.stem[:2] != "__"} == {*INNER[around]}


@pytest.mark.parametrize("path", [path for path in FILES if inner_room(place(path))], ids=place)
def test_inner_rooms_import_only_those_below_them(path):
    around, here = inner_room(place(path))
    named = {name: inner_room(name) for name in imports(tree(path))}
    assert [name for name, at in named.items() if at and at[0] == around and at[1] > here] == []


def offences(node):
    """What only the room io may use: text mode, line splitting, standard streams, pickles."""
    for one in ast.walk(node):
        if isinstance(one, ast.Attribute):
            name = f"{one.value.id}.{one.attr}" if isinstance(one.value, ast.Name) else one.attr
            if name in ("sys.stdin", "sys.stdout", "torch.load", "torch.save", "io.TextIOWrapper"):
                yield name
            elif one.attr in ("splitlines", "read_text", "write_text"):
                yield one.attr
        elif isinstance(one, ast.Call):
            yield from _offences_of_call(one)


def _offences_of_call(call):
    name = getattr(call.func, "id", getattr(call.func, "attr", ""))
    owner = getattr(getattr(call.func, "value", None), "id", "")
    keywords = {word.arg: word.value for word in call.keywords}
    if name == "open" and owner != "os":
        # open(path, mode) and Path.open(mode): the mode must be written out to be checked
        position = 0 if isinstance(call.func, ast.Attribute) and owner != "io" else 1
        mode = keywords.get("mode", call.args[position] if len(call.args) > position else None)
        texts = [n.value for n in ast.walk(mode or call.func) if isinstance(n, ast.Constant)]
        modes = [text for text in texts if isinstance(text, str)]
        if not modes or any("b" not in one for one in modes):
            yield "text-mode open()"
    if name in ("eval", "exec", "print") and isinstance(call.func, ast.Name):
        yield f"{name}()"
    for word in ("text", "universal_newlines", "allow_pickle"):
        if word in keywords and owner in ("subprocess", "np", "numpy"):
            yield f"{word}="


@each_file
def test_nothing_splits_lines_or_opens_text_but_io(path):
    allowed = ALLOWED.get(path.relative_to(PACKAGE).as_posix(), set())
    assert [offence for offence in offences(tree(path)) if offence not in allowed] == []


@pytest.mark.parametrize(
    ("code", "offence"),
    [
        ("open(path)", "text-mode open()"),
        ("open(path, 'r', encoding='utf-8')", "text-mode open()"),
        ("path.open()", "text-mode open()"),
        ("path.open(mode='w')", "text-mode open()"),
        ("Path(name).read_text(encoding='utf-8')", "read_text"),
        ("line.strip().splitlines()", "splitlines"),
        ("for line in sys.stdin: pass", "sys.stdin"),
        ("torch.load(path, weights_only=True)", "torch.load"),
        ("print(1)", "print()"),
    ],
)
def test_the_check_itself_sees_an_offence(code, offence):
    assert list(offences(ast.parse(code))) == [offence]


@pytest.mark.parametrize(
    "code",
    [
        "model.eval()",
        "open(p, 'rb')",
        "open(p, 'ab' if x else 'wb')",
        "p.open('wb')",
        "os.open(p, os.O_RDONLY)",
        "p.read_bytes()",
    ],
)
def test_the_check_itself_leaves_bytes_alone(code):
    assert list(offences(ast.parse(code))) == []


def python(code):
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=PACKAGE.parent, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def test_formats_trees_and_run_directories_never_load_torch():
    """They do not import it through another module either."""
    rooms = (
        *("formats", "core/trees", "core/segments", "core/options", "core/pictures"),
        *("core/run/config", "core/run/directory", "core/run/resuming", "core/run/settings"),
        "core/inspection/models",
    )
    names = [
        "synmt_cli." + place(path).replace("/", ".").removesuffix(".__init__")
        for path in FILES
        if place(path).startswith(rooms)
    ]
    code = f"import sys\nfor name in {names}: __import__(name)\nprint('torch' in sys.modules)"
    assert python(code) == b"False\n"


HELP = f"""
import contextlib, io, json, sys
from synmt_cli import cli
found = {{}}
for name in {["", *GROUPS, *COMMANDS]!r}:
    with contextlib.redirect_stdout(io.StringIO()) as out:
        status = cli._run([*name.split(), "--help"])
    found[name] = status, out.getvalue(), [m for m in {HEAVY!r} if m in sys.modules]
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def helps():
    """Every help asked for in one process: name -> (status, text, heavy modules so far)."""
    return json.loads(python(HELP))


@pytest.mark.parametrize("name", ["", *GROUPS, *COMMANDS])
def test_help_is_shown_without_loading_torch(helps, name):
    status, text, heavy = helps[name]
    assert status == 0
    assert f"Usage: synmt {name}".rstrip() in text
    assert heavy == []


def test_the_program_itself_shows_help_and_version(run):
    done = run("--help")
    assert (done.returncode, done.stderr) == (0, b"")
    assert all(name.split()[0].encode() in done.stdout for name in COMMANDS)
    assert run("--version").stdout.startswith(b"synmt ")
