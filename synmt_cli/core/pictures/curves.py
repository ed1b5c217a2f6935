"""Training curves of runs, from the validations and reports in metrics.jsonl."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from synmt_cli.core.pictures.charts import Chart, Series, group_of
from synmt_cli.core.run.directory import Run, read_metric
from synmt_cli.errors import DataError, ReadError
from synmt_cli.io import json_files

LABELS = {"bleu": "BLEU on dev", "accuracy": "accuracy on dev (%)", "loss": "-loss on dev"}
LARGEST = 1e305  # value that a chart can hold; perplexities are at most exp(700)
WHAT = ("metric", "perplexity", "training")


@dataclass(frozen=True, slots=True)
class Curve:
    """The curve of a run. metrics: (step, value) of validations by metric; larger is better.

    best: (metric, step, value) of validations that were better than all before them. settings:
    those that runs have in common if they are seeds of one system.
    """

    name: str
    metrics: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    perplexity: list[tuple[float, float]] = field(default_factory=list)
    training: list[tuple[float, float]] = field(default_factory=list)
    best: list[tuple[str, float, float]] = field(default_factory=list)
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to draw, as for a run that has just begun, or for a mean."""
        return not self.metrics and not self.training

    def points(self, what: str) -> list[tuple[float, float]]:
        """The (step, value) points of perplexity, training (nats per token), or a named metric."""
        if what in ("perplexity", "training"):
            return self.perplexity if what == "perplexity" else self.training
        return self.metrics.get(what, [])


def read(folder: str) -> Curve:
    """The curve of a run directory. Raises ReadError, DataError, ConfigError."""
    run = Run(Path(folder))
    settings = run.settings()  # says what is wrong with a folder that is not a run
    curve = Curve(os.path.normpath(folder), settings=_without_seed(settings.tables))
    if not os.path.lexists(run.metrics):
        why = "it is a mean of checkpoints" if run.averaged else "nothing was trained there yet"
        raise ReadError(f"{folder} has no metrics.jsonl: {why}")
    for number, line in run.metric_lines():
        event = read_metric(line, run.metrics, number)
        step = float(event["step"])
        if event.get("event") == "dev":
            metric = event.get("metric")
            if not isinstance(metric, str):
                raise DataError(str(run.metrics), number, "field metric is missing or not a string")
            value = _number(event, "value", run, number)
            curve.metrics.setdefault(metric, []).append((step, value))
            curve.perplexity.append((step, _number(event, "perplexity", run, number)))
            if event.get("best"):
                curve.best.append((metric, step, value))
        elif json_files.is_number(event.get("nll")):
            curve.training.append((step, _number(event, "nll", run, number)))
    return curve


def _without_seed(tables: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a run without its seed and the names of its files, whose digests remain.

    The pretrained model is left out, too, since seeds may begin with different ones.
    """
    begun = ("run", "checkpoint", "sha256")
    left_out = {"training": ("seed",), "data": ("train", "dev"), "pretrained": begun}
    return {
        name: {key: one for key, one in value.items() if key not in left_out.get(name, ())}
        if isinstance(value, Mapping)
        else value
        for name, value in tables.items()
    }


def _groups(curves: Sequence[Curve]) -> list[str]:
    """The group of each curve: seeds of one system share one."""
    groups = [group_of(curve.name) for curve in curves]
    first: dict[str, Mapping[str, Any]] = {}
    mixed = {
        group
        for group, curve in zip(groups, curves, strict=True)
        if first.setdefault(group, curve.settings) != curve.settings
    }
    pairs = zip(groups, curves, strict=True)
    return [curve.name if group in mixed else group for group, curve in pairs]


def _number(event: dict[str, Any], name: str, run: Run, line: int) -> float:
    value = event.get(name)
    if not json_files.is_number(value):
        raise DataError(str(run.metrics), line, f"field {name} is missing or not a number")
    if not abs(value) <= LARGEST:  # type: ignore[arg-type]
        raise DataError(str(run.metrics), line, f"field {name} is not within {LARGEST:g}")
    return float(value)  # type: ignore[arg-type]


def charts(curves: Sequence[Curve], wanted: Sequence[str] = WHAT[:2]) -> list[Chart]:
    """A chart for each metric on dev, for perplexity on dev, and for the training loss."""
    metrics = dict.fromkeys(metric for curve in curves for metric in curve.metrics)
    panels = []
    for what in wanted:
        for each in metrics if what == "metric" else [what]:
            label = LABELS.get(each, each)
            if each == "training":
                label = "training, nats per token"
            elif each == "perplexity":
                label = "perplexity on dev"
            panels.append((label, each))
    made, groups = [], _groups(curves)
    for label, each in dict.fromkeys(panels):
        series = [
            Series(
                curve.name,
                [step for step, _ in points],
                [value for _, value in points],
                group=group,
            )
            for curve, group in zip(curves, groups, strict=True)
            if (points := curve.points(each))
        ]
        if series:
            made.append(Chart("updates", label, series))
    return made
