"""Figures and problems, for `info` and `check`, of files other than segments and models.

Lines are read one at a time; a JSON document, a table or a configuration as a whole.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import orjson

from synmt_cli.core.inspection.counts import Facts
from synmt_cli.core.inspection.course import Course
from synmt_cli.core.inspection.problems import problem_of
from synmt_cli.core.run import config
from synmt_cli.core.run.directory import LABELS, read_metric
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
from synmt_cli.formats.reports.analysis.structural_probes import MEASURES
from synmt_cli.formats.reports.score import files as score_files
from synmt_cli.io import json_files, reading
from synmt_cli.io.reading import Source

LIMIT = 256 * 2**20  # bytes of a document
METRICS_OF_TREES = ("UAS", "LAS", "CLAS", "MLAS", "BLEX")


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


# --- files of lines ---------------------------------------------------------------------------


def _of_metrics(source: Source) -> Facts:
    """What metrics.jsonl tells of the course of a run, but for a line that has no end yet."""
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


# --- tables -----------------------------------------------------------------------------------


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


# --- JSON documents ---------------------------------------------------------------------------


def _parsed(data: bytes, name: str) -> Any:
    """The value of a document. Raises DataError with the line of the problem."""
    try:
        value = orjson.loads(data.removeprefix(reading.BOM))
    except orjson.JSONDecodeError as error:
        raise DataError(name, error.lineno, f"not JSON: {error.msg}") from None
    if problem := json_files.unusual(value, bits=65):
        raise DataError(name, None, problem)
    return value


def _of_json(source: Source) -> Facts:
    value = _parsed(reading.whole(source, LIMIT, "a document"), source.name)
    what, figures = _described(value, source.name)
    if what == TEXTS and Path(source.name).name == LABELS:
        what = "labels of a run"
    return {"content": what, **figures}


def _described(value: Any, name: str) -> tuple[str, Facts]:
    """What a document is, and its figures. Raises DataError where they are not all there."""
    what, describe = _document_kind(value)
    try:
        return what, describe(value)
    except (AttributeError, KeyError, TypeError, ValueError, IndexError):
        raise DataError(name, None, f"damaged: not all of {what}") from None


def _check_json(source: Source) -> None:
    """Raises DataError for a document that is damaged."""
    data = reading.whole(source, LIMIT, "a document")
    value = _parsed(data, source.name)
    if _document_kind(value)[0] == SCORE:
        score_files.parsed(value, source.name)
    what, _ = _described(value, source.name)
    if what in _SEALED.values():
        json_files.unsealed(value, Path(source.name), what)


TEXTS = "list of texts"
SCORE = "report of synmt score"
_SEALED = {
    "step": "state of a training run",
    "made_of": "index of a cache",
    "checkpoint": "index of an exported model",
}


def _document_kind(value: Any) -> tuple[str, Callable[[Any], Facts]]:
    """What a document is, by its fields, and the function that gives its figures."""
    if isinstance(value, list):
        return _list_kind(value)
    if not isinstance(value, dict):
        return "JSON", lambda value: {}
    if {"format", "sha256", "state"} <= value.keys() and isinstance(value["state"], dict):
        for field, what in _SEALED.items():
            if field in value["state"]:
                return what, _of_sealed
    for fields, what, describe in _REPORTS:
        if fields <= value.keys():
            return what, describe
    return "JSON", lambda value: {"fields": [*value]}


def _list_kind(value: list[Any]) -> tuple[str, Callable[[Any], Facts]]:
    if json_files.is_texts(value):
        return TEXTS, lambda value: {"texts": len(value)}
    keys = value[0].keys() if value and isinstance(value[0], dict) else set()
    for field, what in (("setting", "synmt settings"), ("paper", "synmt variants")):
        if field in keys:
            return f"list of {what}", lambda value: {"items": len(value)}
    return "JSON", lambda value: {"items": len(value)}


def _of_sealed(value: Any) -> Facts:
    state = value["state"]
    if "made_of" in state:
        return {
            "files": [name for name, *_ in state["made_of"]["files"]],
            "vocabulary": state["made_of"]["vocabulary"],
            "columns": state["made_of"]["columns"],
            "bytes": sum(size for _, size, _ in state["seals"].values()),
            "labels": len(state["labels"]),
            "left_out": state["left_out"],
        }
    names = ("step", "epoch", "best_step", "best_value", "finished", "checkpoint", "quantization")
    return {name: state[name] for name in names if state.get(name) is not None}


def _of_score(value: Any) -> Facts:
    return {
        "segments": value["n"],
        "references": value["references"],
        "scores": {
            one["name"]: {name: made["score"] for name, made in one["scores"].items()}
            for one in value["systems"]
        },
        "buckets": len(value.get("buckets", ())),
    }


def _of_set_scores(value: Any) -> Facts:
    return {
        "sets": value["sets"],
        "metrics": value["metrics"],
        "baseline": value["baseline"],
        "p": {one["name"]: one["p"] for one in value["systems"]},
    }


def _tree_scores(scores: Any) -> Facts:
    named = {name.lower(): one for name, one in scores.items()}
    wanted = [name.lower() for name in METRICS_OF_TREES]
    return {name: named[name]["f1"] for name in wanted if name in named}


def _of_trees(value: Any) -> Facts:
    return {"gold": value["gold"], "system": value["system"], **_tree_scores(value["scores"])}


def _of_parsers(value: Any) -> Facts:
    scores = {one["name"]: _tree_scores(one["scores"]) for one in value["systems"]}
    return {"gold": value["gold"], "sentences": value["units"], "systems": scores}


def _of_awsl(value: Any) -> Facts:
    return {
        "runs": {
            one["run"]: {
                "variant": one["variant"],
                "sentences": one["sentences"],
                "awsl": [layer["awsl"] for layer in one["layers"]],
            }
            for one in value["runs"]
        },
        "left_out": value["left_out"],
    }


def _of_heads(value: Any) -> Facts:
    return {
        "runs": {
            one["run"]: {
                "variant": one["variant"],
                "sentences": one["sentences"],
                "accuracy": {
                    figures["relation"]: max(head["accuracy"] for head in figures["heads"])
                    for figures in one["relations"]
                    if figures["heads"]
                },
            }
            for one in value["runs"]
        },
        "left_out": value["left_out"],
    }


def _of_probes(value: Any) -> Facts:
    return {
        "tasks": [one["task"] for one in value["tasks"]],
        "accuracy": {
            one["run"] if one.get("layer") is None else f"{one['run']}, layer {one['layer']}": {
                made["task"]: made["accuracy"] for made in one["results"]
            }
            for one in value["runs"]
        },
        **value["settings"],
    }


def _of_structural_probes(value: Any) -> Facts:
    def means(figures: Any) -> Facts:
        return {name: figures["means"][name] for name in MEASURES}

    return {
        "sentences": value["sentences"],
        "baseline": means(value["baseline"]),
        "runs": {
            one["run"] if one["layer"] is None else f"{one['run']}, layer {one['layer']}": means(
                one["figures"]
            )
            for one in value["layers"]
        },
        **value["settings"],
    }


def _of_mixup(value: Any) -> Facts:
    return {
        "systems": {
            one["name"]: {
                f"{group['construction']}_{group['order']}": group["accuracy"]
                for group in one["groups"]
            }
            for one in value["systems"]
        }
    }


def _of_tuning(value: Any) -> Facts:
    names = ("lenpen", "bleu")
    return {
        "segments": value["segments"],
        "beam": value["beam"],
        **({} if value.get("patience") is None else {"patience": value["patience"]}),
        **({"tokenize": value["tokenize"]} if "tokenize" in value else {}),
        "values": len(value["values"]),
        "best": {name: value["best"][name] for name in names},
    }


def _of_environment(value: Any) -> Facts:
    names = ("started", "python", "versions", "machine", "device", "averaged")
    return {name: value[name] for name in names if name in value}


_REPORTS: tuple[tuple[set[str], str, Callable[[Any], Facts]], ...] = (
    ({"n", "references", "systems"}, SCORE, _of_score),
    ({"sets", "baseline", "systems"}, "report of synmt score --sign-over", _of_set_scores),
    ({"gold", "subtypes", "systems"}, "report of synmt evaltree", _of_parsers),
    ({"gold", "subtypes", "scores"}, "report of synmt evaltree", _of_trees),
    ({"settings", "tasks", "runs"}, "report of synmt analyze probe", _of_probes),
    (
        {"settings", "sentences", "baseline", "layers"},
        "report of synmt analyze probe --structural",
        _of_structural_probes,
    ),
    ({"runs", "subtypes", "left_out"}, "report of synmt analyze heads", _of_heads),
    ({"runs", "left_out"}, "report of synmt analyze awsl", _of_awsl),
    ({"segments", "best", "values"}, "report of synmt tune", _of_tuning),
    ({"systems"}, "report of synmt mixup score", _of_mixup),
    ({"started", "versions"}, "environment of a run", _of_environment),
)


# --- configurations ---------------------------------------------------------------------------


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
    "json": _of_json,
    "config": _of_config,
}
_WHOLE: dict[str, Callable[[Source], object]] = {
    "table": lambda source: [*_rows(source)],
    "json": _check_json,
    "config": _check_config,
}
