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

from synmt_cli.errors import DataError
from synmt_cli.io import reading

ROUNDING = 1e-3  # how far a weight may be above 1


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
        reading.decode(line, source, number)  # raises if this is the reason
        raise DataError(source, number, f"invalid JSON: {error}") from None
    try:
        return _segment(fields)
    except ValueError as error:
        problem = f"not from `synmt analyze attention`: {error}"
        raise DataError(source, number, problem) from None


def _segment(fields: object) -> Attention:
    """The segment that the object in a line describes. Raises ValueError."""
    if not isinstance(fields, dict):
        raise ValueError("a line is not an object")
    for name in ("id", "status", "stack"):
        if not isinstance(fields.get(name), str):
            raise ValueError(f"field {name} is missing or not a string")
    for name in ("tokens", "keys"):
        values = fields.get(name)
        if not isinstance(values, list) or not all(isinstance(one, str) for one in values):
            raise ValueError(f"field {name} is missing or not a list of texts")
    if not isinstance(fields.get("weights"), list):
        raise ValueError("field weights is missing or not a list")
    shape = len(fields["tokens"]), len(fields["keys"])
    if fields["weights"] and 0 in shape:
        raise ValueError(f"weights without {'keys' if shape[0] else 'tokens'}")
    texts = fields["id"], fields["status"], fields["stack"], fields.get("reason")
    maps = dict(_map(one, shape) for one in fields["weights"])
    return Attention(*texts, fields["tokens"], fields["keys"], maps)


def _map(one: object, shape: tuple[int, int]) -> tuple[tuple[int, int], np.ndarray]:
    """The layer, the head and the weights of one map. Raises ValueError."""
    if not isinstance(one, dict) or not all(type(one.get(n)) is int for n in ("layer", "head")):
        raise ValueError("weights without layer and head")
    try:
        rows = np.array(one.get("rows"))
    except ValueError:  # rows of unequal length
        rows = np.array(None)
    if rows.shape != shape or rows.dtype.kind not in "fiu":  # null and texts make other kinds
        raise ValueError(f"weights that are not {shape[0]} rows of {shape[1]} numbers")
    if not ((rows >= 0) & (rows <= 1 + ROUNDING)).all():
        raise ValueError("a weight that is not from 0 to 1")
    return (one["layer"], one["head"]), rows.astype(np.float64)
