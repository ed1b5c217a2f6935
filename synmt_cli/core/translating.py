"""What a process does that translates: models opened once, windows of records translated."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path

import torch

from synmt_cli import pool
from synmt_cli.core import device as devices
from synmt_cli.core.decoding import members
from synmt_cli.core.decoding.sources import Place, Placed
from synmt_cli.core.decoding.translator import Settings, Translated, Translator
from synmt_cli.core.run import Run
from synmt_cli.errors import DataError, printable
from synmt_cli.formats.record import Record

Window = Sequence[tuple[Record, Place]]
_FILES = ("config.toml", "spm.model", "spm.tgt.model", "labels.json")


@cache
def opened(models: tuple[str, ...], checkpoint: str, device: str) -> members.Members:
    """Run directories, opened once in a process. Raises SynmtError."""
    return members.load(models, checkpoint, torch.device(device))


@cache
def translator(
    models: tuple[str, ...], checkpoint: str, device: str, settings: Settings
) -> Translator:
    """What translates with them. Raises SynmtError."""
    loaded = opened(models, checkpoint, device)
    source, target = loaded.vocabularies.source, loaded.vocabularies.target
    return Translator(
        loaded.models,
        source,
        target,
        loaded.encoding,
        torch.device(device),
        settings,
        loaded.prepare,
    )


def translating(
    models: tuple[str, ...], checkpoint: str, device: str, settings: Settings, threads: int
) -> Callable[[Window], list[Translated]]:
    """What a process does with its windows. threads: of it; 0 leaves them. Raises SynmtError."""
    return partial(_translated, translator(models, checkpoint, device, settings), threads)


def _translated(ready: Translator, threads: int, window: Window) -> list[Translated]:
    devices.set_threads(threads)
    return ready.translate([record for record, _ in window])


def files(models: Sequence[str], checkpoint: str) -> Iterator[str]:
    """The files of run directories that translating reads."""
    for folder in map(Path, models):
        weights = "model.safetensors"
        if checkpoint != "best":
            weights = f"checkpoints/{checkpoint}/weights.safetensors"
        yield from (str(path) for n in (*_FILES, weights) if (path := folder / n).is_file())


def named(models: Sequence[str], checkpoint: str) -> str:
    """The checkpoint that `last` is now, so that each process takes the same; others as given."""
    if checkpoint != "last" or len(models) != 1:
        return checkpoint
    steps = Run(Path(models[0])).steps()
    return f"step-{steps[-1]}" if steps else checkpoint


def where(windows: Sequence[Window]) -> str:
    """The lines of some windows, for messages."""
    return pool.span(windows[0][0][1], windows[-1][-1][1])


def placed(found: Placed, strict: bool) -> Placed:
    """The same records. Raises DataError at the first that failed, if `strict`."""
    for record, place in found:
        if strict and record.status in ("failed", "skipped"):
            raise DataError(*place, printable(record.reason or record.status))
        yield record, place


def checked(found: Placed, strict: bool) -> Iterator[Record]:
    """The records alone. Raises as `placed`."""
    return (record for record, _ in placed(found, strict))
