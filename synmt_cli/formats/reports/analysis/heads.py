"""The report of `synmt analyze heads`. Layers and heads count from 0."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from synmt_cli.errors import counted
from synmt_cli.formats.reports import documents
from synmt_cli.formats.reports.table import Cell, Notes, Record, Row, Table

KNOWN_BY = frozenset({"runs", "subtypes", "left_out"})  # fields, for `synmt info`
COMMAND = "analyze heads"
DIRECTIONS = ("up", "down")  # a head looks from a word to its parent, or from a parent to a word


@dataclass(frozen=True, slots=True)
class HeadFigures:
    """The figures of one attention head in one direction, over the words of a relation.

    accuracy: the share of words whose parent is found. weight: the mean weight between a word and
    its parent.
    """

    layer: int
    head: int
    looks: str
    accuracy: float
    weight: float


@dataclass(frozen=True, slots=True)
class RelationFigures:
    """The figures of one relation, or of all together.

    offset: the best fixed one. by_offset: the share of parents that it finds. Without words both
    are None, and there are no heads.
    """

    relation: str
    words: int
    offset: int | None
    by_offset: float | None
    heads: list[HeadFigures]

    @property
    def best(self) -> HeadFigures | None:
        """The head that finds the most parents; of equal ones the lowest, up before down."""
        return max(self.heads, key=lambda one: one.accuracy, default=None)

    def by_layer(self, looks: str) -> dict[int, list[float]]:
        """Layer -> the accuracies of its heads in this direction."""
        rows: dict[int, list[float]] = {}
        for one in self.heads:
            if one.looks == looks:
                rows.setdefault(one.layer, []).append(one.accuracy)
        return rows


@dataclass(frozen=True, slots=True)
class RunFigures:
    """The figures of one run. relations: all together, then each, the most frequent first."""

    run: str
    variant: str
    sentences: int
    relations: list[RelationFigures]


@dataclass(frozen=True, slots=True)
class HeadsReport:
    """Runs on the same records. least: how many words a relation needs to be in tables for people.

    left_out: why records were not measured -> how many.
    """

    runs: list[RunFigures]
    subtypes: bool
    least: int
    left_out: dict[str, int] = field(default_factory=dict)

    def sections(self) -> Iterator[Table | Notes]:
        """For each run the best head of each relation, and all heads over all relations."""
        for run in self.runs:
            yield self._best(run)
            for looks in DIRECTIONS:
                yield _all_heads(run, looks)
        yield [
            "accuracy, up: the share of words that give their greatest weight to their parent",
            "accuracy, down: the share of words that get their greatest weight from their parent",
            "weight: what a word gives its parent (up) or gets from it (down), on average",
            "head: LAYER.HEAD, the most accurate of all, both ways; layer 0 is the bottom one",
            "baseline: the accuracy of the best fixed offset, +1 being the next word",
            f"relations of fewer than {self.least:,} words are in --format tsv, csv and json alone",
            *(f"left out: {n:,} {reason}" for reason, n in self.left_out.items()),
        ]

    def _best(self, run: RunFigures) -> Table:
        rows: list[Row] = []
        for i, one in enumerate(run.relations):
            if (i > 0 and one.words < self.least) or (best := one.best) is None:
                continue
            found = [Cell(best.accuracy, ".1%"), Cell(best.weight, ".3f")]
            baseline = [Cell(one.offset, "+d"), Cell(one.by_offset, ".1%")]
            head = [f"{best.layer}.{best.head}", best.looks]
            rows.append([one.relation, *head, Cell(one.words, ",d"), *found, *baseline])
        header = ["relation", "head", "looks", "words", "accuracy", "weight", "offset", "baseline"]
        title = f"{run.run} ({run.variant}), {counted(run.sentences, 'sentence')}"
        return Table(header, rows, left=3, title=title)

    def records(self) -> Iterator[Record]:
        """One for each run, relation, layer, head and direction."""
        for run in self.runs:
            for one in run.relations:
                for head in one.heads:
                    yield {
                        "run": run.run,
                        "relation": one.relation,
                        "layer": head.layer,
                        "head": head.head,
                        "looks": head.looks,
                        "accuracy": head.accuracy,
                        "weight": head.weight,
                        "words": one.words,
                        "offset": one.offset,
                        "by_offset": one.by_offset,
                        "sentences": run.sentences,
                    }


def _all_heads(run: RunFigures, looks: str) -> Table:
    """A row for each layer: the share of all arcs that each of its heads finds."""
    found = run.relations[0].by_layer(looks)
    rows: list[Row] = [[layer, *(Cell(n, ".1%") for n in row)] for layer, row in found.items()]
    n_heads = max(map(len, found.values()), default=0)
    header = ["layer", *(f"head {i}" for i in range(n_heads))]
    return Table(header, rows, title=f"{run.run}, all relations, {looks}")


def read(path: str) -> HeadsReport:
    """The report in a file of --format json, `-` for stdin. Raises DataError, ReadError."""
    return parsed(*documents.load(path, COMMAND))


def parsed(document: Any, source: str) -> HeadsReport:
    """The report in a JSON value. source: for messages. Raises DataError."""
    try:
        runs = [_run(one) for one in document["runs"]]
        subtypes, least = document["subtypes"], documents.count(document["least"])
        if not isinstance(subtypes, bool):
            raise TypeError
    except (KeyError, TypeError, ValueError):
        problem = "runs and their relations are missing or of other types"
        raise documents.foreign(source, COMMAND, problem) from None
    if not runs:
        raise documents.foreign(source, COMMAND, "no runs")
    return HeadsReport(runs, subtypes, least)


def _run(one: Any) -> RunFigures:
    relations = [
        RelationFigures(
            documents.text(figures["relation"]),
            documents.count(figures["words"]),
            _offset(figures["offset"]),
            documents.share(figures["by_offset"]),
            [_head(head) for head in figures["heads"]],
        )
        for figures in one["relations"]
    ]
    for figures in relations:
        sizes = {len(row) for looks in DIRECTIONS for row in figures.by_layer(looks).values()}
        if len(sizes) > 1:
            raise ValueError  # no model has layers with different numbers of heads
    run, variant = documents.text(one["run"]), documents.text(one["variant"])
    return RunFigures(run, variant, documents.count(one["sentences"]), relations)


def _offset(value: Any) -> int | None:
    if value is not None and type(value) is not int:
        raise TypeError
    return value


def _head(one: Any) -> HeadFigures:
    accuracy, weight = documents.share(one["accuracy"]), documents.share(one["weight"])
    if one["looks"] not in DIRECTIONS or accuracy is None or weight is None:
        raise ValueError
    return HeadFigures(
        documents.count(one["layer"]), documents.count(one["head"]), one["looks"], accuracy, weight
    )
