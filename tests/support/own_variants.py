"""The example of a variant in a user's own file, and changed copies of it."""

from __future__ import annotations

from support.program import ROOT

FILE = ROOT / "examples" / "near_parent.py"
EXAMPLE = FILE.read_bytes()


def changed(*changes, text=EXAMPLE):
    """The example with texts replaced. changes: old, new, old, new ...; each old occurs once."""
    for old, new in zip(changes[::2], changes[1::2], strict=True):
        assert text.count(old.encode()) == 1, old
        text = text.replace(old.encode(), new.encode())
    return text
