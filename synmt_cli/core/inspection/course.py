"""The course of a training run: its validations, whether it still improves, how sure `best` is.

One validation is not exact: with the same quality of the model the metric goes up and down from
one to the next. The spread says how much: the standard deviation of one validation around the
straight line through its neighbours, s^2 = mean((v_i - (v_{i-1} + v_{i+1}) / 2)^2) / 1.5, over the
second half of the run, where the curve is nearly straight.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from synmt_cli.io import json_files

LEVELS = "▁▂▃▄▅▆▇█"
WIDTH = 40  # characters of a curve
ENOUGH = 5  # validations, to speak of a spread
WORSE = 1.03  # how far the perplexity has to rise above its lowest, to speak of overfitting
APART = 4 / 3  # ratio of two checkpoints' perplexities from which their mean is doubtful
RECENT = 3  # validations without a better perplexity after which a run no longer improves


@dataclass(frozen=True, slots=True)
class Point:
    """A validation. value: of the metric, larger is better."""

    step: int
    value: float
    perplexity: float


@dataclass(slots=True)
class Course:
    """The course of a training, from the events of metrics.jsonl. best: the last marked so."""

    best: Mapping[str, Any] = field(default_factory=dict)
    points: list[Point] = field(default_factory=list)

    def add(self, event: Mapping[str, Any]) -> None:
        """Takes the next event."""
        if event.get("best"):
            self.best = event
        if (validation := point(event)) is not None:
            self.points.append(validation)

    def facts(self) -> dict[str, Any]:
        """The best validation, and the course of all."""
        names = ("metric", "value", "step", "perplexity")
        return {
            "best": {name: self.best[name] for name in names if name in self.best},
            "course": described(self.points, str(self.best.get("metric", ""))),
        }


def point(event: Mapping[str, Any]) -> Point | None:
    """The validation in a line of metrics.jsonl; None for anything else."""
    values = event.get("value"), event.get("perplexity")
    if event.get("event") != "dev" or not all(map(json_files.is_number, values)):
        return None
    value, perplexity = map(float, values)  # type: ignore[arg-type]
    return Point(event["step"], value, perplexity)


def described(points: Sequence[Point], metric: str) -> dict[str, Any]:
    """Curves, trend and doubts, as facts. points: rising in steps."""
    if len(points) < 2:
        return {}
    values, perplexities = [p.value for p in points], [p.perplexity for p in points]
    facts: dict[str, Any] = {"validations": len(points)}
    if metric != "loss":
        facts[metric] = f"{curve(values)} {values[0]:.2f} to {values[-1]:.2f}"
    facts["perplexity"] = f"{curve(perplexities)} {perplexities[0]:.2f} to {perplexities[-1]:.2f}"
    facts["trend"] = trend(points)
    if metric != "loss" and (doubt := doubt_of_best(points)):
        facts["best"] = doubt
    return facts


def curve(values: Sequence[float]) -> str:
    """A curve of at most WIDTH characters, each the mean of an equal part of the values.

    >>> curve([1, 2, 3, 8])
    '▁▂▃█'
    """
    n = min(len(values), WIDTH)
    edges = [len(values) * i // n for i in range(n + 1)]
    means = [math.fsum(values[a:b]) / (b - a) for a, b in itertools.pairwise(edges)]
    low, high = min(means), max(means)
    scale = (len(LEVELS) - 1) / (high - low) if high > low else 0.0
    return "".join(LEVELS[round((mean - low) * scale)] for mean in means)


def trend(points: Sequence[Point]) -> str:
    """Whether the run improves, has stagnated or overfits, by the perplexity on dev.

    It falls more evenly than BLEU rises, and shows overfitting first.
    """
    lowest, since = _since_lowest(points)
    where = f"perplexity was lowest at step {lowest.step:,}, {lowest.perplexity:.2f}"
    if _is_worse(points[-1], lowest):
        return f"overfits: {where}, and is {points[-1].perplexity:.2f} now"
    if len(since) < RECENT:
        return "still improves: " + where
    return f"has stagnated for {len(since):,} validations: {where}"


def still_improves(perplexities: Sequence[tuple[float, float]]) -> bool:
    """Whether a run still improves. perplexities: (step, perplexity) of its last validations."""
    points = [Point(int(step), 0.0, perplexity) for step, perplexity in perplexities]
    if len(points) < 2:
        return False
    lowest, since = _since_lowest(points)
    return len(since) < RECENT and not _is_worse(points[-1], lowest)


def _is_worse(last: Point, lowest: Point) -> bool:
    return last.perplexity > WORSE * lowest.perplexity


def _since_lowest(points: Sequence[Point]) -> tuple[Point, list[Point]]:
    """The point of the lowest perplexity, and those after it."""
    lowest = min(points, key=lambda p: p.perplexity)
    return lowest, [p for p in points if p.step > lowest.step]


def apart(points: Sequence[Point], first: int, last: int) -> str:
    """Why the mean of checkpoints from step `first` to `last` may be a bad model, or "".

    While a model changes fast, the mean of its checkpoints is a bad model (decision 34). How fast
    it changes is told by its perplexity; a checkpoint between two validations has the perplexity
    whose logarithm is on the straight line between theirs.
    """
    positive = [point for point in points if point.perplexity > 0]
    before, after = (_perplexity(positive, step) for step in (first, last))
    if before is None or after is None or before < APART * after:
        return ""
    return f"perplexity on dev fell from {before:.2f} to {after:.2f} between these checkpoints"


def _perplexity(points: Sequence[Point], step: int) -> float | None:
    """The perplexity at a step: None before the first validation, constant after the last."""
    for a, b in itertools.pairwise(points):
        if a.step <= step < b.step:
            share = (step - a.step) / (b.step - a.step)
            return float(a.perplexity ** (1 - share) * b.perplexity**share)
    return points[-1].perplexity if points and step >= points[-1].step else None


def spread(values: Sequence[float]) -> float:
    """The standard deviation of one validation, as the module says."""
    late = values[len(values) // 2 - 1 :]
    residuals = [b - (a + c) / 2 for a, b, c in zip(late, late[1:], late[2:], strict=False)]
    return math.sqrt(math.fsum(r * r for r in residuals) / len(residuals) / 1.5)


def doubt_of_best(points: Sequence[Point]) -> str:
    """Why the best validation may be luck, "" if nothing says so."""
    if len(points) < ENOUGH:
        return "of few validations"
    best = max(points, key=lambda p: (p.value, -p.perplexity))
    s = spread([p.value for p in points])
    others = [p for p in points if p is not best and best.value - p.value <= 2 * s]
    reasons = []
    if others:
        n = "one other is" if len(others) == 1 else f"{len(others):,} others are"
        reasons.append(f"a validation spreads by {s:.2f}, and {n} within twice that")
    lowest = min(points, key=lambda p: p.perplexity)
    if lowest.perplexity * WORSE < best.perplexity:
        reasons.append(
            f"perplexity is {best.perplexity:.2f} there and {lowest.perplexity:.2f} at step "
            f"{lowest.step:,}"
        )
    if not reasons:
        return ""
    return f"may be luck: {'; '.join(reasons)}. The mean of the last checkpoints is steadier"
