"""Writes what commands make of CoNLL-U, with the progress and the counts."""

from collections.abc import Iterable

from synmt_cli import console
from synmt_cli.core.jobs.work import Done, counted
from synmt_cli.io import writing


def write(parts: Iterable[Done], output: str, line_buffered: bool, label: str, unit: str) -> Done:
    """Writes the records of each part as it is done. Returns the counts of all. Raises SynmtError.

    label, unit: of the progress.
    """
    total = Done()
    with (
        writing.output(output, line_buffered) as writer,
        console.progress(label, unit=unit) as bar,
    ):
        for records in counted(parts, total):
            for record in records:
                writer.write(record)
            bar.advance(len(records))
    return total
