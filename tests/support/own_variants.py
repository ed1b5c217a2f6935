"""The example of a variant in a file of one's own, and changes of it."""

from __future__ import annotations

from support.program import ROOT

FILE = ROOT / "examples" / "near_parent.py"
EXAMPLE = FILE.read_bytes()


def changed(old, new):
    """The example with one text in place of another, which it has."""
    text = EXAMPLE.decode()
    assert old in text
    return text.replace(old, new).encode()
