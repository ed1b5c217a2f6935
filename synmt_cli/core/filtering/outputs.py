"""Where pairs go once it is known whether they pass: kept, marked or counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from synmt_cli.core.filtering.pairs import Pair
from synmt_cli.io.writing import Writer

KEPT = "kept"


class Mode(StrEnum):
    """What the main output holds: the pairs that pass, all of them marked, or figures."""

    KEEP = "keep"
    ANNOTATE = "annotate"
    COUNT = "count"


@dataclass(slots=True)
class Outputs:
    """The open outputs, and how many pairs each test has rejected so far."""

    mode: Mode
    main: Writer
    target: Writer | None = None
    rejects: Writer | None = None
    counts: Counter[str] = field(default_factory=Counter)

    def take(self, pair: Pair, reason: str) -> None:
        """Writes a pair where it belongs. reason: `NAME: …`, "" where it passes."""
        self.counts[reason.partition(":")[0] or KEPT] += 1
        if self.mode is Mode.ANNOTATE:
            self.main.write(pair.annotated(reason))
        elif self.mode is Mode.KEEP and not reason:
            main, target = pair.written()
            self.main.write(main)
            if self.target is not None:
                self.target.write(target)
        if reason and self.rejects is not None:
            self.rejects.write(pair.rejected(reason))

    def finish(self, names: Sequence[str]) -> None:
        """Flushes everything: a full disk shows before the first file takes its name."""
        if self.mode is Mode.COUNT:
            self.main.write(self._table(names))
        for writer in (self.main, self.target, self.rejects):
            if writer is not None:
                writer.flush()

    def _table(self, names: Sequence[str]) -> bytes:
        """`NAME<TAB>N<TAB>PERCENT` for what is kept and for each test, under a header."""
        total = max(self.counts.total(), 1)
        rows = [(name, self.counts[name]) for name in (KEPT, *names)]
        lines = [f"{name}\t{n}\t{100 * n / total:.1f}\n" for name, n in rows]
        return "".join(["reason\tn\t%\n", *lines]).encode()

    def summary(self, names: Sequence[str]) -> str:
        """One line: how many are kept or marked, and which tests they failed."""
        total, kept = self.counts.total(), self.counts[KEPT]
        rejected = ", ".join(f"{self.counts[name]:,} {name}" for name in names if self.counts[name])
        if self.mode is Mode.ANNOTATE:
            line = f"marked {total - kept:,} of {total:,} pairs"
        else:
            line = f"kept {kept:,} of {total:,} pairs"
        return f"{line}; rejected: {rejected}" if rejected else line
