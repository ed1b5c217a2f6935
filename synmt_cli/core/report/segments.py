"""The segments of a comparison: which to show, and which words of the outputs differ."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher

from synmt_cli.core.evaluation.metrics import registry
from synmt_cli.core.pictures.sentences import clean
from synmt_cli.errors import other_number
from synmt_cli.io import reading

MOST = 3000  # on a page
LONGEST = 4000  # characters of a text; more is cut
COMPARED = 400  # words of an output that are compared; marks stop there
SEED = 1  # of the segments that are drawn at random
# A stretch of text, and whether it differs. One that differs and is empty stands where words are
# missing.
Mark = tuple[str, bool]


@dataclass(frozen=True, slots=True)
class Texts:
    """A test set: source and references may be missing. outputs: by the name of the system."""

    outputs: dict[str, list[str]]
    source: list[str] | None = None
    references: list[list[str]] = field(default_factory=list)

    @property
    def n(self) -> int:
        """The number of segments."""
        return len(next(iter(self.outputs.values()), ()))


@dataclass(frozen=True, slots=True)
class Shown:
    """A segment on the page. number: from 1. reference: the first one.

    outputs: each system's name, its text with marks, and its chrF, None without a reference.
    difference: the greatest between two systems.
    """

    number: int
    source: str
    reference: str
    outputs: list[tuple[str, list[Mark], float | None]]
    difference: float
    length: int


def refuse_other_lengths(columns: dict[str, list[str]], n: int, other: str) -> None:
    """Raises DataError for a file that does not have n lines. other: what has n."""
    for name, lines in columns.items():
        if len(lines) != n:
            raise other_number(reading.source_name(name), len(lines), "line", other, n)


def scores(texts: Texts) -> list[list[float]]:
    """The chrF of each segment by each system; nothing without a reference."""
    if not texts.references or not texts.n:
        return []
    (metric,) = registry.build(["chrf"], texts.references)
    columns = [
        metric.sentences(metric.statistics(lines)).tolist() for lines in texts.outputs.values()
    ]
    return [list(row) for row in zip(*columns, strict=True)]


def differences(texts: Texts, scored: list[list[float]]) -> list[float]:
    """How much systems differ in each segment: in chrF, else in the share of unequal outputs."""
    if scored:
        return [max(row) - min(row) for row in scored]
    rows = zip(*texts.outputs.values(), strict=True)
    return [100 * (len(set(row)) - 1) / max(len(row) - 1, 1) for row in rows]


def chosen(differing: Sequence[float], most: int = MOST) -> list[int]:
    """The indices of the segments to show, at most `most`.

    Two segments where systems differ most take turns with one drawn at random from the rest, so
    that any first part of them has two thirds of one kind and a third of the other.
    """
    order = sorted(range(len(differing)), key=lambda i: (-differing[i], i))
    by_difference, drawn = iter(order), iter(random.Random(SEED).sample(order, len(order)))
    taken: dict[int, None] = {}
    for turn in range(min(most, len(order))):
        source = drawn if turn % 3 == 2 else by_difference
        taken[next(i for i in source if i not in taken)] = None
    return list(taken)


def shown(texts: Texts, most: int = MOST) -> Iterator[Shown]:
    """Yields the segments of the page in the order of `chosen`, so that a full page can stop."""
    scored = scores(texts)
    differing = differences(texts, scored)
    for i in chosen(differing, most):
        texts_of = [lines[i] for lines in texts.outputs.values()]
        first = _words(texts_of[0])
        outputs = []
        for at, (name, text) in enumerate(zip(texts.outputs, texts_of, strict=True)):
            marks = marked(first, _words(text)) if at else [(_cut(text), False)]
            outputs.append((name, marks, scored[i][at] if scored else None))
        source = _cut(texts.source[i]) if texts.source else ""
        reference = _cut(texts.references[0][i]) if texts.references else ""
        length = len(source.split()) if texts.source else len(first)
        yield Shown(i + 1, source, reference, outputs, differing[i], length)


def _words(text: str) -> list[str]:
    return _cut(text).split()


def _cut(text: str) -> str:
    shown = clean(text[:LONGEST])
    return shown if len(text) <= LONGEST and len(shown) <= LONGEST else shown[:LONGEST] + "…"


def marked(first: Sequence[str], other: Sequence[str]) -> list[Mark]:
    """The words of `other`, in stretches that the first output also has, and others that it lacks.

    >>> marked("a dog sees".split(), "a cat sees".split())
    [('a', False), ('cat', True), ('sees', False)]
    >>> marked("a dog sees".split(), "a sees".split())
    [('a', False), ('', True), ('sees', False)]
    """
    if first == other:
        return [(" ".join(other), False)] if other else []
    head, rest = other[:COMPARED], other[COMPARED:]
    same = SequenceMatcher(None, first[:COMPARED], head, autojunk=False).get_matching_blocks()
    marks: list[Mark] = []
    at = at_first = 0
    for block in same:
        is_missing = block.a > at_first and (block.size or not rest)  # cut words are not
        if block.b > at or is_missing:
            marks.append((" ".join(head[at : block.b]), True))
        if block.size:
            marks.append((" ".join(head[block.b : block.b + block.size]), False))
        at, at_first = block.b + block.size, block.a + block.size
    return [*marks, (" ".join(rest), False)] if rest else marks
