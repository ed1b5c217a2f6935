"""Settings and versions of runs, side by side, with those that differ first."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from synmt_cli.core.inspection.course import still_improves
from synmt_cli.core.pictures import curves
from synmt_cli.core.pictures.curves import Curve
from synmt_cli.core.run.directory import Run
from synmt_cli.core.variants.table import VARIANTS
from synmt_cli.errors import counted
from synmt_cli.formats.reports.properties import flat


@dataclass(frozen=True, slots=True)
class RunFacts:
    """A run: its curve, and its settings and versions by dotted name."""

    name: str
    curve: Curve
    settings: dict[str, str]

    @property
    def best(self) -> tuple[str, float, float] | None:
        """(metric, step, value) of the best validation, None before the first."""
        if not self.curve.best:
            return None
        metric, step, value = self.curve.best[-1]
        return "-loss" if metric == "loss" else metric, step, value

    @property
    def variants(self) -> list[str]:
        """The names of the variants that are combined."""
        return self.settings.get("variant", "").split("+")

    @property
    def writes_trees(self) -> bool:
        """Whether the model writes transitions, and thus learns from records with target trees."""
        own = (self.settings.get(f"variants.entries.{x}.transitions") for x in self.variants)
        return "true" in own or any(VARIANTS[x].transitions for x in self.variants if x in VARIANTS)

    @property
    def scheme(self) -> str:
        """The scheme of `synmt multitask` that made the records, or ""."""
        return "".join(VARIANTS[x].data for x in self.variants if x in VARIANTS)


def read(folder: str) -> RunFacts:
    """The facts of a run directory, which may have no curve. Raises SynmtError."""
    run = Run(Path(folder))
    has_curve = os.path.lexists(run.metrics)
    curve = curves.read(folder) if has_curve else Curve(os.path.normpath(folder))
    settings = dict(flat(run.tables(), ", "))
    if os.path.lexists(run.environment):
        this = {k: v for k, v in run.read_environment().items() if k != "earlier"}
        settings |= dict(flat({"environment": this}, ", "))
    return RunFacts(curve.name, curve, settings)


@dataclass(frozen=True, slots=True)
class Row:
    """A setting of all runs, "" where one does not have it."""

    name: str
    values: list[str]
    differs: bool


def table(runs: Sequence[RunFacts]) -> list[Row]:
    """Every setting, with those in which runs differ first."""
    names = dict.fromkeys(name for run in runs for name in run.settings)
    rows = [
        Row(name, values, len(set(values)) > 1)
        for name in names
        if (values := [run.settings.get(name, "") for run in runs])
    ]
    return sorted(rows, key=lambda row: not row.differs)


def doubts(runs: Sequence[RunFacts]) -> list[str]:
    """Why the runs may not be comparable, or were still improving at their end, in words."""
    said = []
    if _differ(runs, "data.dev_sha256"):
        said.append(
            "The runs were validated on different files: their curves are comparable only if these "
            "hold the same pairs."
        )
    if len({run.writes_trees for run in runs}) > 1:
        said.append(
            "The perplexity of models that write trees counts transitions, too: it does not compare"
            " with that of the other models."
        )
    if len({metric for run in runs for metric in run.curve.metrics}) > 1:
        said.append("The runs were validated by different metrics.")
    if _differ(runs, "data.train_sha256"):
        said.append("The runs were trained on different files.")
    improving = [run.name for run in runs if still_improves(run.curve.perplexity)]
    if improving:
        said.append(
            f"{len(improving)} of {counted(len(runs), 'training')} still improved at the end "
            f"({', '.join(improving)}): longer ones may end with other differences."
        )
    return said


def _differ(runs: Sequence[RunFacts], setting: str) -> bool:
    """Whether runs that learn from the same kind of records have different values of a setting."""
    kinds: dict[tuple[bool, str], set[str | None]] = {}
    for run in runs:
        kinds.setdefault((run.writes_trees, run.scheme), set()).add(run.settings.get(setting))
    return any(len(values) > 1 for values in kinds.values())
