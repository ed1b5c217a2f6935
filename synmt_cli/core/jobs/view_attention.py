"""Attention weights as drawings: a shaded row for each token, a column for each key.

    # 1  encoder, layer 0, head 2
    ▁The  █░         ▁The 0.61
    ▁dog  ▒█░        ▁dog 0.48
    </s>    █       ▁sees 0.90

A cell is shaded by its share of the greatest weight of its row, which stands at the end with its
key. A segment without weights has no rows; its status is shown instead.
"""

from collections.abc import Iterator

import numpy as np

from synmt_cli.errors import printable
from synmt_cli.formats.attention import Attention
from synmt_cli.io.display_width import cut, padded, width

SHADES, ASCII_SHADES = " ░▒▓█", " .+#@"
ROOM = 20  # columns that a token takes at most


def block(one: Attention, ascii: bool, columns: int | None) -> str:
    """The drawings of a segment, each followed by an empty line.

    columns: the longest line, None for any length.
    """
    if not one.weights:
        reason = f": {one.reason}" if one.reason else ""
        return _cut(f"# {one.id}  ({one.status}{reason}; no weights)", columns) + "\n\n"
    return "".join(
        "\n".join([_cut(f"# {one.id}  {one.stack}, layer {layer}, head {head}", columns), *rows])
        + "\n\n"
        for (layer, head), weights in one.weights.items()
        for rows in [[*_rows(one, weights, ascii, columns)]]
    )


def _rows(one: Attention, weights: np.ndarray, ascii: bool, columns: int | None) -> Iterator[str]:
    """weights: (T, S)."""
    shades = ASCII_SHADES if ascii else SHADES
    tokens, keys = ([cut(printable(t), ROOM) for t in ts] for ts in (one.tokens, one.keys))
    left = max(map(width, tokens))
    for token, row in zip(tokens, weights, strict=True):
        greatest = row.max(initial=0.0)
        levels = np.rint(row / greatest * (len(shades) - 1)).clip(0) if greatest > 0 else 0 * row
        cells = "".join(shades[int(level)] for level in levels)
        key = keys[int(row.argmax())] if len(row) else ""
        end = f"  {key} {greatest:.2f}"
        room = None if columns is None else max(columns - left - 2 - width(end), 1)
        shown = cells if room is None or len(cells) <= room else cells[: room - 1] + "…"
        yield _cut(f"{padded(token, left)}  {shown}{end}".rstrip(), columns)


def _cut(line: str, columns: int | None) -> str:
    line = printable(line)
    return line if columns is None else cut(line, columns)
