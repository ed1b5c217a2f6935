"""Runs that are measured side by side on the records of a stream that have trees."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

import torch

from synmt_cli.core.analysis.opened_run import OpenedRun, open_run, refuse_other_vocabulary
from synmt_cli.core.decoding.translator import windows
from synmt_cli.core.model.modifier import Side
from synmt_cli.errors import DataError
from synmt_cli.formats.record import NO_WORD, OK, Record

_NEEDS = ("sentence",)  # so that text is parsed, even for a run without syntax
WITHOUT = "without a tree"
WINDOW = 500  # records that are sorted by length at a time
Add = Callable[[Sequence[Record], Side], None]  # prepared records, and their batch


def open_all(
    folders: Sequence[str], checkpoint: str, device: torch.device, parser: str
) -> list[OpenedRun]:
    """Opens the runs. Raises SynmtError; the parameters are those of `open_run`."""
    runs = [open_run(folder, checkpoint, device, parser, _NEEDS) for folder in folders]
    refuse_other_vocabulary(runs)
    return runs


def feed(
    meters: Sequence[tuple[OpenedRun, Add]],
    records: Iterable[Record],
    max_pieces: int,
    on_records: Callable[[int], None],
) -> dict[str, int]:
    """Passes the batches of each run to its `Add`. Returns reason -> number of records left out.

    on_records: receives how many more were read.
    """
    left_out: Counter[str] = Counter()
    for window in windows(records, WINDOW):
        kept = []
        for record in window:
            if reason := _unfit(record, max_pieces):
                left_out[reason] += 1
            else:
                kept.append(record)
        for run, add in meters:
            prepared = [run.prepared(record) for record in kept]
            for rows, side in run.batches(prepared):
                add([prepared[row] for row in rows], side)
        on_records(len(window))
    return dict(left_out)


def notes(left_out: Mapping[str, int], n: int, source: str) -> list[str]:
    """Says in words what was left out of n segments. Raises DataError if none remain."""
    if not n:
        raise DataError(source, None, "no segments to measure")
    if sum(left_out.values()) == n:
        reasons = ", ".join(f"{reason} ({count:,})" for reason, count in left_out.items())
        advice = (
            "; give text, which is parsed, or records with trees" if WITHOUT in left_out else ""
        )
        raise DataError(
            source, None, f"no segments to measure, all are left out: {reasons}{advice}"
        )
    return [f"{count:,} of {n:,} segments left out: {reason}" for reason, count in left_out.items()]


def _unfit(record: Record, max_pieces: int) -> str:
    """Why there is nothing to measure, or ""."""
    if record.status != OK:
        return record.status
    if all(word == NO_WORD for word in record.piece_word or ()) or not record.heads:
        return WITHOUT
    if len(record.pieces or ()) > max_pieces:
        return f"of more than {max_pieces:,} pieces"
    return ""
