"""Figures and problems, for `info` and `check`, of files other than segments and models.

Lines are read one at a time; a JSON document (json_documents.py) or a configuration as a whole.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from synmt_cli.core.inspection import json_documents
from synmt_cli.core.inspection.counts import Facts
from synmt_cli.core.inspection.course import Course
from synmt_cli.core.inspection.problems import problem_of
from synmt_cli.core.run import config
from synmt_cli.core.run.directory import read_metric
from synmt_cli.core.run.presets import AUTO, PRESETS
from synmt_cli.errors import (
    ConfigError,
    DataError,
    SynmtError,
    UsageError,
    counted,
    quoted,
)
from synmt_cli.formats import attention, segment_scores
from synmt_cli.formats.detect import OBJECT, FileKind, table_of
from synmt_cli.formats.reports.documents import LIMIT
from synmt_cli.io import reading
from synmt_cli.io.reading import Source


def figures(source: Source, kind: FileKind) -> Facts:
    """The figures of a source. Raises DataError, ReadError, ConfigError."""
    return _FIGURES[kind](source)


def problems(source: Source, kind: FileKind) -> Iterator[SynmtError]:
    """Yields each problem of a source: a problem of a line does not end the search.

    Raises DataError where the end of a line cannot be found, ReadError.
    """
    if kind in _LINES:
        is_json = False
        # A last line without its end is no mistake: a training is writing it, or was killed.
        for number, line in enumerate(reading.lines(source, unfinished=kind != "metrics"), 1):
            is_json = bool(OBJECT.match(line)) if number == 1 else is_json
            yield from problem_of(partial(_LINES[kind], line, source.name, number, is_json))
    else:
        yield from problem_of(partial(_WHOLE[kind], source))


def _of_metrics(source: Source) -> Facts:
    """The figures of metrics.jsonl, but for a line that has no end yet."""
    events = Counter[str]()
    last: Facts = {}
    course = Course()
    for number, line in enumerate(reading.lines(source, unfinished=False), 1):
        event = read_metric(line, Path(source.name), number)
        events[str(event.get("event"))] += 1
        course.add(event)
        last = event
    return {
        "reports": events.get("train", 0),
        "validations": events.get("dev", 0),
        "step": last.get("step"),
        "epoch": last.get("epoch"),
        "seconds": last.get("seconds"),
    } | course.facts()


def _of_attention(source: Source) -> Facts:
    statuses, stacks = Counter[str](), Counter[str]()
    maps: set[tuple[int, int]] = set()
    n_tokens = n_keys = 0
    for one in attention.read(source):
        statuses[one.status] += 1
        stacks[one.stack] += 1
        maps |= one.weights.keys()
        n_tokens += len(one.tokens)
        n_keys += len(one.keys)
    return {
        "segments": sum(statuses.values()),
        "statuses": dict(statuses),
        "stacks": dict(stacks),
        "layers": sorted({layer for layer, _ in maps}),
        "heads": sorted({head for _, head in maps}),
        "tokens": n_tokens,
        "keys": n_keys,
    }


def _of_segment_scores(source: Source) -> Facts:
    sums: dict[str, list[float]] = {}
    for one in segment_scores.read(source):
        sums.setdefault(one.system, []).append(one.score)
    return {
        "lines": sum(map(len, sums.values())),
        "systems": {
            name: {"segments": len(v), "mean": sum(v) / len(v)} for name, v in sums.items()
        },
    }


def _metric_line(line: bytes, name: str, number: int, is_json: bool) -> None:
    read_metric(line, Path(name), number)


def _attention_line(line: bytes, name: str, number: int, is_json: bool) -> None:
    attention.from_bytes(line, name, number)


_LINES: dict[str, Callable[[bytes, str, int, bool], object]] = {
    "metrics": _metric_line,
    "attention": _attention_line,
    "segment-scores": segment_scores.from_bytes,
}


def _of_table(source: Source) -> Facts:
    rows = _rows(source)
    header = next(rows, [])
    n = sum(1 for _ in rows)
    command = table_of("\t".join(header).encode() + b"\t")
    return {"command": f"synmt {command}", "rows": n, "columns": header}


def _rows(source: Source) -> Iterator[list[str]]:
    """Yields header and rows. Raises DataError for a row of another number of columns."""
    n_columns = 0
    for number, line in reading.text_lines(source):
        row = line.split("\t")
        n_columns = n_columns or len(row)
        if len(row) != n_columns:
            problem = f"{counted(len(row), 'column')}, and the header has {n_columns}"
            raise DataError(source.name, number, problem)
        yield row


def _of_config(source: Source) -> Facts:
    """The tables of a file of TOML."""
    return dict(config.from_bytes(reading.whole(source, LIMIT, "a document"), source.name).tables)


def _check_config(source: Source) -> None:
    """Raises SynmtError unless a run could be configured by the file."""
    layer = config.from_bytes(reading.whole(source, LIMIT, "a document"), source.name)
    variant, preset = layer.text_of("variant"), layer.text_of("preset") or "base"
    if preset not in (*PRESETS, AUTO):
        layer.refuse("preset", f"no preset {quoted(preset)} (see synmt-config(5))")
    try:
        config.Choice(variant or None, preset, [layer]).provisional()
    except UsageError as error:  # not the command line's fault
        raise ConfigError(f"{source.name}: {error}") from None


_FIGURES: dict[str, Callable[[Source], Facts]] = {
    "metrics": _of_metrics,
    "attention": _of_attention,
    "segment-scores": _of_segment_scores,
    "table": _of_table,
    "json": json_documents.figures,
    "config": _of_config,
}
_WHOLE: dict[str, Callable[[Source], object]] = {
    "table": lambda source: [*_rows(source)],
    "json": json_documents.check,
    "config": _check_config,
}
