"""Puts pairs through all tests, in the order of the stream and of the tests.

Cheap tests come first, then language identification, spread over processes. Whether a pair is
new comes last: only the process that sees all pairs can tell, and a pair that another test
rejects must not count as seen.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from synmt_cli import pool
from synmt_cli.core.filtering.criteria import Criterion
from synmt_cli.core.filtering.languages import Languages
from synmt_cli.core.filtering.pairs import Pair

CHUNK = 32  # pairs that travel to a worker together


@dataclass(frozen=True, slots=True)
class Sieve:
    """Tests in the order in which they are applied. keep_empty: pairs of blank lines pass."""

    criteria: Sequence[Criterion]
    languages: Languages | None = None
    unique: Criterion | None = None
    keep_empty: bool = False

    @property
    def names(self) -> list[str]:
        """The names of the tests, in their order."""
        last = [one for one in (self.languages, self.unique) if one is not None]
        return [one.name for one in (*self.criteria, *last)]

    def sift(self, pairs: Iterable[Pair], jobs: int = 1) -> Iterator[tuple[Pair, str]]:
        """Each pair, and `NAME: PROBLEM` of the first test that it fails, "" if it passes.

        jobs: processes that identify languages. Neither the order of the pairs nor the reasons
        depend on it.
        """
        waiting: deque[tuple[Pair, str, bool]] = deque()

        def texts() -> Iterator[tuple[str, ...]]:
            for pair in pairs:  # runs in a thread of the pool, if there are processes
                passes = self.keep_empty and pair.is_empty
                criteria = () if passes else self.criteria
                reason = next(filter(None, (_reason(one, pair) for one in criteria)), "")
                waiting.append((pair, reason, passes))
                yield () if passes or reason else self._identified(pair)

        n_processes = 1 if self.languages is None else jobs
        for language in pool.ordered_map(self._language, texts(), n_processes, CHUNK):
            pair, reason, passes = waiting.popleft()
            if not reason and language:
                reason = f"{Languages.name}: {language}"
            if not reason and self.unique is not None and not passes:
                reason = _reason(self.unique, pair)
            yield pair, reason

    def _identified(self, pair: Pair) -> tuple[str, ...]:
        if self.languages is None:
            return ()
        if len(self.languages.codes) > 1:
            pair.require_both("--lang SRC-TGT")
        return pair.texts

    def _language(self, texts: Sequence[str]) -> str:
        return self.languages.problem(texts) if self.languages is not None and texts else ""


def _reason(criterion: Criterion, pair: Pair) -> str:
    problem = criterion.problem(pair)
    return f"{criterion.name}: {problem}" if problem else ""
