"""What a process does that translates: models opened once, windows of records translated."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

import torch

from synmt_cli import pool
from synmt_cli.core.decoding import ensemble
from synmt_cli.core.decoding.translator import SearchSettings, Translated, Translator
from synmt_cli.core.jobs.translation_input import Placed
from synmt_cli.core.model.projections import hasten
from synmt_cli.core.run import device as devices
from synmt_cli.core.run.directory import Run
from synmt_cli.errors import DataError, Place, UsageError, printable
from synmt_cli.formats.record import Record

Window = Sequence[tuple[Record, Place]]
_FILES = ("config.toml", "spm.model", "spm.tgt.model", "labels.json")


class Models(NamedTuple):
    """Which models, and how they compute. precision: `fp32` or `int8`."""

    folders: tuple[str, ...]
    checkpoint: str = "best"
    device: str = "cpu"
    precision: str = "fp32"

    def files(self) -> Iterator[str]:
        """What of the run directories is read. Raises ReadError."""
        for folder in map(Path, self.folders):
            yield from (str(path) for name in _FILES if (path := folder / name).is_file())
            yield str(Run(folder).weights(self.checkpoint))


@cache
def opened(models: Models) -> ensemble.Members:
    """Run directories, opened once in a process. Raises SynmtError."""
    device = torch.device(models.device)
    if models.precision == "int8" and device.type != "cpu":
        raise UsageError(f"--precision int8 is for --device cpu, not {device}")
    loaded = ensemble.load(models.folders, models.checkpoint, device)
    if device.type == "cpu":
        for model in loaded.models:
            hasten(model, models.precision)
    return loaded


@cache
def translator(models: Models, settings: SearchSettings) -> Translator:
    """What translates with them. Raises SynmtError."""
    loaded = opened(models)
    source, target = loaded.vocabularies.source, loaded.vocabularies.target
    return Translator(
        loaded.models,
        source,
        target,
        loaded.encoding,
        torch.device(models.device),
        settings,
        loaded.prepare,
    )


def translating(
    models: Models, settings: SearchSettings, threads: int
) -> Callable[[Window], list[Translated]]:
    """What a process does with its windows. threads: of it; 0 leaves them. Raises SynmtError."""
    return partial(_translated, translator(models, settings), threads)


def _translated(ready: Translator, threads: int, window: Window) -> list[Translated]:
    devices.set_threads(threads)
    return ready.translate([record for record, _ in window])


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
