"""Attention weights as JSONL: one object for each segment.

    {"id":"1","status":"ok","stack":"encoder","tokens":["▁A","▁dog","</s>"],
     "keys":["▁A","▁dog","</s>"],"weights":[{"layer":0,"head":0,"rows":[[0.5,0.25,0.25],…]},…]}

(all on one line). Row i of `rows` has the weight of each of `keys` for token i. Layers and heads
count from 0. A segment without weights has empty tokens, keys and weights.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import orjson


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
