"""The shared parts of commands that cut CoNLL-U into work: their memory, and how they write."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from synmt_cli import console, pool
from synmt_cli.core.jobs.done import Done, tallied
from synmt_cli.core.jobs.work import Work
from synmt_cli.formats import conllu
from synmt_cli.io import reading, writing

MEMORY = (
    f"Some {reading.BUFFER // 1024} KiB of input, {pool.IN_FLIGHT} N + 2 times that with -j N, "
    f"and the longest sentence: at most {conllu.SENTENCE_LIMIT // 2**20} MiB."
)


def write(
    do: Callable[[Iterable[Work]], Iterator[Done]],
    work: Iterable[Work],
    files: Sequence[str] | None,
    output: str,
    line_buffered: bool,
    label: str,
    unit: str,
) -> Done:
    """Does the work, writes the records of each part, and warns of what its counts show.

    files: those that the work is read from. label, unit: for the progress and the warnings.
    Returns the counts of all parts. Raises SynmtError.
    """
    total = Done()
    with console.progress(label, unit=unit, files=files or ["-"], output=output) as bar:
        parts = bar.finished(do(bar.taken(work)))
        with writing.output(output, line_buffered) as writer:
            for records in tallied(parts, total):
                for record in records:
                    writer.write(record)
                bar.advance(len(records))
    for warning in total.warnings(unit):
        console.warn(warning)
    return total
