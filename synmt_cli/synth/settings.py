"""The options of the grammar, checked."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches

from synmt_cli.errors import UsageError, quoted

# `synmt synth --help` says what each of them is.
PHENOMENA = (
    *("plain", "fronting", "subordinate", "particle", "reflexive", "dative", "object-first"),
    *("object-first-ambiguous", "relative", "stranding", "agreement", "perfect", "modal"),
    *("negation", "adjective"),
)
_ITEM = re.compile(r"([a-z-]+)(?::([0-9]+(?:\.[0-9]+)?))?", re.ASCII)


@dataclass(frozen=True, slots=True)
class SynthSettings:
    """The settings by which sentences are drawn.

    weights: how often a sentence is built around each phenomenon, relative to the others; a
    phenomenon that is missing never occurs. mix: the chance that each of the others joins, 0..1.
    min_depth, max_depth: how deep relative clauses are nested. marked: English opens a sentence
    as German does. particles: the English particle follows the object (split), precedes it
    (joined), depends on the object's weight (weight), or either (mixed). extrapose: German
    puts a relative clause after the verb that would end the clause.
    """

    weights: Mapping[str, float] = field(default_factory=lambda: dict.fromkeys(PHENOMENA, 1.0))
    mix: float = 0.2
    min_depth: int = 0
    max_depth: int = 2
    marked: bool = True
    particles: str = "weight"
    extrapose: bool = False

    def __post_init__(self) -> None:
        """Refuses settings that no sentence can satisfy. Raises UsageError."""
        if not 0 <= self.mix <= 1:
            raise UsageError(f"--mix is {self.mix}, expected 0 to 1")
        if self.min_depth > self.max_depth:
            raise UsageError(f"--min-depth {self.min_depth} is above --depth {self.max_depth}")
        if self.min_depth and "relative" not in self.weights:
            raise UsageError("--min-depth needs relative among --phenomena")
        if not any(weight for _, weight in self.leads()):
            raise UsageError("--phenomena leaves nothing to build on; relative needs a --depth")

    def leads(self) -> list[tuple[str, float]]:
        """The phenomena that sentences can be built around, with their weights."""
        return [
            (name, weight)
            for name, weight in self.weights.items()
            if name != "relative" or self.max_depth
        ]


def phenomena(text: str) -> dict[str, float]:
    """Reads `name[:weight],...`, or `all`; the result is in the order of PHENOMENA.

    Raises UsageError for an unknown name, a weight that is not a number, and no weight above 0.

    >>> phenomena("relative:2,particle")
    {'particle': 1.0, 'relative': 2.0}
    """
    if text == "all":
        return dict.fromkeys(PHENOMENA, 1.0)
    weights: dict[str, float] = {}
    for item in text.split(","):
        match = _ITEM.fullmatch(item)
        name, weight = match.groups() if match else (item, None)
        if name not in PHENOMENA:
            name, _, weight = item.partition(":")
            if name in PHENOMENA:
                problem = f"the weight must be a number such as 0.5, not {quoted(weight)}"
                raise UsageError(f"--phenomena {name}: {problem}")
            near = get_close_matches(name, PHENOMENA, 1)
            hint = f"did you mean {near[0]}?" if near else f"one of {', '.join(PHENOMENA)}"
            raise UsageError(f"--phenomena: unknown {quoted(item)}; {hint}")
        if name in weights:
            raise UsageError(f"--phenomena: {name} is given twice")
        weights[name] = 1.0 if weight is None else float(weight)
    total = sum(weights.values())
    if not total or math.isinf(total):
        raise UsageError("--phenomena: the weights must have a finite sum above 0")
    return {name: weights[name] for name in PHENOMENA if name in weights}
