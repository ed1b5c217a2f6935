"""The report of `synmt analyze probe`. Accuracies are percent."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass

from synmt_cli.formats.reports.table import Cell, Notes, Record, Row, Table, Value

KNOWN_BY = frozenset({"settings", "tasks", "runs"})  # fields, for `synmt info`


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
    """The result of one run on one task: means over the seeds of the classifier.

    accuracy: on test. dev_accuracy: on dev, by the model that was kept. sd: the standard deviation
    of the accuracies, None for one seed. standard_error: the error of an accuracy on that many
    test sentences. control: accuracy on the control task, None without one. selectivity: accuracy
    - control (Hewitt and Liang 2019).
    """

    task: str
    accuracy: float
    dev_accuracy: float
    epochs: float
    sd: float | None = None
    standard_error: float | None = None
    control: float | None = None
    selectivity: float | None = None


@dataclass(frozen=True, slots=True)
class ProbedRun:
    """One layer of one run on every task, in the order of the report's tasks.

    layer: from 0, the bottom one; None is the encoder's output.
    """

    run: str
    results: list[ProbeResult]
    layer: int | None = None

    @property
    def name(self) -> str:
        """Its name in tables."""
        return self.run if self.layer is None else f"{self.run} layer {self.layer}"


@dataclass(frozen=True, slots=True)
class ProbeReport:
    """Runs side by side."""

    tasks: list[TaskInfo]
    runs: list[ProbedRun]
    hidden: int
    dropout: float
    seed: int
    seeds: int = 1

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
        """A row for each task, the mean of each group below its tasks, then selectivity."""
        rows: list[Row] = []
        for group in self.groups:
            for number, task in enumerate(self.tasks):
                if task.group == group:
                    sizes = [Cell(n, ",") for n in (task.classes, task.train, task.test)]
                    accuracies = [_accuracy(run.results[number]) for run in self.runs]
                    majority = Cell(task.majority, ".2f")
                    rows.append([group, task.task, *sizes, majority, *accuracies])
            means = [Cell(self.mean(run, group), ".2f") for run in self.runs]
            rows.append([group, "mean", "", "", "", "", *means])
        header = ["group", "task", "classes", "train", "test", "majority"]
        yield Table([*header, *(run.name for run in self.runs)], rows, left=2)
        if any(one.control is not None for run in self.runs for one in run.results):
            yield self._selectivity()
        yield [*self._notes()]

    def _selectivity(self) -> Table:
        rows: list[Row] = []
        for number, task in enumerate(self.tasks):
            figures: list[Cell] = []
            for run in self.runs:
                one = run.results[number]
                figures.append(Cell(one.selectivity, "+.2f", f" ({one.control:.2f})"))
            rows.append([task.group, task.task, *figures])
        header = ["group", "task", *(run.name for run in self.runs)]
        return Table(header, rows, left=2, title="Selectivity (accuracy on the control task)")

    def _notes(self) -> Iterator[str]:
        yield "percent of test sentences; majority: the most frequent class of training"
        errors = [one.standard_error for run in self.runs for one in run.results]
        known = [one for one in errors if one is not None]
        if known:
            yield (
                f"standard error of one accuracy, of the draw of test sentences: "
                f"{min(known):.1f} to {max(known):.1f}"
            )
        seeds = f"seed {self.seed}"
        if self.seeds > 1:
            seeds = f"seeds {self.seed} to {self.seed + self.seeds - 1}: mean ± standard deviation"
        yield f"hidden units {self.hidden}, dropout {self.dropout:g}, {seeds}"
        if any(one.control is not None for run in self.runs for one in run.results):
            yield (
                "selectivity: accuracy - accuracy on a control task, whose labels are drawn for "
                "each first word (Hewitt and Liang 2019)"
            )

    def records(self) -> Iterator[Record]:
        """One for each task and run."""
        for number, task in enumerate(self.tasks):
            for run in self.runs:
                sizes = {"group": task.group, **asdict(task)}  # the group stands first
                layer = "" if run.layer is None else run.layer
                found = {name: "" if n is None else n for name, n in _figures(run.results[number])}
                yield {**sizes, "run": run.run, **found, "layer": layer}

    def document(self) -> dict[str, object]:
        """Settings, tasks, and the results and means of each run."""
        settings = {"hidden": self.hidden, "dropout": self.dropout, "seed": self.seed}
        settings["seeds"] = self.seeds
        runs = []
        for run in self.runs:
            means = {group: self.mean(run, group) for group in self.groups}
            start = {"run": run.run, "layer": run.layer}
            runs.append({**start, "results": run.results, "means": means})
        return {"settings": settings, "tasks": self.tasks, "runs": runs}


def _accuracy(one: ProbeResult) -> Cell:
    return Cell(one.accuracy, ".2f", "" if one.sd is None else f" ± {one.sd:.2f}")


def _figures(one: ProbeResult) -> Iterator[tuple[str, Value]]:
    yield from asdict(one).items()
