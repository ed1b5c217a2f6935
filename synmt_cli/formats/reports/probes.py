"""What `synmt analyze probe` reports, as a table, TSV or JSON. Accuracies are percent."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass

import orjson

from synmt_cli.errors import printable
from synmt_cli.formats.reports.scores import columns

TSV_COLUMNS = (
    "group",
    "task",
    "classes",
    "train",
    "dev",
    "test",
    "majority",
    "run",
    "accuracy",
    "dev_accuracy",
    "epochs",
)


@dataclass(frozen=True, slots=True)
class TaskInfo:
    """A data set: its number of classes, its examples, and the majority baseline."""

    task: str
    group: str
    classes: int
    train: int
    dev: int
    test: int
    majority: float


@dataclass(frozen=True, slots=True)
class Result:
    """One run on one task. accuracy: on test; dev_accuracy: of the model that was kept."""

    task: str
    accuracy: float
    dev_accuracy: float
    epochs: int


@dataclass(frozen=True, slots=True)
class RunResults:
    """One run on every task, in the order of the report's tasks."""

    run: str
    results: list[Result]


@dataclass(frozen=True, slots=True)
class ProbeReport:
    """Runs side by side."""

    tasks: list[TaskInfo]
    runs: list[RunResults]
    hidden: int
    dropout: float
    seed: int

    @property
    def groups(self) -> list[str]:
        """The groups of the tasks, in their order."""
        return list(dict.fromkeys(one.group for one in self.tasks))

    def mean(self, run: RunResults, group: str) -> float:
        """The mean accuracy of a run over the tasks of a group."""
        pairs = zip(self.tasks, run.results, strict=True)
        found = [result.accuracy for task, result in pairs if task.group == group]
        return sum(found) / len(found)


def to_json(report: ProbeReport) -> bytes:
    """One JSON object and LF."""
    runs = [
        {
            "run": run.run,
            "results": [asdict(result) for result in run.results],
            "means": {group: report.mean(run, group) for group in report.groups},
        }
        for run in report.runs
    ]
    settings = {"hidden": report.hidden, "dropout": report.dropout, "seed": report.seed}
    tasks = [asdict(task) for task in report.tasks]
    document = {"settings": settings, "tasks": tasks, "runs": runs}
    return orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def to_tsv(report: ProbeReport) -> bytes:
    """A header, then one line for each task and run."""
    rows: list[tuple[str, ...]] = [TSV_COLUMNS]
    for number, task in enumerate(report.tasks):
        sizes = (task.classes, task.train, task.dev, task.test, task.majority)
        for run in report.runs:
            one = run.results[number]
            figures = (one.accuracy, one.dev_accuracy, one.epochs)
            cells = (task.group, task.task, *sizes, run.run, *figures)
            rows.append(tuple(map(str, cells)))
    return b"".join("\t".join(map(printable, row)).encode() + b"\n" for row in rows)


def to_table(report: ProbeReport) -> bytes:
    """For people: a line for each task, the mean of each group below its tasks."""
    rows = [
        ["group", "task", "classes", "train", "test", "majority", *(r.run for r in report.runs)]
    ]
    for group in report.groups:
        for number, task in enumerate(report.tasks):
            if task.group == group:
                sizes = [f"{n:,}" for n in (task.classes, task.train, task.test)]
                figures = [run.results[number].accuracy for run in report.runs]
                shown = [f"{figure:.2f}" for figure in (task.majority, *figures)]
                rows.append([group, task.task, *sizes, *shown])
        means = [f"{report.mean(run, group):.2f}" for run in report.runs]
        rows.append([group, "mean", "", "", "", "", *means])
    return "\n".join([*columns(rows, left=2), "", *_legend(report)]).encode() + b"\n"


def _legend(report: ProbeReport) -> Iterator[str]:
    yield "percent of test sentences; majority: the most frequent class of training"
    yield f"hidden units {report.hidden}, dropout {report.dropout:g}, seed {report.seed}"


FORMATS = {"table": to_table, "tsv": to_tsv, "json": to_json}
