"""The example of a variant in a file of one's own, and changes of it."""

from __future__ import annotations

from support.program import ROOT

FILE = ROOT / "examples" / "near_parent.py"
EXAMPLE = FILE.read_bytes()


def changed(*changes, text=EXAMPLE):
    """The example with the second of each two texts in place of the first, which it has once."""
    for old, new in zip(changes[::2], changes[1::2], strict=True):
        assert text.count(old.encode()) == 1, old
        text = text.replace(old.encode(), new.encode())
    return text
