"""CoNLL-U to CoNLL-U with other trees: whole shapes, attachment noise, other labels.

All draws depend on the seed and the number of the sentence alone. Heads and labels are drawn
separately, so that the share of one never changes the draws of the other.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from random import Random
from typing import TYPE_CHECKING

from synmt_cli.core.evaluation.trees.word_alignment import aligned_spans
from synmt_cli.core.jobs.done import Done, do
from synmt_cli.core.jobs.work import Work, lines
from synmt_cli.core.segments.comments import status_of
from synmt_cli.core.trees import perturbation, shapes
from synmt_cli.core.trees.heads import ROOT, is_projective
from synmt_cli.core.trees.relations import RELATIONS, ROOT_LABEL, universal
from synmt_cli.core.trees.shapes import Draw
from synmt_cli.errors import DataError
from synmt_cli.formats import conllu
from synmt_cli.formats.conllu import DEPREL, DEPS, HEAD, Sentence
from synmt_cli.formats.record import OK
from synmt_cli.io import reading

if TYPE_CHECKING:
    from synmt_cli.core.trees.confusions import Confusions

RANDOM, SHUFFLED = "random", "shuffled"
SHAPES: dict[str, Callable[[int], list[int]]] = {
    "left-branching": shapes.left_branching,
    "right-branching": shapes.right_branching,
    "balanced": shapes.balanced,
}
PERTURBED = "synmt_perturbed"


class LabelSampler:
    """Draws labels to replace others. A label that is given twice is drawn twice as often.

    `root`, which the head alone decides, and `_` are left out. Raises ValueError unless there are
    two different relations, subtypes aside: otherwise some label could not be replaced.
    """

    def __init__(self, labels: Iterable[str] = sorted(RELATIONS)) -> None:
        counts = Counter(labels)
        self._counts = {
            label: n
            for label, n in sorted(counts.items())
            if label != "_" and universal(label) != ROOT_LABEL
        }
        if len({universal(label) for label in self._counts}) < 2:
            raise ValueError("fewer than two relations besides root")
        self._others: dict[str, tuple[list[str], list[int]]] = {}

    def other(self, label: str, draw: Draw) -> str:
        """A label of another relation, so that every score of labels counts it as wrong."""
        relation = universal(label)
        if relation not in self._others:
            others = [other for other in self._counts if universal(other) != relation]
            sums = list(accumulate(self._counts[other] for other in others))
            self._others[relation] = others, sums
        others, sums = self._others[relation]
        return others[bisect_right(sums, draw() * sums[-1])]


@dataclass(frozen=True, slots=True)
class Perturber:
    """Changes trees: the whole shape first, then heads, then labels.

    tree: RANDOM, SHUFFLED or a name of SHAPES, which replaces the tree. heads, labels: the chance
    that a word gets another one. projective: keep a projective tree projective, draw random ones
    projective. confusions: draw errors of a parser instead; then each word has a chance of its own.
    """

    tree: str | None = None
    heads: float = 0.0
    labels: float = 0.0
    projective: bool = False
    seed: int = 0
    label_set: LabelSampler = field(default_factory=LabelSampler)
    confusions: Confusions | None = None

    def run(self, work: Work) -> Done:
        """The blocks of some work. Never raises a SynmtError: the result keeps it.

        counts: `sentences`, `words`; `projective` sentences before and `projective_after`;
        `changed` sentences; `heads` and `labels` that differ; `wrong`, words whose head or label
        differs, or both. Blocks with a status other than ok are not counted.
        """
        return do(self._blocks, work)

    def _blocks(self, work: Work, done: Done) -> Iterator[bytes]:
        for number, (sentence,) in lines(work):
            if status_of(sentence)[0] == OK:
                done.counts += self.perturb(sentence, number)
            yield conllu.to_bytes(sentence)

    def perturb(self, sentence: Sentence, number: int) -> Counter[str]:
        """Changes the rows of a sentence. Returns the counts of `run`."""
        heads = [head - 1 for head in sentence.heads]
        labels = sentence.deprels
        new_heads, new_labels = self.other_tree(heads, labels, number, sentence.upos)
        words = list(zip(sentence.words, heads, new_heads, labels, new_labels, strict=True))
        changed = [one for one in words if one[1] != one[2] or one[3] != one[4]]
        for row, _, head, _, label in changed:
            row[HEAD], row[DEPREL], row[DEPS] = str(head + 1), label, "_"
        sentence.heads = [head + 1 for head in new_heads]
        if changed:
            sentence.comments.append(f"# {PERTURBED} = {self}")
        return Counter(
            sentences=1,
            words=len(words),
            changed=int(bool(changed)),
            projective=int(is_projective(heads)),
            projective_after=int(is_projective(new_heads)),
            heads=sum(old != new for _, old, new, _, _ in changed),
            labels=sum(old != new for _, _, _, old, new in changed),
            wrong=len(changed),
        )

    def other_tree(
        self, heads: list[int], labels: list[str], number: int, upos: Sequence[str]
    ) -> tuple[list[int], list[str]]:
        """The heads (0-based) and labels that sentence `number` gets instead.

        upos: the tag of each word, for confusions.
        """
        if self.confusions is not None:
            from synmt_cli.core.trees.confusions import Tree  # NumPy

            tree = Tree(heads, labels, upos)
            draw = self._draw("heads", number)
            heads = self.confusions.other_heads(tree, self.heads, self.projective, draw)
            draw = self._draw("labels", number)
            shares = self.heads, self.labels
            return heads, self.confusions.other_labels(tree, heads, shares, draw)
        draw = self._draw("tree", number)
        if self.tree == SHUFFLED:
            places = shapes.permutation(len(heads), draw)
            heads, labels = shapes.shuffled(heads, places), [labels[place] for place in places]
        elif self.tree is not None:
            heads, labels = _in_shape(heads, labels, self._shape(len(heads), draw))
        if self.heads:
            draw = self._draw("heads", number)
            if self.projective and is_projective(heads):
                other = perturbation.other_projective_heads(heads, self.heads, draw)
            else:
                other = perturbation.other_heads(heads, self.heads, draw)
            heads, labels = _in_shape(heads, labels, other)
        if self.labels:
            draw = self._draw("labels", number)
            labels = [
                self.label_set.other(label, draw)
                if head != ROOT and draw() < self.labels
                else label
                for head, label in zip(heads, labels, strict=True)
            ]
        return heads, labels

    def _shape(self, n: int, draw: Draw) -> list[int]:
        if self.tree == RANDOM:
            make = shapes.random_projective_tree if self.projective else shapes.random_tree
            return make(n, draw)
        assert self.tree is not None
        return SHAPES[self.tree](n)

    def _draw(self, what: str, number: int) -> Draw:
        return Random(f"synmt perturb {self.seed} {what} {number}").random

    def __str__(self) -> str:
        """The options, as the comment synmt_perturbed has them."""
        parts = [f"--tree {self.tree}"] if self.tree else []
        parts += [f"--head-noise {self.heads}"] if self.heads else []
        parts += [f"--label-noise {self.labels}"] if self.labels else []
        parts += ["--confusions"] if self.confusions is not None else []
        parts += ["--projective"] if self.projective else []
        return " ".join([*parts, f"--seed {self.seed}"])


def learn(gold: reading.Source, predicted: reading.Source) -> Confusions:
    """The confusions of a parser. Sentences that it split into other words are left out.

    Raises DataError, also if the texts differ, no word can be compared, or no error is found.
    """
    from synmt_cli.core.trees.confusions import Confusions, Tree

    confusions = Confusions()
    names = gold.name, predicted.name
    for span in aligned_spans(conllu.read(gold), conllu.read(predicted), names):
        if len(span.gold) == len(span.system) == 1:
            right, found = span.gold[0], span.system[0]
            have_trees = all(status_of(one)[0] == OK for one in (right, found))
            if right.forms == found.forms and have_trees:
                tree = Tree([head - 1 for head in right.heads], right.deprels, right.upos)
                confusions.learn(tree, [head - 1 for head in found.heads], found.deprels)
    if not confusions.words:
        raise DataError(predicted.name, None, f"no sentence has the words of {gold.name}")
    if not confusions.wrong_heads and not confusions.wrong_labels:
        raise DataError(predicted.name, None, f"no error against {gold.name} to learn from")
    return confusions


def _in_shape(heads: list[int], labels: list[str], other: list[int]) -> tuple[list[int], list[str]]:
    """Other heads and their labels: each word keeps its own, but the old and the new root swap."""
    old, new = heads.index(ROOT), other.index(ROOT)
    labels = list(labels)
    labels[old], labels[new] = labels[new], labels[old]
    return other, labels
