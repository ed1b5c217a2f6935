"""Figures and problems, for `info` and `check`, of JSON documents: reports, and what runs keep.

What a document is follows from its fields.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson

from synmt_cli.core.inspection.counts import Facts
from synmt_cli.core.run.directory import LABELS
from synmt_cli.errors import DataError
from synmt_cli.formats.reports import mixup_scores, tree_comparison, tree_scores, tuning
from synmt_cli.formats.reports.analysis import awsl, heads, probes, structural_probes
from synmt_cli.formats.reports.documents import LIMIT
from synmt_cli.formats.reports.score import files as score_files
from synmt_cli.formats.reports.score import scores as score_reports
from synmt_cli.formats.reports.score import sets as set_scores
from synmt_cli.io import json_files, reading
from synmt_cli.io.reading import Source

METRICS_OF_TREES = ("UAS", "LAS", "CLAS", "MLAS", "BLEX")


def _parsed(data: bytes, name: str) -> Any:
    """The value of a document. Raises DataError with the line of the problem."""
    try:
        value = orjson.loads(data.removeprefix(reading.BOM))
    except orjson.JSONDecodeError as error:
        reading.refuse_not_utf8(data, name)
        raise DataError(name, error.lineno, f"not JSON: {error.msg}") from None
    if problem := json_files.unusual(value, bits=65):
        raise DataError(name, None, problem)
    return value


def figures(source: Source) -> Facts:
    """The figures of a source. Raises DataError, ReadError."""
    value = _parsed(reading.whole(source, LIMIT, "a document"), source.name)
    what, facts = _described(value, source.name)
    if what == TEXTS and Path(source.name).name == LABELS:
        what = "labels of a run"
    return {"content": what, **facts}


def _described(value: Any, name: str) -> tuple[str, Facts]:
    """What a document is, and its figures. Raises DataError where they are not all there."""
    what, describe = _document_kind(value)
    try:
        return what, describe(value)
    except (AttributeError, KeyError, TypeError, ValueError, IndexError):
        raise DataError(name, None, f"damaged: not all of {what}") from None


def check(source: Source) -> None:
    """Raises DataError for a document that is damaged, or that its readers would refuse."""
    data = reading.whole(source, LIMIT, "a document")
    value = _parsed(data, source.name)
    if reader := _READERS.get(_document_kind(value)[0]):
        reader(value, source.name)
    what, _ = _described(value, source.name)
    if what in _SEALED.values():
        json_files.unsealed(value, Path(source.name), what)


TEXTS = "list of texts"
SCORE = "report of synmt score"
HEADS = "report of synmt analyze heads"
AWSL = "report of synmt analyze awsl"
TUNING = "report of synmt tune"
_READERS: dict[str, Callable[[Any, str], object]] = {
    SCORE: score_files.parsed,
    HEADS: heads.parsed,
    AWSL: awsl.parsed,
    TUNING: tuning.parsed,
}
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
        return {name: figures["means"][name] for name in structural_probes.MEASURES}

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


# The first entry whose fields a document has counts: the fields of awsl are among those of heads,
# and the field of mixup is one of three others.
_REPORTS: tuple[tuple[frozenset[str], str, Callable[[Any], Facts]], ...] = (
    (score_reports.KNOWN_BY, SCORE, _of_score),
    (set_scores.KNOWN_BY, "report of synmt score --sign-over", _of_set_scores),
    (tree_comparison.KNOWN_BY, "report of synmt evaltree", _of_parsers),
    (tree_scores.KNOWN_BY, "report of synmt evaltree", _of_trees),
    (probes.KNOWN_BY, "report of synmt analyze probe", _of_probes),
    (
        structural_probes.KNOWN_BY,
        "report of synmt analyze probe --structural",
        _of_structural_probes,
    ),
    (heads.KNOWN_BY, HEADS, _of_heads),
    (awsl.KNOWN_BY, AWSL, _of_awsl),
    (tuning.KNOWN_BY, TUNING, _of_tuning),
    (mixup_scores.KNOWN_BY, "report of synmt mixup score", _of_mixup),
    (frozenset({"started", "versions"}), "environment of a run", _of_environment),
)
