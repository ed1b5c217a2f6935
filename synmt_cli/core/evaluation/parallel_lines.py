"""The lines of one test set, read whole: references, hypotheses, sources."""

from collections.abc import Sequence

from synmt_cli.errors import DataError, other_number
from synmt_cli.io import reading


def read(path: str) -> list[str]:
    """The lines of a file, `-` for stdin. Raises DataError, ReadError."""
    with reading.open_source(path) as source:
        return [line for _, line in reading.text_lines(source)]


def read_parallel(paths: Sequence[str]) -> dict[str, list[str]]:
    """The lines of each file. Raises DataError, ReadError.

    Files with different numbers of lines are refused, with both counts, and empty ones, too.
    """
    texts = {path: read(path) for path in paths}
    names = [*map(reading.source_name, texts)]
    first, *others = map(len, texts.values())
    for name, n in zip(names[1:], others, strict=True):
        if n != first:
            raise other_number(name, n, "line", names[0], first)
    if not first:
        raise DataError(names[0], None, "no lines")
    return texts
