"""Metrics that other programs, or people, have computed: a score for each segment.

The score of a system is the mean of its segments' scores. Such a metric is therefore tested,
divided into buckets and reported like BLEU.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from os.path import basename

import numpy as np

from synmt_cli.core.evaluation.metrics import formulas
from synmt_cli.core.evaluation.metrics.formulas import Array
from synmt_cli.core.evaluation.metrics.registry import Metric
from synmt_cli.core.evaluation.statistics.significance import Statistics
from synmt_cli.core.evaluation.systems import SystemFiles
from synmt_cli.errors import DataError, counted, quoted
from synmt_cli.formats import segment_scores
from synmt_cli.io import reading

DIGITS = 4
SMALLEST = 1e-5  # the greatest score must reach it: tests take differences below 1e-9 for ties


@dataclass(slots=True)
class Scores:
    """The scores of one output, segment by segment. places: file and line of each."""

    values: list[float] = field(default_factory=list)
    places: list[tuple[str, int]] = field(default_factory=list)


def read(paths: Sequence[str]) -> dict[str, Scores]:
    """The scores of each output, in the order of the first. Raises DataError, ReadError."""
    found: dict[str, Scores] = {}
    for path in paths:
        with reading.open_source(path) as source:
            for one in segment_scores.read(source):
                scores = found.setdefault(one.system, Scores())
                scores.values.append(one.score)
                scores.places.append((source.name, one.line))
    source_name = reading.source_name(paths[-1])
    if not found:
        raise DataError(source_name, None, "no scores")
    if 0 < (most := max(abs(x) for one in found.values() for x in one.values)) < SMALLEST:
        problem = f"no score is above {most:.2g}, too little for tests: multiply them all, or take "
        raise DataError(source_name, None, f"{problem}logarithms")
    return found


def systems(found: dict[str, Scores]) -> list[SystemFiles]:
    """The outputs that have scores, as systems with one seed each."""
    return [SystemFiles(name, [name]) for name in found]


def n_segments(found: dict[str, Scores]) -> int:
    """How many segments the first output has."""
    return len(next(iter(found.values())).values)


def metric(name: str, paths: Sequence[str], higher_is_better: bool) -> Metric:
    """A mean of segment scores, which come from these files."""
    files = ",".join(basename(path) for path in paths)
    info = (name, name, f"mean of segment scores|file:{files}", higher_is_better, DIGITS)

    return Metric(*info, _no_text, formulas.mean_of_corpus, formulas.mean, formulas.mean)


def _no_text(hypotheses: Sequence[str]) -> Array:
    raise ValueError("the scores of this metric come from a file")


def statistics(found: dict[str, Scores], systems: Sequence[SystemFiles], n: int) -> Statistics:
    """(n, 2) for each system and seed: the score of each of n segments, and 1.

    A file names an output as the command line does: by its FILE, or by the NAME of a system with
    one seed. Raises DataError for other names and unless each output has n scores.
    """
    known = dict.fromkeys(name for one in systems for name in one.labels)
    for name, scores in found.items():
        if name not in known:
            problem = f"no system {quoted(name)}; there are {', '.join(known)}"
            raise DataError(*scores.places[0], problem)
    for file, label in (pair for one in systems for pair in one.outputs()):
        if label != file and label in found and file in found:
            problem = f"scores of {quoted(file)}, which have come as {quoted(label)}"
            raise DataError(*found[file].places[0], problem)
    last = next(reversed(found.values())).places[-1]
    return [
        [_column(label, found.get(label) or found.get(file), last, n) for file, label in outputs]
        for outputs in (one.outputs() for one in systems)
    ]


def _column(label: str, scores: Scores | None, last: tuple[str, int], n: int) -> Array:
    """The scores of an output. last: the end of the file, where missing ones are expected."""
    if scores is None:
        raise DataError(*last, f"0 scores of {quoted(label)}, but {counted(n, 'segment')}")
    if len(scores.values) > n:
        problem = f"more scores of {quoted(label)} than segments ({n:,})"
        raise DataError(*scores.places[n], problem)
    if len(scores.values) < n:
        few = f"{counted(len(scores.values), 'score')} of {quoted(label)}"
        raise DataError(*scores.places[-1], f"{few}, but {counted(n, 'segment')}")
    return np.stack([np.array(scores.values), np.ones(n)], axis=1)  # (n, 2)
