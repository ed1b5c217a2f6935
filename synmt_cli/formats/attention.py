"""Attention weights as JSONL: one object for each segment.

    {"id":"1","status":"ok","stack":"encoder","tokens":["▁A","▁dog","</s>"],
     "keys":["▁A","▁dog","</s>"],"weights":[{"layer":0,"head":0,"rows":[[0.5,0.25,0.25],…]},…]}

(all on one line). Row i of `rows` has the weight of each of `keys` for token i. Layers and heads
count from 0. A segment without weights has empty tokens, keys and weights.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import orjson

from synmt_cli.errors import DataError, printable
from synmt_cli.io import reading


@dataclass(frozen=True, slots=True)
class Attention:
    """The weights of one segment. status, reason: as in a record; weights only if `ok`."""

    id: str
    status: str
    stack: str
    reason: str | None = None
    tokens: list[str] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    weights: Mapping[tuple[int, int], np.ndarray] = field(default_factory=dict)


def to_bytes(one: Attention, decimals: int) -> bytes:
    """The line of a segment, LF included, its weights rounded."""
    fields: dict[str, object] = {"id": one.id, "status": one.status}
    if one.reason is not None:
        fields["reason"] = one.reason
    weights = [
        {"layer": layer, "head": head, "rows": rows.astype(np.float64).round(decimals).tolist()}
        for (layer, head), rows in one.weights.items()
    ]
    fields |= {"stack": one.stack, "tokens": one.tokens, "keys": one.keys, "weights": weights}
    return orjson.dumps(fields, option=orjson.OPT_APPEND_NEWLINE)


def read(source: reading.Source) -> Iterator[Attention]:
    """Yields the segments of a source. Raises DataError, ReadError."""
    for number, line in enumerate(reading.lines(source), 1):
        yield from_bytes(line, source.name, number)


def from_bytes(line: bytes, source: str, number: int) -> Attention:
    """The segment in a line. Raises DataError."""
    try:
        fields = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise DataError(source, number, f"invalid JSON: {printable(str(error))}") from None
    if problem := _problem(fields):
        raise DataError(source, number, f"not from `synmt analyze attention`: {problem}")
    maps = {
        (one["layer"], one["head"]): np.array(one["rows"], np.float64) for one in fields["weights"]
    }
    texts = fields["id"], fields["status"], fields["stack"], fields.get("reason")
    return Attention(*texts, fields["tokens"], fields["keys"], maps)


def _problem(fields: object) -> str:
    """What is wrong with the object of a line, "" if nothing is."""
    if not isinstance(fields, dict):
        return "a line is not an object"
    for name in ("id", "status", "stack"):
        if not isinstance(fields.get(name), str):
            return f"field {name} is missing or not a text"
    for name in ("tokens", "keys"):
        values = fields.get(name)
        if not isinstance(values, list) or not all(isinstance(one, str) for one in values):
            return f"field {name} is missing or not a list of texts"
    if not isinstance(fields.get("weights"), list):
        return "field weights is missing or not a list"
    shape = len(fields["tokens"]), len(fields["keys"])
    return next(filter(None, (_problem_of_map(one, shape) for one in fields["weights"])), "")


def _problem_of_map(one: object, shape: tuple[int, int]) -> str:
    if not isinstance(one, dict) or not all(type(one.get(n)) is int for n in ("layer", "head")):
        return "weights without layer and head"
    rows = one.get("rows")
    try:
        fits = np.array(rows, np.float64).shape == shape
    except (TypeError, ValueError):
        fits = False
    return "" if fits else f"weights that are not {shape[0]} rows of {shape[1]} numbers"
