"""Pairs as bytes: a line or block for a stream, or four aligned files at once."""

import contextlib
from collections.abc import Iterable, Sequence

from synmt_cli import signals
from synmt_cli.errors import UsageError, printable
from synmt_cli.io import reading, writing
from synmt_cli.synth.pairs import MadePair, digest

# extension: side and kind
FILES = {
    "en": ("en", "text"),
    "de": ("de", "text"),
    "en.conllu": ("en", "conllu"),
    "de.conllu": ("de", "conllu"),
}


def record(pair: MadePair, side: str, kind: str) -> bytes:
    """A pair as text or conllu of one side (en, de), or as tsv of both, English first."""
    if kind == "conllu":
        return pair.conllu(side)
    if kind == "text":
        return f"{pair.side(side).text}\n".encode()
    return f"{pair.english.text}\t{pair.german.text}\n".encode()


def write(pairs: Iterable[MadePair], outputs: Sequence[str]) -> None:
    """Writes a file for each of FILES: all appear, or none. Raises CreateError, WriteError."""
    with contextlib.ExitStack() as stack:
        writers = [stack.enter_context(writing.atomic(path)) for path in outputs]
        for pair in pairs:
            for writer, (side, kind) in zip(writers, FILES.values(), strict=True):
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
        if any(reading.is_among(path, [name]) for path in outputs):
            raise UsageError(
                f"--out-template would replace what --exclude reads: {printable(name)}"
            )
    if not names:
        return frozenset()  # reading.sources would read stdin
    return frozenset(
        digest(line) for source in reading.sources(names) for _, line in reading.text_lines(source)
    )
