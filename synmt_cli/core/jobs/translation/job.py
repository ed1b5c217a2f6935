"""Work of models on records, in this process or spread over several; translation is such work.

Each process opens the models once and works on windows of records, or on parts of windows. The
records of a part have similar lengths, so that several processes pad no more than one alone.
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar

import torch

from synmt_cli import pool
from synmt_cli.core.data.unseen_labels import UnseenLabels
from synmt_cli.core.decoding import ensemble
from synmt_cli.core.decoding.ctranslate2_search import CTranslate2Search
from synmt_cli.core.decoding.translator import (
    SearchSettings,
    Translated,
    TranslatedLine,
    Translator,
    Watch,
    windows,
)
from synmt_cli.core.jobs.translation import engine as engines
from synmt_cli.core.jobs.translation.input import Placed, Reader
from synmt_cli.core.model.inference_linear import halve, replace_linear_layers
from synmt_cli.core.run import device as devices
from synmt_cli.core.run.directory import CONFIG, MEANINGS, Run
from synmt_cli.core.run.exported import export
from synmt_cli.core.segments.bad_trees import located
from synmt_cli.errors import ConfigError, Place, UsageError
from synmt_cli.formats.record import UNPARSED, Record

Item = TypeVar("Item")
Window = Sequence[tuple[Record, Place]]
Work = Callable[[Window], list[list[Item]]]  # returns lists with one result for each record
Found = tuple[list[TranslatedLine], int]  # the lines and n_parts of a Translated
PARTS = 4  # parts of a window for each process, so that none works alone for long at the end


class Progress(Protocol):
    """An object that follows how far the work is, such as console.Progress."""

    def taken(self, items: Iterator[Item]) -> Iterator[Item]:
        """Yields the items that are read."""

    def finished(self, results: Iterator[Item]) -> Iterator[Item]:
        """Yields the results of these items."""

    def tick(self, ahead: int, inside: float) -> None:
        """Notes how many records of the next result are done, and which part of its work."""


class Models(NamedTuple):
    """The models to open, and how they compute. precision, engine: as engine.py names them.

    threads: batches that CTranslate2 translates at the same time.
    """

    folders: tuple[str, ...]
    checkpoint: str = "best"
    device: str = "cpu"
    precision: str = "fp32"
    engine: str = engines.TORCH
    threads: int = 1

    def files(self) -> Iterator[str]:
        """Yields the files of the run directories that are read. Raises ReadError."""
        for run in map(Run, map(Path, self.folders)):
            small = (run.folder / name for name in (CONFIG, *MEANINGS))
            yield from (str(path) for path in small if path.is_file())
            yield from export.files(run) if run.is_exported else [str(run.weights(self.checkpoint))]


@cache
def opened(models: Models) -> ensemble.Ensemble:
    """The ensemble of run directories, opened once in a process. Raises SynmtError.

    It has no models of torch if CTranslate2 is the engine.
    """
    device = torch.device(models.device)
    if models.engine == engines.CTRANSLATE2:
        return ensemble.without_models(models.folders)
    loaded = ensemble.load(models.folders, models.checkpoint, device)
    for model in loaded.models:
        if device.type == "cpu":
            replace_linear_layers(model, models.precision)
        elif models.precision in devices.HALF:
            halve(model, devices.HALF[models.precision])
    return loaded


@cache
def translator(models: Models, settings: SearchSettings) -> Translator:
    """The Translator of these models. Raises SynmtError."""
    loaded = opened(models)
    source, target = loaded.vocabularies.source, loaded.vocabularies.target
    search, device = None, torch.device(models.device)
    if models.engine == engines.CTRANSLATE2:
        run = Run(Path(models.folders[0]))
        model = engines.model(run, models.checkpoint, models.precision, device)
        search = CTranslate2Search(model, settings, device, models.threads)
    return Translator(
        loaded.models,
        source,
        target,
        loaded.encoding,
        device,
        settings,
        loaded.prepare,
        search,
    )


class Wanted(NamedTuple):
    """How to compute, as --device, --engine and --precision say; None for one that is not given."""

    device: str = "auto"
    engine: str | None = None
    precision: str | None = None


class Ready(Protocol):
    """Opened models with all that their work on records needs."""

    @property
    def writes_trees(self) -> bool: ...


class ModelJob(ABC):
    """Run directories that work together on records, and the processes that do the work.

    jobs, threads: as `-j` and `--threads` give them. Raises SynmtError at once where models,
    settings and device do not fit. engine: the one chosen, and why. writes_trees: whether the
    models write transitions.
    """

    def __init__(
        self,
        folders: Sequence[str],
        checkpoint: str,
        wanted: Wanted,
        settings: SearchSettings,
        jobs: int,
        threads: int,
    ) -> None:
        self._jobs = jobs
        self._n_workers = pool.n_workers(jobs)
        is_alone = self._is_alone = self._n_workers == 1 and pool.here()
        # A process that has used several threads cannot be forked.
        devices.set_threads(threads if is_alone else 1)
        chosen = devices.choose(wanted.device)
        if not is_alone and chosen.type != "cpu":
            raise UsageError(f"-j {jobs} is for --device cpu, not {chosen}")
        devices.allow_tf32(chosen, wanted.precision != "fp32")
        runs = [Run(Path(folder)) for folder in folders]
        name, precision, self.engine = engines.choose(
            wanted.engine, runs, wanted.precision, settings, chosen
        )
        self._models = Models(
            tuple(folders),
            named(folders, checkpoint),
            str(chosen),
            precision,
            name,
            torch.get_num_threads() if is_alone else threads or 1,
        )
        self._settings = settings
        self._worker_threads = 0 if is_alone else threads or 1
        self.writes_trees = self._ready.writes_trees

    @property
    @abstractmethod
    def _ready(self) -> Ready:
        """The object that works on records in this process, opened once. Raises SynmtError."""

    @property
    def members(self) -> ensemble.Ensemble:
        """The opened models."""
        return opened(self._models)

    def refuse_without_trees(self, options: Mapping[str, bool]) -> None:
        """Raises ConfigError at the first option that is set, unless the models write trees."""
        for option, is_set in options.items():
            if is_set and not self.writes_trees:
                folder = self._models.folders[0]
                raise ConfigError(f"{folder} writes no trees, which {option} needs")

    def reader(self, parser: str, ahead: int = 0) -> Reader:
        """A Reader with the models' vocabularies. parser: a file to use instead of the run's.

        ahead: how many segments of a pipe are read while this process translates others; with
        several processes it does not count, since a thread of the pool reads for them.
        """
        vocabularies = self.members.vocabularies
        ahead = ahead if self._is_alone else 0
        return Reader(
            vocabularies.source, vocabularies.target, self.members.parser_loader(parser), ahead
        )

    def _in_windows(
        self,
        work: Callable[[int, Watch], Work[Item]],
        records: Placed,
        window: int,
        warn: Callable[[str], None],
        progress: Progress,
        waited: Callable[[], float] | None,
    ) -> Iterator[list[list[tuple[Record, Item]]]]:
        """Yields for each window the lists of `whole_windows`. Arguments: as in TranslateJob.

        work: makes the Work of a process from the number of its threads (0 leaves it as it is) and
        a Watch. At the end `warn` also gets what is to be said about the labels of all trees.
        """
        unseen = UnseenLabels(self.members.encoding)
        tick = progress.tick if self._is_alone else _ignore
        recipe = pool.Recipe(
            partial(work, self._worker_threads, tick),
            tuple(self._models.files()),
            pool.Care(where=where, warn=warn),
        )
        size, n_workers = self._settings.batch_size, self._n_workers
        # Short first windows give results early, or work for several processes.
        first = size * n_workers if waited or not self._is_alone else 0
        # Parts are whole batches.
        share = window if self._is_alone else -(-window // (PARTS * n_workers * size)) * size
        sent: deque[Part] = deque()
        cut = windows(unseen.counted(records), window, first, waited or float)
        parts = (part for one in cut for part in parts_of(one, share))
        results = pool.mapped(recipe, _noted(progress.taken(parts), sent), self._jobs, chunk=1)
        yield from whole_windows(progress.finished(results), sent)
        for line in unseen.warnings():
            warn(line)


class TranslateJob(ModelJob):
    """Run directories that translate together."""

    @property
    def _ready(self) -> Translator:
        return translator(self._models, self._settings)

    def translated(
        self,
        records: Placed,
        window: int,
        warn: Callable[[str], None],
        progress: Progress,
        waited: Callable[[], float] | None = None,
    ) -> Iterator[list[Translated]]:
        """Yields the translations of all records, in order, a list for each window.

        window: records that are sorted by length together. warn: takes a line about a lost
        worker. progress: watches the windows, and the batches where this process translates them.
        waited: gives the seconds spent so far on waiting for records of a pipe. If it is given, the
        first windows are short, and so are those whose records take long to come.
        """
        lenpens = (self._settings.lenpen,)
        each = self.translated_each(records, window, warn, progress, lenpens, waited)
        for (translated,) in each:
            yield translated

    def translated_each(
        self,
        records: Placed,
        window: int,
        warn: Callable[[str], None],
        progress: Progress,
        lenpens: Sequence[float],
        waited: Callable[[], float] | None = None,
    ) -> Iterator[list[list[Translated]]]:
        """Yields for each window a list of translations for each value of lenpen."""
        work = partial(translating, self._models, self._settings, lenpens)
        for each in self._in_windows(work, records, window, warn, progress, waited):
            yield [[Translated(record, *found) for record, found in one] for one in each]


@dataclass(frozen=True, slots=True)
class Part:
    """Records of a window that are translated together, in the order of the input.

    rows: their places in the window, rising. n: the number of records in the window.
    """

    records: Window
    rows: list[int]
    n: int


def parts_of(window: Window, size: int) -> Iterator[Part]:
    """Yields a window in parts of at most `size` records of similar length, the longest first."""
    order = sorted(range(len(window)), key=lambda row: -len(window[row][0].pieces or ()))
    for begin in range(0, len(order), size):
        rows = sorted(order[begin : begin + size])
        yield Part([window[row] for row in rows], rows, len(window))


def whole_windows(
    results: Iterable[list[list[Item]]], sent: deque[Part]
) -> Iterator[list[list[tuple[Record, Item]]]]:
    """Yields the results of windows: lists with each record of the window and its result, in order.

    results: for each part, which is taken from `sent`, the same number of lists, each with one
    result for each of its records.
    """
    window: list[dict[int, tuple[Record, Item]]] = []
    for each in results:
        part = sent.popleft()
        window = window or [{} for _ in each]
        for own, found in zip(window, each, strict=True):
            for row, (record, _), one in zip(part.rows, part.records, found, strict=True):
                own[row] = record, one
        if len(window[0]) == part.n:
            yield [[own[row] for row in range(part.n)] for own in window]
            window = []


def _noted(parts: Iterable[Part], sent: deque[Part]) -> Iterator[Window]:
    """Yields the records of each part, which stays in `sent` until its results are there."""
    for part in parts:
        sent.append(part)
        yield part.records


def translating(
    models: Models,
    settings: SearchSettings,
    lenpens: Sequence[float],
    threads: int,
    watch: Watch,
) -> Callable[[Window], list[list[Found]]]:
    """The function that translates records and returns a list for each of lenpens.

    threads: the threads of the process, 0 leaves them as they are. watch: as in
    Translator.translate. Raises SynmtError.
    """
    ready = translator(models, settings)

    def translated(window: Window) -> list[list[Found]]:
        devices.set_threads(threads)
        each = ready.translate_each([record for record, _ in window], lenpens, watch)
        return [[(one.lines, one.n_parts) for one in found] for found in each]

    return translated


def _ignore(n: int, share: float) -> None:
    """A Watch for work in another process, of which nothing is seen before it is done."""


def named(models: Sequence[str], checkpoint: str) -> str:
    """The checkpoint for all processes: `last` becomes a step, unless it is an ensemble's.

    In an ensemble `last` is a different step for each model.
    """
    return Run(Path(models[0])).named(checkpoint) if len(models) == 1 else checkpoint


def where(windows: Sequence[Window]) -> str:
    """The lines of some windows, for messages."""
    return pool.span(windows[0][0][1], windows[-1][-1][1])


def ending_at_failures(records: Placed, strict: bool) -> Placed:
    """Yields the same records. Raises DataError at the first failed or skipped one, if `strict`."""
    for record, place in records:
        if strict and record.status in UNPARSED:
            raise located(place, record.reason or record.status)
        yield record, place


def without_places(records: Placed, strict: bool) -> Iterator[Record]:
    """Yields the records without their places. Raises as `ending_at_failures` does."""
    return (record for record, _ in ending_at_failures(records, strict))
