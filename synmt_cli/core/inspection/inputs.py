"""Inputs of any kind by their names: streams, models, and folders of training."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from synmt_cli.core.run.directory import CONFIG, EXPORT, STATE, WEIGHTS
from synmt_cli.errors import ReadError, UsageError
from synmt_cli.formats.detect import FileKind, TreeKind, detect_file, guessed, replayed
from synmt_cli.formats.magic import HEAD, ModelKind, model_kind
from synmt_cli.io import compression, reading

FolderKind = Literal["run", "checkpoint", "export", "cache", "experiment"]
Kind = TreeKind | FileKind | ModelKind | FolderKind

SUFFIXES: dict[str, TreeKind | FileKind] = {
    ".conllu": "conllu",
    ".conll": "conllu",
    ".jsonl": "jsonl",
    ".json": "json",
    ".toml": "config",
}
INDEX = "index.json"  # of the cache of a run
JSONL: tuple[Kind, ...] = ("metrics", "attention", "segment-scores")  # also named .jsonl


@dataclass(frozen=True, slots=True)
class InspectedInput:
    """An input and its kind. source: open; None for a folder.

    path: as the user gave it. compression: gz, bz2, xz or zst, or "", also where it cannot be
    known (a pipe).
    """

    path: str
    kind: Kind
    source: reading.Source | None = None
    compression: str = ""

    @property
    def name(self) -> str:
        """The name of the input in messages."""
        return self.path if self.source is None else self.source.name

    def refuse_unnamed(self) -> None:
        """Raises UsageError for a stream on stdin, a pipe, or what is compressed.

        Libraries open models by the names of regular files.
        """
        is_file = self.path != "-" and os.path.isfile(self.path)
        if self.source is not None and (self.compression or not is_file):
            problem = "a model of this kind needs a plain file's name; save it in one, uncompressed"
            raise UsageError(f"{self.name}: {problem}")


@contextmanager
def opened(
    path: str, kind: TreeKind | None = None, by_suffix: bool = False
) -> Iterator[InspectedInput]:
    """One input. kind: that of a stream; None detects it. Raises ReadError.

    by_suffix: whether a name that states a kind (.conllu, .jsonl) decides.
    """
    if path != "-" and os.path.isdir(path):
        yield InspectedInput(path, _folder_kind(Path(path)))
        return
    packed = _compression(path)
    with reading.open_source(path) as source:
        kind_of_file, source = (kind, source) if kind else _detected(path, source, by_suffix)
        yield InspectedInput(path, kind_of_file, source, packed)


def _detected(
    path: str, source: reading.Source, by_suffix: bool
) -> tuple[TreeKind | FileKind | ModelKind, reading.Source]:
    try:
        head = source.file.read(HEAD)
    except Exception as error:
        reading.fail(source, 1, error)
    source = replayed(head, source)
    if (model := model_kind(head)) is not None:
        return model, source
    name = Path(path)
    if compression.is_compressed_name(path):
        name = name.with_suffix("")
    kind, source = guessed(source, detect_file)
    stated = SUFFIXES.get(name.suffix) if by_suffix else None
    if stated and not (stated == "jsonl" and kind in JSONL):
        return stated, replace(source, guessed_for="")
    return kind, source


def _folder_kind(folder: Path) -> FolderKind:
    if os.path.lexists(folder / "Makefile") and os.path.lexists(folder / "given"):
        return "experiment"
    if os.path.lexists(folder / EXPORT):
        return "export"
    if os.path.lexists(folder / CONFIG):
        return "run"
    if os.path.lexists(folder / INDEX):
        return "cache"
    if any(os.path.lexists(folder / name) for name in (WEIGHTS, STATE)):
        return "checkpoint"
    raise ReadError(
        f"{folder} is a folder, and none that synmt writes: a run directory (no "
        "config.toml), a checkpoint, a cache, an experiment of synmt init"
    )


def _compression(path: str) -> str:
    """The compression that the first bytes of a plain file show; its position does not change."""
    try:  # a named pipe that is closed again would end its writer
        if not stat.S_ISREG((os.fstat(0) if path == "-" else os.stat(path)).st_mode):
            return ""
        descriptor = 0 if path == "-" else os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except (OSError, ValueError):
        return ""  # opening it properly says what is wrong
    try:
        start = os.pread(descriptor, compression.LONGEST, 0)
    except OSError:
        return ""
    finally:
        if path != "-":
            os.close(descriptor)
    kinds = (kind for magic, kind in compression.MAGIC.items() if start.startswith(magic))
    return next(kinds, "")
