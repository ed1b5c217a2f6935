"""The report of `synmt analyze probe --structural`. Shares are percent."""

from collections.abc import Iterator
from dataclasses import dataclass

from synmt_cli.formats.reports.table import Cell, Notes, Record, Row, Table, Value

KNOWN_BY = frozenset({"settings", "sentences", "baseline", "layers"})  # fields, for `synmt info`
MEASURES = {
    "uuas": ("UUAS", ".2f"),
    "distance_spearman": ("Spearman of distances", ".3f"),
    "root": ("root", ".2f"),
    "depth_spearman": ("Spearman of depths", ".3f"),
}
BASELINE = "linear position"


@dataclass(frozen=True, slots=True)
class StructuralFigures:
    """Figures by measure, None where one is not defined: means over seeds, their standard
    deviations, and the standard errors of one seed's figures, from the draw of test sentences.

    epochs: a mean over the probes; None for the baseline.
    """

    means: dict[str, float | None]
    deviations: dict[str, float | None]
    errors: dict[str, float | None]
    epochs: float | None

    def cells(self) -> list[Cell]:
        """A cell for each measure."""
        cells = []
        for name, (_, digits) in MEASURES.items():
            sd = self.deviations[name]
            cells.append(Cell(self.means[name], digits, "" if sd is None else f" ± {sd:{digits}}"))
        return cells

    def record(self) -> Record:
        """Every figure by its name; one that is not defined is empty."""
        values: dict[str, Value] = dict(self.means)
        values |= {f"{name}_sd": sd for name, sd in self.deviations.items()}
        values |= {f"{name}_standard_error": error for name, error in self.errors.items()}
        values["epochs"] = self.epochs
        return {name: "" if value is None else value for name, value in values.items()}


@dataclass(frozen=True, slots=True)
class ProbedLayer:
    """A layer of a run, from 0, the bottom one; None is the encoder's output."""

    run: str
    layer: int | None
    rank: int
    figures: StructuralFigures


@dataclass(frozen=True, slots=True)
class StructuralReport:
    """Layers side by side. sizes: sentences of train, dev and test."""

    sizes: tuple[int, int, int]
    baseline: StructuralFigures
    layers: list[ProbedLayer]
    seed: int
    seeds: int

    def sections(self) -> Iterator[Table | Notes]:
        """The baseline, each layer, then notes that explain the figures."""
        rows: list[Row] = [[BASELINE, "", "", *self.baseline.cells()]]
        for one in self.layers:
            layer = "output" if one.layer is None else one.layer
            rows.append([one.run, Cell(layer), one.rank, *one.figures.cells()])
        header = ["run", "layer", "rank", *(label for label, _ in MEASURES.values())]
        train, dev, test = (f"{n:,}" for n in self.sizes)
        title = f"Structural probes: {train} sentences, {dev} for dev, {test} for test"
        yield Table(header, rows, title=title)
        yield [*self._notes()]

    def _notes(self) -> Iterator[str]:
        yield (
            "UUAS: percent of the tree's edges that the minimum spanning tree of the distances has;"
            " root: percent of sentences whose least deep word is the root; without punctuation"
        )
        yield "Spearman: means of sentences of one length, averaged over lengths of 5 to 50 words"
        yield "a word: the mean of the states of its pieces"
        for name in ("uuas", "root"):
            errors = [one.figures.errors[name] for one in self.layers]
            known = [error for error in errors if error is not None]
            if known:
                label = MEASURES[name][0]
                yield (
                    f"standard error of one {label}, of the draw of test sentences: "
                    f"{min(known):.1f} to {max(known):.1f}"
                )
        seeds = f"seed {self.seed}"
        if self.seeds > 1:
            seeds = f"seeds {self.seed} to {self.seed + self.seeds - 1}: mean ± standard deviation"
        yield seeds

    def records(self) -> Iterator[Record]:
        """One for the baseline and one for each layer."""
        train, dev, test = self.sizes
        sizes: Record = {"train": train, "dev": dev, "test": test}
        yield {"run": BASELINE, "layer": "", "rank": "", **sizes, **self.baseline.record()}
        for one in self.layers:
            layer = "" if one.layer is None else one.layer
            start: Record = {"run": one.run, "layer": layer, "rank": one.rank}
            yield {**start, **sizes, **one.figures.record()}

    def document(self) -> dict[str, object]:
        """Settings, the baseline, and the figures of each layer."""
        train, dev, test = self.sizes
        settings = {"seed": self.seed, "seeds": self.seeds}
        sizes = {"train": train, "dev": dev, "test": test}
        return {
            "settings": settings,
            "sentences": sizes,
            "baseline": self.baseline,
            "layers": self.layers,
        }
