"""The rooms of the grammar, from the ground up: each imports only itself and those before it."""

import ast
from pathlib import Path

from synmt_cli import synth

PACKAGE = Path(synth.__file__).parent
ORDER = (
    *("settings", "lexicon", "meaning", "words", "tokens", "english", "german"),
    *("description", "sampling", "pairs", "files"),
)


def imported(path):
    """The rooms that a file imports, by name."""
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.ImportFrom) and node.module.startswith("synmt_cli.synth"):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (name.split(".")[2] for name in names)


def test_rooms_of_the_grammar_import_only_those_before_them():
    assert {path.stem for path in PACKAGE.iterdir() if path.stem[:2] != "__"} == set(ORDER)
    for path in PACKAGE.glob("*/*.py"):
        room = path.parent.name
        assert {ORDER.index(name) <= ORDER.index(room) for name in imported(path)} <= {True}, path
    for path in PACKAGE.glob("[a-z]*.py"):
        room = ORDER.index(path.stem)
        assert {ORDER.index(name) <= room for name in imported(path)} <= {True}, path
