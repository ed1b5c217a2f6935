"""How much of a tree each attention head finds, as heat maps of layers and heads."""

from collections.abc import Sequence

from synmt_cli.core.pictures.charts import MOST_MAPS, HeatMap
from synmt_cli.errors import UsageError, quoted
from synmt_cli.formats.reports.analysis.heads import HeadsReport, RelationFigures


def maps(report: HeadsReport, relations: Sequence[str], looks: Sequence[str]) -> list[HeatMap]:
    """A map of accuracy for each run, relation and direction, the bottom layer first.

    Raises UsageError for a relation that a run lacks, and for more maps than a picture holds.
    """
    found = []
    for run in report.runs:
        known = {one.relation: one for one in run.relations}
        for relation in relations:
            if relation not in known:
                named = f"--relation {quoted(relation)}"
                raise UsageError(f"{named}: {run.run} has {', '.join(known)}")
            found += [_map(run.run, known[relation], way) for way in looks]
    if len(found) > MOST_MAPS:
        problem = (
            f"{len(found)} maps, and {MOST_MAPS} are the most: choose by --relation and --looks"
        )
        raise UsageError(problem)
    return [one for one in found if one.weights]


def _map(run: str, figures: RelationFigures, way: str) -> HeatMap:
    rows = figures.by_layer(way)
    columns = [f"head {i}" for i in range(max(map(len, rows.values()), default=0))]
    title = f"{run}\n{figures.relation}, {way}"
    names = [f"layer {layer}" for layer in rows]
    return HeatMap(
        title, names, columns, [*rows.values()], what="accuracy (cells: %)", in_percent=True
    )
