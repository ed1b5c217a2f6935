"""Pairs as bytes: a line or block for a stream, or four aligned files at once."""

from collections.abc import Iterable, Sequence

from synmt_cli.io import writing
from synmt_cli.synth.pairs import MadePair

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
    with writing.together(outputs) as writers:
        for pair in pairs:
            for writer, (side, kind) in zip(writers, FILES.values(), strict=True):
                writer.write(record(pair, side, kind))
