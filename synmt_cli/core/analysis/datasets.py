"""Probing data: read from SentEval's files, or made from trees and balanced."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from pathlib import PurePath
from random import Random
from typing import Literal

from synmt_cli.core.analysis.tasks import MADE, OF_BRACKETS, TASKS, Case, plain
from synmt_cli.core.segments.comments import status_of
from synmt_cli.errors import DataError, UsageError, quoted
from synmt_cli.formats import conllu, penn, senteval
from synmt_cli.formats.conllu import Sentence
from synmt_cli.formats.detect import detect_brackets, detected
from synmt_cli.formats.penn import Constituent
from synmt_cli.formats.record import OK
from synmt_cli.formats.senteval import DEV, SPLITS, TEST, TRAIN, Example
from synmt_cli.io.compression import is_compressed_name
from synmt_cli.io.reading import Source

FEWEST = 10  # examples of a class, of which one is for dev and one for test
OTHER = "other"  # the group of a task that is not among the ten
Kind = Literal["auto", "senteval", "conllu", "penn"]


class TooFew(Exception):
    """A task cannot be made of these sentences; the message says why."""


@dataclass(frozen=True, slots=True)
class Dataset:
    """The examples of one task. Raises ValueError if nothing can be learnt from them."""

    task: str
    examples: list[Example]

    def __post_init__(self) -> None:
        """Checks the splits.

        None may be empty. Training must have two labels or more, the others no further ones.
        """
        for split in SPLITS:
            if not self.of(split):
                raise ValueError(f"no examples of split {split}")
        if len(self.labels) < 2:
            raise ValueError(f"all examples of split {TRAIN} have one label")
        if unknown := {e.label for e in self.examples} - set(self.labels):
            raise ValueError(f"label {quoted(min(unknown))} is not in split {TRAIN}")

    def of(self, split: str) -> list[Example]:
        """The examples of a split."""
        return [example for example in self.examples if example.split == split]

    @property
    def group(self) -> str:
        """The kind of knowledge that the task takes."""
        return TASKS[self.task].group if self.task in TASKS else OTHER

    @property
    def labels(self) -> list[str]:
        """The classes, sorted."""
        return sorted({example.label for example in self.of(TRAIN)})

    @property
    def majority(self) -> float:
        """The accuracy on test, in percent, of the label that is most frequent in training."""
        counts = Counter(example.label for example in self.of(TRAIN))
        best = max(sorted(counts), key=counts.__getitem__)
        test = self.of(TEST)
        return 100 * sum(example.label == best for example in test) / len(test)


@dataclass(slots=True)
class Gathered:
    """Data sets in the order of TASKS.

    unmade: task -> why the trees are not enough for it. sources: task -> where it comes from.
    """

    datasets: list[Dataset] = field(default_factory=list)
    unmade: dict[str, str] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)


def gather(paths: Sequence[str], kind: Kind, wanted: Sequence[str], seed: int) -> Gathered:
    """Reads all inputs. Each of SentEval's files is a task; all trees together make the others.

    wanted: the tasks to make from trees, each of which must succeed; if empty, every other task
    that can be made is. The input is held in memory. Raises DataError, UsageError, ReadError.
    """
    gathered = Gathered()
    sentences: dict[tuple[str, ...], Sentence] = {}
    constituents: dict[tuple[str, ...], Constituent] = {}
    for source_kind, source in detected(paths, kind, detect_brackets):
        if source_kind == "penn":
            for tree in penn.read(source):
                if tree is not None:
                    constituents.setdefault(tuple(tree.words), tree)
        elif source_kind == "conllu":
            _add_trees(sentences, source)
        else:
            _add(gathered, _task_of(source.name), list(senteval.read(source)), source.name)
    _make(gathered, [*sentences.values()], [*constituents.values()], wanted, seed)
    order = {task: number for number, task in enumerate(TASKS)}
    gathered.datasets.sort(key=lambda one: order.get(one.task, len(order)))
    return gathered


def trees(paths: Sequence[str], kind: Kind) -> list[Sentence]:
    """The different sentences of CoNLL-U that have trees. Raises DataError, UsageError, ReadError.

    They are all held in memory.
    """
    sentences: dict[tuple[str, ...], Sentence] = {}
    for source_kind, source in detected(paths, kind):
        if source_kind != "conllu":
            raise UsageError(f"--structural reads CoNLL-U, and {source.name} is not")
        _add_trees(sentences, source)
    return [*sentences.values()]


def _add_trees(sentences: dict[tuple[str, ...], Sentence], source: Source) -> None:
    """Adds the sentences of CoNLL-U that have trees; sentences with the same words count once."""
    for sentence in conllu.read(source):
        if status_of(sentence)[0] == OK:
            sentences.setdefault(tuple(sentence.forms), sentence)


def _task_of(name: str) -> str:
    """The task that the last known part of a name stands for; else the name without its suffixes.

    >>> _task_of("past_present.txt.gz"), _task_of("probe.word-content.txt"), _task_of("probe.a.txt")
    ('tense', 'word-content', 'probe.a')
    """
    known = {one.file: task for task, one in TASKS.items()} | {task: task for task in TASKS}
    path = PurePath(name)
    parts = [part for folder in path.parts for part in folder.split(".")]
    own = path.with_suffix("") if is_compressed_name(name) else path
    return next((known[part] for part in reversed(parts) if part in known), own.stem)


def _add(gathered: Gathered, task: str, examples: list[Example], source: str) -> None:
    if task in gathered.sources:
        others = f"{gathered.sources[task]} and {source}"
        raise UsageError(f"there are two data sets for {task}: {others}")
    gathered.sources[task] = source
    try:
        gathered.datasets.append(Dataset(task, examples))
    except ValueError as problem:
        raise DataError(source, None, str(problem)) from None


def _make(
    gathered: Gathered,
    sentences: Sequence[Sentence],
    constituents: Sequence[Constituent],
    wanted: Sequence[str],
    seed: int,
) -> None:
    unchanged = {plain(sentence) for sentence in sentences}
    for task in wanted or [one for one in TASKS if one not in gathered.sources]:
        random = Random(f"{seed} {task}")
        if task in OF_BRACKETS and constituents:
            cases = OF_BRACKETS[task](constituents)
        elif task in MADE and sentences:
            cases = distinct(MADE[task](sentences, random), unchanged)
        elif wanted:
            needed = "a file of Penn brackets" if task in OF_BRACKETS else "CoNLL-U"
            raise UsageError(f"--task {task} is made of {needed}, which is not in the input")
        else:
            continue
        try:
            examples = balanced(list(cases), random)
        except TooFew as reason:
            if wanted:
                raise UsageError(f"--task {task}: {reason}") from None
            gathered.unmade[task] = str(reason)
        else:
            _add(gathered, task, examples, "<trees>")


def distinct(cases: Iterable[Case], unchanged: Set[str]) -> Iterator[Case]:
    """Leaves out texts that came before, and changed sentences that equal an unchanged one.

    Such a text would have two labels, or be in two splits.
    """
    taken: set[str] = set()
    for case in cases:
        own = plain(case.sentence) if case.sentence is not None else None
        text = own if case.text is None else case.text
        if text is None or text in taken or (text != own and text in unchanged):
            continue
        taken.add(text)
        yield case


def balanced(cases: Sequence[Case], random: Random) -> list[Example]:
    """Examples in classes of equal size: eight tenths for training, one each for dev and test.

    The most frequent classes are taken, as many as keep the most sentences: n classes of which
    the least frequent has c sentences keep n * c. Cases with the same target are in the same split.
    Raises TooFew.
    """
    counts = Counter(case.label for case in cases)
    ranked = sorted(counts, key=lambda label: (-counts[label], label))
    sizes = {n: n * counts[ranked[n - 1]] for n in range(2, len(ranked) + 1)}
    sizes = {n: size for n, size in sizes.items() if size >= n * FEWEST}
    if not sizes:
        shown = ", ".join(f"{label} {counts[label]}" for label in ranked[:3]) or "no example"
        raise TooFew(f"needs two classes of {FEWEST} sentences or more; found {shown}")
    labels = ranked[: max(sizes, key=sizes.__getitem__)]
    n_dev = counts[labels[-1]] // 10
    splits = _parted([case for case in cases if case.label in labels], n_dev, random)
    examples = []
    for split in SPLITS:
        of_label = {label: [c for c in splits[split] if c.label == label] for label in labels}
        n = min(map(len, of_label.values()))
        if not n:
            raise TooFew(f"too few different words for a share of each class in split {split}")
        kept = [case for group in of_label.values() for case in random.sample(group, n)]
        random.shuffle(kept)
        examples += [_example(case, split) for case in kept]
    return examples


def _parted(cases: Iterable[Case], n_dev: int, random: Random) -> dict[str, list[Case]]:
    """Cases by split, all of one target in the same; dev and test get up to n_dev of a class."""
    groups: dict[str, list[Case]] = defaultdict(list)
    for number, case in enumerate(cases):
        groups[case.target or f"\0{number}"].append(case)
    splits: dict[str, list[Case]] = {split: [] for split in SPLITS}
    taken: Counter[tuple[str, str]] = Counter()  # (split, label) -> cases
    targets = sorted(groups)
    random.shuffle(targets)
    for target in targets:
        sizes = Counter(case.label for case in groups[target])
        split = TRAIN
        for held_out in (TEST, DEV):
            if all(taken[held_out, label] + n <= n_dev for label, n in sizes.items()):
                split = held_out
                break
        taken.update({(split, label): n for label, n in sizes.items()})
        splits[split] += groups[target]
    return splits


def _example(case: Case, split: str) -> Example:
    if case.text is not None:
        return Example(split, case.label, case.text)
    assert case.sentence is not None  # there is a text or a tree
    text = case.sentence.comment("text")
    if text is None:
        text = plain(case.sentence)
    return Example(split, case.label, text, case.sentence)
