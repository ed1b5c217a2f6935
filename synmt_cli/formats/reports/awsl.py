"""What `synmt analyze awsl` reports, as a table, TSV or JSON. Layers and heads count from 0."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import orjson

from synmt_cli.errors import printable
from synmt_cli.formats.reports.scores import columns

TSV_COLUMNS = ("run", "layer", "head", "variants", "awsl", "equation_7", "sentences")
ALL, NONE = "all", "n/a"


@dataclass(frozen=True, slots=True)
class Weight:
    """awsl: the share of syntax; equation_7: that of the normal logits, as eq. 7 is printed."""

    awsl: float
    equation_7: float


@dataclass(frozen=True, slots=True)
class LayerWeights:
    """One layer. variants: those that change its scores. weight: the mean over its heads.

    None where no pair of tokens counted.
    """

    layer: int
    variants: list[str]
    weight: Weight | None
    heads: list[Weight | None]


@dataclass(frozen=True, slots=True)
class RunWeights:
    """One run, its layers from the bottom."""

    run: str
    variant: str
    sentences: int
    layers: list[LayerWeights]


@dataclass(frozen=True, slots=True)
class AwslReport:
    """Runs on the same records. left_out: why a record was not measured -> how many."""

    runs: list[RunWeights]
    left_out: dict[str, int] = field(default_factory=dict)


def to_json(report: AwslReport) -> bytes:
    """One JSON object and LF."""
    runs = [
        {
            "run": run.run,
            "variant": run.variant,
            "sentences": run.sentences,
            "layers": [
                {
                    "layer": one.layer,
                    "variants": one.variants,
                    **_figures(one.weight),
                    "heads": [{"head": i, **_figures(w)} for i, w in enumerate(one.heads)],
                }
                for one in run.layers
            ],
        }
        for run in report.runs
    ]
    document = {"runs": runs, "left_out": report.left_out}
    return orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def _figures(weight: Weight | None) -> dict[str, float | None]:
    if weight is None:
        return {"awsl": None, "equation_7": None}
    return {"awsl": weight.awsl, "equation_7": weight.equation_7}


def to_tsv(report: AwslReport) -> bytes:
    """A header, then for each run and layer one line for all heads and one for each."""
    rows: list[tuple[str, ...]] = [TSV_COLUMNS]
    for run in report.runs:
        for one in run.layers:
            heads = [(ALL, one.weight), *((str(i), weight) for i, weight in enumerate(one.heads))]
            for head, weight in heads:
                start = (run.run, str(one.layer), head, "+".join(one.variants))
                figures = (NONE, NONE) if weight is None else (weight.awsl, weight.equation_7)
                rows.append((*start, str(figures[0]), str(figures[1]), str(run.sentences)))
    return b"".join("\t".join(map(printable, row)).encode() + b"\n" for row in rows)


def to_table(report: AwslReport) -> bytes:
    """For people: a block for each run, a line for each layer, its heads at the end."""
    parts = [list(_block(run)) for run in report.runs]
    parts.append(list(_legend(report)))
    return ("\n\n".join("\n".join(part) for part in parts) + "\n").encode()


def _block(run: RunWeights) -> Iterator[str]:
    n_heads = max((len(one.heads) for one in run.layers), default=0)
    rows = [["layer", "variants", "AWSL", "eq. 7", *(f"head {i}" for i in range(n_heads))]]
    for one in run.layers:
        weight = one.weight
        figures = [NONE, NONE] if weight is None else [weight.awsl, weight.equation_7]
        shares = [NONE if head is None else head.awsl for head in one.heads]
        shown = [x if isinstance(x, str) else f"{x:.4f}" for x in (*figures, *shares)]
        rows.append([str(one.layer), "+".join(one.variants) or "-", *shown])
    yield f"{printable(run.run)} ({run.variant}), {run.sentences:,} sentences"
    yield ""
    yield from columns(rows, left=2)


def _legend(report: AwslReport) -> Iterator[str]:
    yield "AWSL: |e^s| / (|e| + |e^s|), the share of syntax; head i: that of its head i"
    yield "eq. 7: |e| / (|e| + |e^s|), as it is printed; layer 0 is the bottom one"
    for reason, n in report.left_out.items():
        yield f"left out: {n:,} {reason}"


FORMATS = {"table": to_table, "tsv": to_tsv, "json": to_json}
