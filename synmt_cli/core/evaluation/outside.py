"""Metrics that other programs, or people, have computed: a score for each segment.

The score of a system is the mean of its segments' scores. With that, such a metric is tested,
divided into buckets and reported like BLEU.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from os.path import basename

import numpy as np

from synmt_cli.core.evaluation import formulas
from synmt_cli.core.evaluation.formulas import Array
from synmt_cli.core.evaluation.metrics import Metric
from synmt_cli.core.evaluation.significance import Statistics
from synmt_cli.core.evaluation.systems import SystemFiles
from synmt_cli.errors import DataError, quoted
from synmt_cli.formats import segment_scores
from synmt_cli.io import reading

DIGITS = 4


@dataclass(slots=True)
class _Read:
    """The scores of one output, and where the last of them stands."""

    scores: list[float]
    place: tuple[str, int | None]


def metric(name: str, paths: Sequence[str], higher_is_better: bool) -> Metric:
    """A mean of segment scores, which come from these files."""
    files = ",".join(basename(path) for path in paths)
    info = (name, name, f"mean of segment scores|file:{files}", higher_is_better, DIGITS)

    def corpus(sums: Array) -> float:
        return float(formulas.mean(sums[None])[0])

    return Metric(*info, _no_text, corpus, formulas.mean, formulas.mean)


def _no_text(hypotheses: Sequence[str]) -> Array:
    raise ValueError("the scores of this metric come from a file")


def statistics(paths: Sequence[str], systems: Sequence[SystemFiles], n: int) -> Statistics:
    """(n, 2) for each system and seed: the score of each of n segments, and 1.

    A file names an output as the command line does: by its FILE, or by the NAME of a system with
    one seed. Raises ReadError; DataError for other names and unless each output has n scores.
    """
    found = {name: _Read([], (paths[-1], None)) for one in systems for name in one.labels}
    for path in paths:
        with reading.open_source(path) as source:
            for one in segment_scores.read(source):
                if one.system not in found:
                    problem = f"no system {quoted(one.system)}; there are {', '.join(found)}"
                    raise DataError(source.name, one.line, problem)
                rows = found[one.system]
                rows.scores.append(one.score)
                rows.place = (source.name, one.line)
                if len(rows.scores) > n:
                    problem = f"more scores of {quoted(one.system)} than segments ({n:,})"
                    raise DataError(*rows.place, problem)
    return [[_column(label, seed, found, n) for seed, label in one.outputs()] for one in systems]


def _column(label: str, file: str, found: dict[str, _Read], n: int) -> Array:
    """label, file: the two names of an output."""
    rows = found[label] if found[label].scores else found[file]
    if len(rows.scores) != n:
        problem = f"{len(rows.scores):,} scores of {quoted(label)}, but {n:,} segments"
        raise DataError(*rows.place, problem)
    return np.stack([np.array(rows.scores), np.ones(n)], axis=1)  # (n, 2)
