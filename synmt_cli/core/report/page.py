"""The page itself: a template that escapes everything, filled with tables, figures and segments.

Jinja2 is an optional extra, imported only here.
"""

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from synmt_cli import __version__
from synmt_cli.core.pictures import figures, score_charts, tuning
from synmt_cli.core.pictures.charts import Chart, HeatMap
from synmt_cli.core.pictures.curves import charts as curve_charts
from synmt_cli.core.pictures.sentences import Picture, clean
from synmt_cli.core.pictures.trees import page as tree_page
from synmt_cli.core.report import runs as run_tables
from synmt_cli.core.report import segments as segments_of
from synmt_cli.core.report import trees as trees_of
from synmt_cli.core.report.runs import RunFacts
from synmt_cli.core.report.segments import Shown, Texts
from synmt_cli.errors import UsageError, require_packages
from synmt_cli.formats.reports.score.scores import ScoredBucket, ScoreReport
from synmt_cli.formats.reports.score.systems import MetricInfo, shown_p
from synmt_cli.formats.reports.tuning import TuningReport

LIMIT = 4_900_000  # bytes of a page
POINTS, FEWEST = 40_000, 40  # of all curves together; of one, if there are very many
MOST_POINTS = 400  # of a curve: more than a figure's width shows
FOR_TREES = 300_000  # bytes of a page, the least that is kept for trees
Render = Callable[..., str]  # makes the HTML of a segment and its trees


class AttentionMaps(NamedTuple):
    """Heat maps of a segment. n_left_out: how many of the segment's maps are left out."""

    id: str
    maps: Sequence[HeatMap]
    n_left_out: int

    @property
    def has_edges(self) -> bool:
        """Whether the edges of a tree are outlined."""
        return any(one.outlined for one in self.maps)


@dataclass(frozen=True, slots=True)
class Content:
    """The parts of the page; any of them may be missing.

    missing: parts that were looked for in vain, in words. commands: those that make a part again,
    by its name. first_seeds: whether texts are those of the first of several seeds.
    """

    title: str
    runs: Sequence[RunFacts] = ()
    score: ScoreReport | None = None
    texts: Texts | None = None
    trees: Sequence[Sequence[Picture]] = ()
    written: Sequence[Sequence[Picture]] = ()
    awsl: Chart | None = None
    attention: Sequence[AttentionMaps] = ()
    tuned: Mapping[str, TuningReport] = field(default_factory=dict)
    missing: Sequence[str] = ()
    commands: Mapping[str, Sequence[Sequence[str]]] = field(default_factory=dict)
    first_seeds: bool = False

    def doubts(self) -> list[str]:
        """Why the scores may not be the last word, in words."""
        of_tuning = [
            f"Length penalty of {name}: {doubt}."
            for name, report in self.tuned.items()
            for doubt in report.doubts
        ]
        return [*run_tables.doubts(self.runs), *of_tuning]


def require() -> None:
    """Raises Unavailable unless the packages of the extra are there."""
    require_packages("the page", "report", "jinja2", "matplotlib")


def page(content: Content) -> str:
    """The page, below LIMIT bytes: trees are drawn as long as there is room.

    Raises UsageError if the page is too large even without segments.
    """
    import jinja2
    from markupsafe import Markup

    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["clean"] = clean
    template = environment.from_string(_asset("report.html"))
    values: dict[str, Any] = {
        "title": content.title,
        "version": __version__,
        "policy": tree_page.POLICY,
        "style": Markup(tree_page.asset("page.css") + _asset("report.css")),
        "script": Markup(_asset("report.js")),
        "missing": content.missing,
        "commands": {
            part: [shlex.join(clean(word) for word in command) for command in commands]
            for part, commands in content.commands.items()
        },
        "scores": _scores(content.score) if content.score else None,
        "figures": {name: Markup(svg) for name, svg in _figures(content).items()},
        "attention": [
            (one, Markup(figures.for_page(one.maps, f"attention of segment {one.id}")))
            for one in content.attention
        ],
        "tuned": content.tuned,
        "runs": content.runs,
        "settings": run_tables.table(content.runs),
        "verdicts": content.score.verdicts if content.score else [],
        "doubts": content.doubts(),
        "segments": [],
        "n_segments": content.texts.n if content.texts else 0,
        "names": list(content.texts.outputs) if content.texts else [],
        "n_references": len(content.texts.references) if content.texts else 0,
        "first_seeds": content.first_seeds,
        "n_drawn": 0,
    }
    text = template.render(values)
    if (size := len(text.encode())) > LIMIT:
        problem = f"figures and tables have {size:,} bytes, and a page at most {LIMIT:,}"
        raise UsageError(f"{problem}: name fewer runs, or scores of fewer systems and buckets")
    if not content.texts or not content.texts.n:
        return text
    one = environment.from_string(_asset("segment.html"))
    room = LIMIT - size
    values["segments"], values["n_drawn"] = _segments(content, one.render, room)
    return template.render(values)


def _asset(name: str) -> str:
    return (Path(__file__).parent / name).read_bytes().decode()


def _figures(content: Content) -> dict[str, str]:
    """The SVG of each figure by its name."""
    found = {}
    if content.score:
        metrics = content.score.metrics
        whole = [one for metric in metrics for one in score_charts.whole(content.score, metric)]
        width = 8.5 if len(whole) > 1 else 5
        found["scores"] = figures.for_page(whole, "scores of systems and their differences", width)
        for metric in metrics:
            for by in content.score.divisions:
                charts = score_charts.charts(content.score, metric.name, by)
                found[f"{by} {metric.name}"] = figures.for_page(charts, f"{metric.label} by {by}")
    curves = curve_charts([run.curve for run in content.runs]) if content.runs else []
    if curves:
        n_lines = sum(len(chart.series) for chart in curves)
        most = min(MOST_POINTS, max(POINTS // n_lines, FEWEST))
        thin = [chart.thinned(most) for chart in curves]
        found["curves"] = figures.for_page(thin, "training curves of all runs")
    if content.awsl and content.awsl.series:
        title = "weight of syntax by layer"
        found["awsl"] = figures.for_page([content.awsl], title, width=5)
    if content.tuned:
        charts = [tuning.chart(content.tuned)]
        found["tuned"] = figures.for_page(charts, "BLEU on dev by length penalty", width=5)
    return found


def _scores(report: ScoreReport) -> dict[str, Any]:
    """The tables of a report, as texts."""
    return {
        "report": report,
        "rows": [
            (system.name, [_score(report, metric, i) for metric in report.metrics])
            for i, system in enumerate(report.systems)
        ],
        "buckets": {
            (by, metric.name): [
                (
                    bucket.name,
                    bucket.n,
                    [_in_bucket(metric, bucket, i) for i in range(len(report.systems))],
                )
                for bucket in report.buckets_of(by)
            ]
            for by in report.divisions
            for metric in report.metrics
        },
    }


def _score(report: ScoreReport, metric: MetricInfo, i: int) -> dict[str, Any]:
    """A cell: the score with its spread and interval, and the comparison with the first system."""
    system = report.systems[i]
    scores = [one.scores[metric.name] for one in report.systems]
    best = max(scores) if metric.higher_is_better else min(scores)
    deviation, interval = system.deviation(metric.name), system.intervals.get(metric.name)
    paired = system.paired.get(metric.name)
    cell: dict[str, Any] = {
        "value": scores[i],
        "text": metric.cell(scores[i]).text,
        "best": len(scores) > 1 and scores[i] == best,
        "sd": "" if deviation is None else metric.cell(deviation).text,
        "interval": metric.interval(interval) if interval else "",
        "comparison": "",
        "mark": paired.mark() if paired else "",
    }
    if paired:
        p = shown_p(paired.decisive).text
        name = "p (Holm)" if paired.corrected is not None else "p"
        equals = "" if p.startswith("<") else "= "
        change = f"{metric.difference(paired.delta)} {metric.interval(paired.ci95, '+')}"
        cell["comparison"] = f"{change}, {name} {equals}{p}"
    return cell


def _in_bucket(metric: MetricInfo, bucket: ScoredBucket, i: int) -> str:
    score, delta = bucket.scores[i][metric.name], bucket.delta(i, metric.name)
    if score is None:
        return "-"
    text = str(metric.cell(score).text)
    if not i or delta is None:
        return text
    paired = bucket.comparison(i, metric.name)
    interval = f" {metric.interval(paired.ci95, '+')}{paired.mark()}" if paired else ""
    return f"{text} ({metric.difference(delta)}{interval})"


def _segments(content: Content, render: Render, room: int) -> tuple[list[str], int]:
    """The segments that there is room for, and how many of them, from the first on, have trees.

    Segments in which systems differ most come first.
    """
    assert content.texts is not None  # the caller has checked it
    for_trees = FOR_TREES if content.trees or content.written else 0
    room -= for_trees
    fitting: list[tuple[Shown, str]] = []
    for one in segments_of.shown(content.texts):
        text = render(one=one, trees=())
        size = len(text.encode())
        if size > room and fitting:
            break
        room -= size
        fitting.append((one, text))
    fitting.sort(key=lambda pair: (-pair[0].difference, pair[0].number))
    shown, texts = [one for one, _ in fitting], [text for _, text in fitting]
    room += for_trees
    n_drawn = 0
    for one in shown:
        if not (trees := _trees(content, one.number)):
            break
        text = render(one=one, trees=trees)
        room -= len(text.encode()) - len(texts[n_drawn].encode())
        if room < 0:
            break
        texts[n_drawn] = text
        n_drawn += 1
    return texts, n_drawn


def _trees(content: Content, number: int) -> list[tuple[str, str]]:
    """The drawings of a segment, each with its name, as far as there are trees for it."""
    sides = (
        ("s", "tree of the source", content.trees),
        ("t", "tree that the decoder wrote", content.written),
    )
    return [
        (name, trees_of.drawing([*trees[number - 1]], f"{number}{side}"))
        for side, name, trees in sides
        if number <= len(trees)
    ]
