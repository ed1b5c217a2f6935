"""The results of work: records, and what was counted on the way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from synmt_cli.core.jobs.work import Work
from synmt_cli.core.segments.bad_trees import located
from synmt_cli.errors import SynmtError, counted, quoted
from synmt_cli.formats.record import UNPARSED


@dataclass(slots=True)
class Done:
    """Records made from some work, and what was counted on the way.

    statuses: how many lines have each. first_failure: the reason of the first line that failed or
    was skipped, with its place. counts: other figures by name. unknown: how often each transition
    occurs that is not a symbol of the vocabulary. error: the error that ended the work early.
    """

    records: list[bytes] = field(default_factory=list)
    statuses: Counter[str] = field(default_factory=Counter)
    first_failure: str = ""
    counts: Counter[str] = field(default_factory=Counter)
    unknown: Counter[str] = field(default_factory=Counter)
    error: SynmtError | None = None

    def count(self, status: str, reason: str | None, place: tuple[str, int], strict: bool) -> None:
        """Counts a line. Raises DataError if it failed or was skipped, and `strict` is set."""
        self.statuses[status] += 1
        if status in UNPARSED:
            where = located(place, reason or "")
            if strict:
                raise where
            self.first_failure = self.first_failure or str(where)

    def count_lifted(self, n_words: int) -> None:
        """Counts a tree if `n_words` of its words got another head to make it projective."""
        if n_words:
            self.counts["lifted words"] += n_words
            self.counts["lifted trees"] += 1

    def add(self, other: Done) -> None:
        """Adds the counts of `other`, but not its records or its error."""
        self.statuses += other.statuses
        self.first_failure = self.first_failure or other.first_failure
        self.counts += other.counts
        self.unknown += other.unknown

    def warnings(self, unit: str) -> Iterator[str]:
        """Yields the warnings to give at the end. unit: `lines`, `segments`."""
        of_all = f"of {self.statuses.total():,}"
        if n_trees := self.counts["lifted trees"]:
            yield (
                f"{n_trees:,} {of_all} trees were not projective and lifted: "
                f"other heads for {counted(self.counts['lifted words'], 'word')}"
            )
        for status in UNPARSED:
            if n := self.statuses[status]:
                yield f"{n:,} {of_all} {unit} {status}"
        if self.first_failure:
            yield f"the first of them: {self.first_failure}"
        if self.unknown:
            yield (
                f"{self.unknown.total():,} transitions of {len(self.unknown):,} kinds are not in "
                f"the vocabulary, such as {quoted(min(self.unknown))}: synmt linearize "
                "--format symbols writes those needed for synmt vocab train --symbols"
            )


def do(make: Callable[[Work, Done], Iterator[bytes]], work: Work) -> Done:
    """The records that `make` yields, up to a SynmtError, which the result keeps."""
    result = Done()
    try:
        for record in make(work, result):
            result.records.append(record)
    except SynmtError as error:
        result.error = error
    return result


def tallied(parts: Iterable[Done], total: Done) -> Iterator[list[bytes]]:
    """Yields the records of each part, counted in `total`; then raises the part's error."""
    for part in parts:
        total.add(part)
        yield part.records
        if part.error is not None:
            raise part.error
