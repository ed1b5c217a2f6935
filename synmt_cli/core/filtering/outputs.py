"""The outputs of a filter: pairs that are kept, marked or counted, and those that are rejected."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum

from synmt_cli.core.filtering.pairs import Pair
from synmt_cli.formats.reports.table import shares
from synmt_cli.io import writing
from synmt_cli.io.writing import Writer

KEPT = "kept"


class Mode(StrEnum):
    """The main output: the pairs that pass, all pairs marked, or the counts alone."""

    KEPT = "kept"
    MARKED = "marked"
    COUNTS = "counts"


@dataclass(slots=True)
class Outputs:
    """Open outputs, and how many pairs each test has rejected so far."""

    mode: Mode
    main: Writer
    target: Writer | None = None
    rejects: Writer | None = None
    counts: Counter[str] = field(default_factory=Counter)

    def take(self, pair: Pair, reason: str) -> None:
        """Writes a pair where it belongs. reason: `NAME: PROBLEM`, "" for a pair that passes."""
        self.counts[reason.partition(":")[0] or KEPT] += 1
        if self.mode is Mode.MARKED:
            self.main.write(pair.annotated(reason))
        elif self.mode is Mode.KEPT and not reason:
            main, target = pair.written()
            self.main.write(main)
            if self.target is not None:
                self.target.write(target)
        if reason and self.rejects is not None:
            self.rejects.write(pair.rejected(reason))

    def finish(self, names: Sequence[str]) -> None:
        """Writes the counts, where they are asked for.

        They are `NAME<TAB>N<TAB>PERCENT` for the pairs kept and for each test, under a header.
        """
        if self.mode is Mode.COUNTS:
            self.main.write(shares("reason", {name: self.counts[name] for name in (KEPT, *names)}))

    def summary(self, names: Sequence[str]) -> str:
        """One line: how many pairs are kept or marked, and how many each test rejected."""
        total, kept = self.counts.total(), self.counts[KEPT]
        rejected = ", ".join(f"{self.counts[name]:,} {name}" for name in names if self.counts[name])
        if self.mode is Mode.MARKED:
            line = f"marked {total - kept:,} of {total:,} pairs"
        else:
            line = f"kept {kept:,} of {total:,} pairs"
        return f"{line}; rejected: {rejected}" if rejected else line


@contextmanager
def opened(
    mode: Mode, main: str, target: str | None, rejects: str | None, line_buffered: bool
) -> Iterator[Outputs]:
    """Outputs to these paths: all files appear, or none. Raises CreateError, WriteError."""
    paths = [path for path in (main, target, rejects) if path is not None]
    with writing.together(paths, line_buffered) as writers:
        each = iter(writers)
        yield Outputs(
            mode,
            next(each),
            None if target is None else next(each),
            None if rejects is None else next(each),
        )
