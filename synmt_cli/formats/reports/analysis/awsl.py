"""The report of `synmt analyze awsl`. Layers and heads count from 0."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from synmt_cli.errors import counted
from synmt_cli.formats.reports import documents
from synmt_cli.formats.reports.table import ALL, Cell, Notes, Record, Row, Table, Value

KNOWN_BY = frozenset({"runs", "left_out"})  # fields, for `synmt info`
COMMAND = "analyze awsl"


@dataclass(frozen=True, slots=True)
class LayerWeights:
    """The weights of one layer. variants: those that read trees and change its scores.

    weight: the mean over its heads. A weight is the share of syntax; None where no pair of tokens
    counted.
    """

    layer: int
    variants: list[str]
    weight: float | None
    heads: list[float | None]

    def document(self) -> dict[str, object]:
        """The fields; a weight that is not defined is null."""
        start = {"layer": self.layer, "variants": self.variants, **_values(self.weight)}
        return {**start, "heads": [{"head": i, **_values(one)} for i, one in enumerate(self.heads)]}


@dataclass(frozen=True, slots=True)
class RunWeights:
    """The weights of one run, its layers from the bottom."""

    run: str
    variant: str
    sentences: int
    layers: list[LayerWeights]


@dataclass(frozen=True, slots=True)
class AwslReport:
    """Runs on the same records. left_out: why records were not measured -> how many."""

    runs: list[RunWeights]
    left_out: dict[str, int] = field(default_factory=dict)

    def sections(self) -> Iterator[Table | Notes]:
        """A table for each run, a row for each layer, its heads at the end."""
        for run in self.runs:
            n_heads = max((len(one.heads) for one in run.layers), default=0)
            rows: list[Row] = []
            for one in run.layers:
                figures = [Cell(n, ".4f") for n in (*_values(one.weight).values(), *one.heads)]
                rows.append([one.layer, "+".join(one.variants) or "-", *figures])
            header = ["layer", "variants", "AWSL", "eq. 7", *(f"head {i}" for i in range(n_heads))]
            title = f"{run.run} ({run.variant}), {counted(run.sentences, 'sentence')}"
            yield Table(header, rows, left=2, title=title)
        yield [
            "AWSL: |e^s| / (|e| + |e^s|), the share of syntax; head i: that of its head i",
            "eq. 7: |e| / (|e| + |e^s|), as it is printed; layer 0 is the bottom one",
            *(f"left out: {n:,} {reason}" for reason, n in self.left_out.items()),
        ]

    def records(self) -> Iterator[Record]:
        """For each run and layer, one for all heads together and one for each head."""
        for run in self.runs:
            for one in run.layers:
                weights: list[tuple[Value, float | None]] = [(ALL, one.weight)]
                for head, weight in [*weights, *enumerate(one.heads)]:
                    yield {
                        "run": run.run,
                        "layer": one.layer,
                        "head": head,
                        "variants": "+".join(one.variants),
                        **_values(weight),
                        "sentences": run.sentences,
                    }


def _values(awsl: float | None) -> dict[str, float | None]:
    """awsl: the share of syntax; equation_7: the share of the normal logits, as in eq. 7."""
    return {"awsl": awsl, "equation_7": None if awsl is None else 1.0 - awsl}


def read(path: str) -> AwslReport:
    """The report in a file of --format json, `-` for stdin. Raises DataError, ReadError."""
    return parsed(*documents.load(path, COMMAND))


def parsed(document: Any, source: str) -> AwslReport:
    """The report in a JSON value. source: for messages. Raises DataError."""
    try:
        runs = [_run(one) for one in document["runs"]]
    except (KeyError, TypeError, ValueError):
        problem = "runs and their layers are missing or of other types"
        raise documents.foreign(source, COMMAND, problem) from None
    if not runs:
        raise documents.foreign(source, COMMAND, "no runs")
    return AwslReport(runs)


def _run(one: Any) -> RunWeights:
    layers = [
        LayerWeights(
            documents.count(layer["layer"]),
            [documents.text(name) for name in layer["variants"]],
            documents.share(layer["awsl"]),
            [documents.share(head["awsl"]) for head in layer["heads"]],
        )
        for layer in one["layers"]
    ]
    return RunWeights(
        documents.text(one["run"]),
        documents.text(one["variant"]),
        documents.count(one["sentences"]),
        layers,
    )
