"""What the commands that cut CoNLL-U into work share: their memory, and how they end."""

from collections.abc import Iterable

from synmt_cli import console, pool
from synmt_cli.core.jobs.work import Done, counted
from synmt_cli.formats import conllu
from synmt_cli.io import reading, writing

MEMORY = (
    f"Some {reading.BUFFER // 1024} KiB of input, {pool.IN_FLIGHT} N + 2 times that with -j N, "
    f"and the longest sentence: at most {conllu.SENTENCE_LIMIT // 2**20} MiB."
)


def write(parts: Iterable[Done], output: str, line_buffered: bool, label: str, unit: str) -> Done:
    """Writes the records of each part as it is done, and warns of what its counts show.

    label, unit: of the progress and the warnings. Returns the counts of all. Raises SynmtError.
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
    for warning in total.warnings(unit):
        console.warn(warning)
    return total
