"""Pairs as bytes: a line or block for a stream, or four aligned files at once."""

import contextlib
import os
from collections.abc import Iterable, Sequence

from synmt_cli import signals
from synmt_cli.errors import UsageError, printable, quoted
from synmt_cli.io import reading, writing
from synmt_cli.synth.pairs import MadePair, digest

FILES = (("en", "text"), ("de", "text"), ("en", "conllu"), ("de", "conllu"))


def record(pair: MadePair, side: str, kind: str) -> bytes:
    """A pair as text or conllu of one side (en, de), or as tsv of both, English first."""
    if kind == "conllu":
        return pair.conllu(side)
    if kind == "text":
        return f"{pair.side(side).text}\n".encode()
    return f"{pair.english.text}\t{pair.german.text}\n".encode()


def paths(prefix: str) -> list[str]:
    """The four files of a prefix. Raises UsageError if the prefix cannot begin a file name.

    >>> paths("data/train")
    ['data/train.en', 'data/train.de', 'data/train.en.conllu', 'data/train.de.conllu']
    """
    if not prefix or prefix.endswith("/"):
        raise UsageError(f"--prefix {quoted(prefix)} does not begin a file name")
    return [f"{prefix}.{side}{'.conllu' * (kind == 'conllu')}" for side, kind in FILES]


def write(pairs: Iterable[MadePair], prefix: str) -> None:
    """Writes the four files: all appear, or none. Raises CreateError, WriteError."""
    with contextlib.ExitStack() as stack:
        writers = [stack.enter_context(writing.atomic(path)) for path in paths(prefix)]
        for pair in pairs:
            for writer, (side, kind) in zip(writers, FILES, strict=True):
                writer.write(record(pair, side, kind))
        for writer in writers:
            writer.flush()  # a full disk shows before the first file takes its name
        with signals.shielded():
            stack.close()


def excluded(names: Sequence[str], outputs: Sequence[str]) -> frozenset[bytes]:
    """Digests of every line of the named files. Raises DataError, ReadError, UsageError.

    outputs: files about to be replaced, which must not be among them.
    """
    for name in names:
        if any(os.path.exists(path) and _is_same(path, name) for path in outputs):
            raise UsageError(f"--prefix would replace what --exclude reads: {printable(name)}")
    if not names:
        return frozenset()  # reading.sources would read stdin
    return frozenset(
        digest(line) for source in reading.sources(names) for _, line in reading.text_lines(source)
    )


def _is_same(path: str, name: str) -> bool:
    return name != "-" and os.path.exists(name) and os.path.samefile(path, name)
