"""What a name on the command line stands for: a stream of some kind, a model, or a folder."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from synmt_cli.errors import ReadError, printable
from synmt_cli.formats.detect import TreeKind, detect_trees, replayed
from synmt_cli.formats.magic import HEAD, ModelKind, model_kind
from synmt_cli.io import compression, reading

Kind = TreeKind | ModelKind | Literal["run", "checkpoint"]

SUFFIXES: dict[str, TreeKind] = {".conllu": "conllu", ".conll": "conllu", ".jsonl": "jsonl"}


@dataclass(frozen=True, slots=True)
class InspectedInput:
    """An input and its kind. source: open, None for a folder.

    path: as the user named it. compression: gz, bz2, xz or zst; "" also where it cannot be seen
    (a pipe).
    """

    path: str
    kind: Kind
    source: reading.Source | None = None
    compression: str = ""

    @property
    def name(self) -> str:
        """For messages."""
        return self.path if self.source is None else self.source.name


@contextmanager
def opened(
    path: str, kind: TreeKind | None = None, by_suffix: bool = False
) -> Iterator[InspectedInput]:
    """One input. kind: of a stream, None to find it out. Raises ReadError.

    by_suffix: whether a name that promises a kind (.conllu, .jsonl) is believed.
    """
    if path != "-" and os.path.isdir(path):
        yield InspectedInput(path, _folder_kind(Path(path)))
        return
    packed = _compression(path)
    with reading.open_source(path) as source:
        model, source = (None, source) if kind else _model(source)
        if kind is None and model is None and by_suffix:
            kind = _promised(path)
        if kind is None and model is None:
            kind, source = detect_trees(source)
        found = model or kind
        assert found is not None
        yield InspectedInput(path, found, source, packed)


def _folder_kind(folder: Path) -> Literal["run", "checkpoint"]:
    if (folder / "config.toml").is_file():
        return "run"
    if (folder / "weights.safetensors").is_file() or (folder / "state.json").is_file():
        return "checkpoint"
    raise ReadError(
        f"{printable(str(folder))} is a folder, and neither a run directory (no config.toml) "
        "nor a checkpoint"
    )


def _model(source: reading.Source) -> tuple[ModelKind | None, reading.Source]:
    try:
        head = source.file.read(HEAD)
    except Exception as error:
        failure = reading.read_failure(source, 1, error)
        if failure is error:
            raise
        raise failure from error
    return model_kind(head), replayed(head, source)


def _promised(path: str) -> TreeKind | None:
    name = Path(path)
    if name.suffix in compression.SUFFIXES:
        name = name.with_suffix("")
    return SUFFIXES.get(name.suffix)


def _compression(path: str) -> str:
    """By the first bytes of a plain file, which is not moved by looking at it."""
    try:
        descriptor = 0 if path == "-" else os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except (OSError, ValueError):
        return ""  # opening it properly says what is wrong
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return ""
        start = os.pread(descriptor, compression.LONGEST, 0)
    except OSError:
        return ""
    finally:
        if path != "-":
            os.close(descriptor)
    kinds = (kind for magic, kind in compression.MAGIC.items() if start.startswith(magic))
    return next(kinds, "")
