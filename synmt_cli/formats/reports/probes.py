"""What `synmt analyze probe` reports. Accuracies are percent."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass

from synmt_cli.formats.reports.table import Cell, Notes, Record, Table


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
class ProbeResult:
    """One run on one task. accuracy: on test; dev_accuracy: of the model that was kept."""

    task: str
    accuracy: float
    dev_accuracy: float
    epochs: int


@dataclass(frozen=True, slots=True)
class ProbedRun:
    """One run on every task, in the order of the report's tasks."""

    run: str
    results: list[ProbeResult]


@dataclass(frozen=True, slots=True)
class ProbeReport:
    """Runs side by side."""

    tasks: list[TaskInfo]
    runs: list[ProbedRun]
    hidden: int
    dropout: float
    seed: int

    @property
    def groups(self) -> list[str]:
        """The groups of the tasks, in their order."""
        return list(dict.fromkeys(one.group for one in self.tasks))

    def mean(self, run: ProbedRun, group: str) -> float:
        """The mean accuracy of a run over the tasks of a group."""
        pairs = zip(self.tasks, run.results, strict=True)
        accuracies = [result.accuracy for task, result in pairs if task.group == group]
        return sum(accuracies) / len(accuracies)

    def sections(self) -> Iterator[Table | Notes]:
        """A row for each task, the mean of each group below its tasks."""
        rows: list[list[str | Cell]] = []
        for group in self.groups:
            for number, task in enumerate(self.tasks):
                if task.group == group:
                    sizes = [Cell(n, ",") for n in (task.classes, task.train, task.test)]
                    accuracies = [run.results[number].accuracy for run in self.runs]
                    shown = [Cell(figure, ".2f") for figure in (task.majority, *accuracies)]
                    rows.append([group, task.task, *sizes, *shown])
            means = [Cell(self.mean(run, group), ".2f") for run in self.runs]
            rows.append([group, "mean", "", "", "", "", *means])
        header = ["group", "task", "classes", "train", "test", "majority"]
        yield Table([*header, *(run.run for run in self.runs)], rows, left=2)
        yield [
            "percent of test sentences; majority: the most frequent class of training",
            f"hidden units {self.hidden}, dropout {self.dropout:g}, seed {self.seed}",
        ]

    def records(self) -> Iterator[Record]:
        """One for each task and run."""
        for number, task in enumerate(self.tasks):
            for run in self.runs:
                sizes = {"group": task.group, **asdict(task)}  # the group stands first
                yield {**sizes, "run": run.run, **asdict(run.results[number])}

    def document(self) -> dict[str, object]:
        """Settings, tasks, and the results and means of each run."""
        settings = {"hidden": self.hidden, "dropout": self.dropout, "seed": self.seed}
        runs = []
        for run in self.runs:
            means = {group: self.mean(run, group) for group in self.groups}
            runs.append({"run": run.run, "results": run.results, "means": means})
        return {"settings": settings, "tasks": self.tasks, "runs": runs}
