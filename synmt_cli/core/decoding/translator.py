"""Records to translations: batches of similar length, features, search, text again."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
import torch

from synmt_cli.core.data.batch import by_length, to_device
from synmt_cli.core.data.encoding import Encoding, Values
from synmt_cli.core.data.ragged import Array, Ragged
from synmt_cli.core.data.task_tags import asks_for_parse, parse_text, untagged
from synmt_cli.core.decoding.batching.supply import Room
from synmt_cli.core.decoding.hypothesis import Hypothesis, Rules, normalised_score
from synmt_cli.core.decoding.search import stream
from synmt_cli.core.model.modifier import Side
from synmt_cli.core.model.transformer import Transformer
from synmt_cli.core.text.vocabulary import SPACE, Vocabulary
from synmt_cli.errors import SynmtError
from synmt_cli.formats.record import EMPTY, OK, Record

Item = TypeVar("Item")
WAIT = 0.1  # seconds for the items of a window, after which it is cut short


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchSettings(Rules):
    """How to search, and how much at a time.

    max_pieces: longer sources are translated in parts. batch_size: the most sentences in one
    batch; batch_pieces: the most padded source pieces in it, if it has several sentences. Each is
    at least 1.
    """

    beam: int = 4
    max_pieces: int = 1000
    batch_size: int = 64
    batch_pieces: int = 4096

    def __post_init__(self) -> None:
        """Raises ValueError."""
        Rules.__post_init__(self)  # super() does not work in a class with slots
        for name in ("max_pieces", "batch_size", "batch_pieces"):
            if (n := getattr(self, name)) < 1:
                raise ValueError(f"{name} must be at least 1, not {n}")


@dataclass(frozen=True, slots=True)
class TranslatedLine:
    """A translation as text. score: `normalised_score`. cut: it ended at the length limit.

    transitions: those of each part's tree, where models write trees. n_closing: how many of them
    were added at the end of a part (closing.py).
    """

    text: str
    score: float
    cut: bool
    transitions: tuple[list[str], ...] = ()
    n_closing: int = 0


@dataclass(frozen=True, slots=True)
class Translated:
    """A record and its translations, best first, or as drawn; none where there was no source.

    n_parts: more than 1 where the source was too long; its parts then have one joint translation.
    """

    record: Record
    lines: list[TranslatedLine]
    n_parts: int = 1


@dataclass(frozen=True, slots=True)
class SourcePart:
    """A source as the encoder reads it. owner: the number of its record in the window.

    record_id: the id of that record. number: of this part among those of the record, from 0.
    """

    owner: int
    record_id: str
    number: int
    ids: list[int]
    features: Values

    @property
    def name(self) -> str:
        """The name on which its draws depend, so that the records before it do not matter."""
        which = f" {self.number}" if self.number else ""
        return f"{self.record_id} {self.ids}{which}"


def unchanged(record: Record) -> Record:
    """The same record: most models read sources without preparation."""
    return record


class Search(Protocol):
    """Finds the n-best lists of sources."""

    def __call__(
        self, ids: Ragged, side: Callable[[Array], Side], batches: Iterable[Array]
    ) -> Iterator[tuple[Array, list[list[Hypothesis]]]]:
        """Yields the rows of a batch and the n-best list of each.

        ids: of all sources. side: the source side of some rows. batches: rows, longest first.
        """


Watch = Callable[[int, float], None]  # of `Translator.translate`


@dataclass(frozen=True, slots=True)
class Translator:
    """Models that translate together.

    encoding: of the features that any of them reads; it may be the one that training grew, and
    labels that it has not met have no id of their own (Labels).
    prepare: is applied to each source, or part of a long one, before it is read. search: the
    search of another program, which needs no `models`; None means `search.stream`.
    """

    models: Sequence[Transformer]
    source: Vocabulary
    target: Vocabulary
    encoding: Encoding
    device: torch.device
    settings: SearchSettings
    prepare: Callable[[Record], Record] = unchanged
    search: Search | None = None

    @property
    def writes_trees(self) -> bool:
        """Whether the models write transitions."""
        return any(model.grammar is not None for model in self.models)

    def translate(
        self, records: Sequence[Record], watch: Watch = lambda n, share: None
    ) -> list[Translated]:
        """One result for each record, in order. Longer sources are searched first.

        watch: called with the number of sources searched so far, and with the share of the work
        done, from 0 to 1, estimated from lengths; 0 until as many sources are done as are searched
        at once.
        """
        return self.translate_each(records, [self.settings.lenpen], watch)[0]

    def translate_each(
        self,
        records: Sequence[Record],
        lenpens: Sequence[float],
        watch: Watch = lambda n, share: None,
    ) -> list[list[Translated]]:
        """Returns for each lenpen what `translate` would, from one search for all.

        Several values need a search by torch.
        """
        encoding = self.encoding.frozen()  # paths of this window alone
        parts = [
            part for i, record in enumerate(records) for part in self._parts(i, record, encoding)
        ]
        found = []
        nbests_of_each = self._search(parts, encoding, lenpens, watch)
        for lenpen, nbests in zip(lenpens, nbests_of_each, strict=True):
            nbests_of: list[list[list[Hypothesis]]] = [[] for _ in records]  # of the parts of each
            for part, nbest in zip(parts, nbests, strict=True):
                nbests_of[part.owner].append(nbest)
            pairs = zip(records, nbests_of, strict=True)
            found.append([Translated(r, self._lines(r, own, lenpen), len(own)) for r, own in pairs])
        return found

    def _parts(self, owner: int, record: Record, encoding: Encoding) -> Iterator[SourcePart]:
        """Yields one part; none for an empty record, several without a tree for a long one."""
        tag, pieces = untagged(record.pieces or [])
        if record.status == EMPTY or not pieces:
            return
        parts = list(in_parts(pieces, self.settings.max_pieces))
        has_tree = record.status == OK and len(parts) == 1
        for number, part in enumerate(parts):
            own = [tag, *part, tag] if tag else part
            prepared = self.prepare(record if has_tree else record.without_tree(own))
            ids = self.source.source_ids(prepared.pieces)
            yield SourcePart(owner, record.id, number, ids, encoding.values(prepared))

    def _search(
        self,
        parts: Sequence[SourcePart],
        encoding: Encoding,
        lenpens: Sequence[float],
        watch: Watch,
    ) -> list[list[list[Hypothesis]]]:
        """For each lenpen the n-best list of each part."""
        ids = Ragged.of([part.ids for part in parts], np.int64)
        work = ids.lengths.astype(float)
        if any(model.rereads for model in self.models):
            work **= 2  # a token costs as much as there are tokens before it
        work /= max(work.sum(), 1.0)
        done = 0.0
        features = encoding.ragged([part.features for part in parts])
        nbests: list[dict[int, list[Hypothesis]]] = [{} for _ in lenpens]

        def side(rows: Array) -> Side:
            return encoding.side(ids, features, rows)

        for rows, each in self._found(ids, side, lenpens, lambda row: parts[row].name):
            for own, some in zip(nbests, each, strict=True):
                own.update(zip(rows.tolist(), some, strict=True))
            done += work[rows].sum()
            n = len(nbests[0])
            watch(n, done if n >= min(self.settings.batch_size, len(parts)) else 0.0)
        return [[own[row] for row in range(len(parts))] for own in nbests]

    def _found(
        self,
        ids: Ragged,
        side: Callable[[Array], Side],
        lenpens: Sequence[float],
        name: Callable[[int], str],
    ) -> Iterator[tuple[Array, list[list[list[Hypothesis]]]]]:
        """Yields some rows, and for each lenpen their n-best lists."""
        batches = self._batches(ids.lengths)
        if self.search is not None:
            for rows, nbests in self.search(ids, side, batches):
                yield rows, [nbests]
            return
        batched = ((rows.tolist(), self._sides(side(rows))) for rows in batches)
        room = Room(self.settings.batch_size, self.settings.batch_pieces)
        for some in stream(self.models, batched, self.settings, lenpens, room, name):
            rows = np.array([row for row, _ in some])
            yield rows, [[nbests[i] for _, nbests in some] for i in range(len(lenpens))]

    def _sides(self, source: Side) -> list[Side]:
        """The same side for each model."""
        return [to_device(source, self.device)] * len(self.models)

    def _batches(self, lengths: Array) -> Iterator[Array]:
        yield from by_length(lengths, self.settings.batch_pieces, self.settings.batch_size)

    def _lines(
        self, record: Record, nbests: Sequence[list[Hypothesis]], lenpen: float
    ) -> list[TranslatedLine]:
        """The translations of a record. nbests: the n-best list of each of its parts."""
        if not nbests:
            return []
        if len(nbests) == 1:
            return [self._line(record, [h], h.score) for h in nbests[0]]
        best = [nbest[0] for nbest in nbests]
        log_prob, length = sum(h.log_prob for h in best), sum(h.length for h in best)
        score = normalised_score(log_prob, length, lenpen)
        return [self._line(record, best, score)]

    def _line(self, record: Record, parts: Sequence[Hypothesis], score: float) -> TranslatedLine:
        text = parse_text if asks_for_parse(record) else Vocabulary.decode
        return TranslatedLine(
            " ".join(text(self.target, h.ids) for h in parts),
            score,
            any(h.cut for h in parts),
            tuple(self.target.names(h.ids) for h in parts) if self.writes_trees else (),
            sum(h.n_closing for h in parts),
        )


def in_parts(pieces: Sequence[str], limit: int) -> Iterator[list[str]]:
    """Yields runs of at most `limit` pieces, cut before a word where one begins.

    >>> list(in_parts(["▁a", "▁b", "c", "d", "e", "f"], 3))
    [['▁a'], ['▁b', 'c', 'd'], ['e', 'f']]
    """
    begin = 0
    while begin < len(pieces):
        end = begin + limit
        if end < len(pieces):
            words = (i for i in range(end, begin, -1) if pieces[i].startswith(SPACE))
            end = next(words, end)
        yield list(pieces[begin:end])
        begin = end


def windows(
    items: Iterable[Item],
    size: int,
    first: int = 0,
    waited: Callable[[], float] = float,
) -> Iterator[list[Item]]:
    """Yields runs of `size` items, the last one shorter. Only one run is in memory.

    first: the size of the first run; each later one is twice as long as the one before, up to
    `size`, so that results appear soon; 0 means `size`. waited: returns the seconds spent waiting
    for items so far; a run of at least `first` items ends once WAIT of them were spent on it, so
    that there is work while a slower program makes the next items.

    An error of `items` is raised after all items before it have been yielded.
    """
    window: list[Item] = []
    least = now = min(first or size, size)
    begin = waited()
    try:
        for item in items:
            window.append(item)
            if len(window) == now or (len(window) >= least and waited() - begin > WAIT):
                full, window = window, []
                now = min(2 * now, size)
                yield full
                begin = waited()
    except SynmtError:
        if window:
            yield window
        raise
    if window:
        yield window
