"""Ways to divide a test set into buckets of segments, the SPEC of `synmt score --by`.

length[:EDGES]     words between white space
chars[:EDGES]      characters
depth[:EDGES]      the greatest number of arcs from a word up to the root
distance[:EDGES]   the longest arc: words from a dependent to its head
nonprojective      whether an arc spans a word that its head does not dominate
deprel:LABEL       whether a word has this label; LABEL also stands for LABEL:subtype
rare:TRAIN         how many words, by a tokenizer, occur fewer than RARE times in TRAIN
labels:FILE        the labels of a file
"""

import io
import itertools
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from synmt_cli.core.segments import reader
from synmt_cli.core.segments.buckets import Buckets, n_words, parse_edges
from synmt_cli.core.segments.segment import RecordSegment, Segment, TreeSegment
from synmt_cli.core.trees.heads import ROOT, depths, is_projective
from synmt_cli.errors import DataError, UsageError, other_number, quoted
from synmt_cli.formats.detect import COMMENT, OBJECT
from synmt_cli.formats.record import EMPTY, UNPARSED
from synmt_cli.io import reading

RARE = 5  # a word is rare if the training text has it less often
NO_TREE = "no tree"  # the bucket of segments without one
LABELS = 100  # how many different ones a file may have
# Kind -> the edges of its buckets if EDGES are not given.
EDGES = {
    "chars": (20, 40, 60, 80),
    "depth": (3, 5, 7, 9),
    "distance": (5, 10, 20, 40),
    "rare": (1, 2, 3),
}
# Kind -> what follows it in a SPEC.
FORMS = {
    **dict.fromkeys(("length", "chars", "depth", "distance"), "[:EDGES]"),
    "nonprojective": "",
    "deprel": ":LABEL",
    "rare": ":TRAIN",
    "labels": ":FILE",
}
OF_TREES = ("depth", "distance", "nonprojective", "deprel")
_NUMBER = re.compile(r"([0-9]+)")


@dataclass(frozen=True, slots=True)
class Spec:
    """A parsed SPEC. kind: the word before the colon. detail: what follows the colon, or ""."""

    text: str
    kind: str
    detail: str


@dataclass(frozen=True, slots=True)
class Division:
    """Buckets of a test set. by: the SPEC. limits: the least and the greatest number in each.

    bucket_of: the bucket of each segment, (n,).
    """

    by: str
    names: list[str]
    limits: list[tuple[int | None, int | None]]
    bucket_of: npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Tree:
    """The tree of a segment. heads: counted from 0, -1 for the root; empty if there is no tree.

    length: the number of words, which is known without a tree, too.
    """

    heads: Sequence[int]
    deprels: Sequence[str]
    length: int


def parse(text: str) -> Spec:
    """The SPEC, checked. Raises UsageError."""
    kind, colon, detail = text.partition(":")
    form = FORMS.get(kind)
    if form is None or bool(colon) > bool(form and detail) or (form[:1] == ":" and not detail):
        forms = ", ".join(f"{kind}{form}" for kind, form in FORMS.items())
        raise UsageError(f"--by takes {forms}, not {quoted(text)}")
    if form == "[:EDGES]" and detail:
        parse_edges(detail)
    return Spec(text, kind, detail)


def divided(
    spec: Spec,
    n: int,
    lines: Sequence[str] | None,
    trees: Sequence[Tree] | None,
    words: Callable[[str], Sequence[str]] = str.split,
) -> Division:
    """The division of n segments. lines: for length, chars and rare. trees: for the others.

    words: those of a line, for rare. Raises DataError, ReadError for a file that the SPEC names.
    """
    match spec.kind:
        case "length" if lines is None:
            assert trees is not None  # the command asks for one of the two
            return _by_numbers(spec, [tree.length for tree in trees])
        case "length":
            return _by_numbers(spec, [n_words(line) for line in lines or ()])
        case "chars":
            return _by_numbers(spec, [len(line.strip()) for line in lines or ()])
        case "rare":
            return _by_numbers(spec, _rare_words(spec.detail, lines or (), words))
        case "labels":
            return _by_labels(spec, _labels(spec.detail, n))
    assert trees is not None  # the command asks for them
    if spec.kind in EDGES:
        return _by_numbers(spec, [_number(spec.kind, tree) for tree in trees])
    return _by_labels(spec, [_label(spec, tree) for tree in trees], _both(spec))


def _by_numbers(spec: Spec, numbers: Sequence[int | None]) -> Division:
    """Divides segments by a number of each, None for a segment without a tree."""
    edges = parse_edges(spec.detail) if spec.detail and spec.kind != "rare" else None
    buckets = edges or (Buckets(EDGES[spec.kind]) if spec.kind in EDGES else Buckets())
    names, limits = [*buckets.names], [*buckets.limits]
    bucket_of = [len(names) if n is None else buckets.index(n) for n in numbers]
    if len(names) in bucket_of:
        names.append(NO_TREE)
    further: list[tuple[int | None, int | None]] = [(None, None)] * (len(names) - len(limits))
    return Division(spec.text, names, [*limits, *further], np.array(bucket_of))


def _by_labels(spec: Spec, labels: Sequence[str], always: Sequence[str] = ()) -> Division:
    """Divides segments by their labels, in the order in which people count: `9` before `10`.

    always: labels that are shown even if no segment has them.
    """
    names = sorted({*labels, *always}, key=lambda label: (_natural(label), label))
    places = {name: place for place, name in enumerate(names)}
    none: list[tuple[int | None, int | None]] = [(None, None)] * len(names)
    return Division(spec.text, names, none, np.array([places[label] for label in labels]))


def _natural(label: str) -> list[tuple[int, str]]:
    """A sort key: texts and numbers in turn, where a number with more digits is greater."""
    parts = _NUMBER.split(label)
    parts[1::2] = [number.lstrip("0") for number in parts[1::2]]
    return [(len(part) if i % 2 else -1, part) for i, part in enumerate(parts)]


def _number(kind: str, tree: Tree) -> int | None:
    if not tree.heads:
        return None
    if kind == "depth":
        return max(depths(tree.heads))
    arcs = (abs(word - head) for word, head in enumerate(tree.heads) if head != ROOT)
    return max(arcs, default=0)


def _both(spec: Spec) -> tuple[str, str]:
    """The labels of trees that have what a SPEC asks for, and of trees that do not."""
    if spec.kind == "nonprojective":
        return "nonprojective", "projective"
    return f"with {spec.detail}", f"without {spec.detail}"


def _label(spec: Spec, tree: Tree) -> str:
    if not tree.heads:
        return NO_TREE
    if spec.kind == "nonprojective":
        has = not is_projective(tree.heads)
    else:
        label, within = spec.detail, f"{spec.detail}:"
        has = any(one == label or one.startswith(within) for one in tree.deprels)
    return _both(spec)[not has]


def _rare_words(
    train: str, lines: Sequence[str], words: Callable[[str], Sequence[str]]
) -> list[int]:
    """How many words of each line are rare in the training text."""
    tokenized = [words(line) for line in lines]
    needed = {word for line in tokenized for word in line}
    counts: Counter[str] = Counter()
    for segment in reader.read([train]):
        counts.update(word for word in words(segment.text) if word in needed)
    return [sum(counts[word] < RARE for word in line) for line in tokenized]


def read_trees(path: str, n: int) -> list[Tree]:
    """The trees of n segments, from CoNLL-U or records. Raises DataError, ReadError."""
    trees = [_tree(segment) for segment in reader.read([path])]
    _refuse_other_number(path, len(trees), n)
    return trees


def _tree(segment: Segment) -> Tree:
    """The tree of a segment; none where it is empty or where parsing failed."""
    if isinstance(segment, TreeSegment):
        tree = segment.tree
        return Tree(tree.heads or (), tree.deprels or (), segment.length)
    if isinstance(segment, RecordSegment):
        heads = segment.heads
        if heads is None and segment.status not in (EMPTY, *UNPARSED):
            raise DataError(*segment.place, "no tree: the record has no heads")
        return Tree(heads or (), segment.fields.get("deprels") or (), segment.length)
    raise DataError(*segment.place, "expected trees: CoNLL-U or records")


def _labels(path: str, n: int) -> list[str]:
    """The label of each of n segments.

    Text: what stands before the first TAB of a line. JSONL: the field `bucket`. CoNLL-U: the
    comment synmt_bucket. `bucket-by-length --format labelled` and `challenge --format labels`
    write such files.
    """
    with reading.open_source(path) as source:
        data = b"".join(reading.chunks(source))
    # formats/detect.py cannot be used: it takes a line with TABs after `20-29<TAB>` for CoNLL-U.
    head = data.removeprefix(reading.BOM)
    comments = itertools.takewhile(lambda line: line.startswith(b"#"), head.split(b"\n"))
    is_conllu = any(map(COMMENT.match, comments))
    kind = "jsonl" if OBJECT.match(head) else "conllu" if is_conllu else "text"
    labels: list[str] = []
    seen: set[str] = set()
    for segment in reader.READERS[kind](reading.Source(source.name, io.BytesIO(data))):
        labels.append(_label_of(segment))
        seen.add(labels[-1])
        if len(seen) > LABELS:
            raise DataError(*segment.place, f"more than {LABELS} different labels")
    _refuse_other_number(path, len(labels), n)
    return labels


def _label_of(segment: Segment) -> str:
    if isinstance(segment, TreeSegment):
        label = segment.sentences[0].comment("synmt_bucket")
    elif isinstance(segment, RecordSegment):
        label = segment.fields.get("bucket")
    else:
        label = segment.text.partition("\t")[0]
    if not isinstance(label, str) or not label.strip():
        raise DataError(*segment.place, "no label")
    return label


def _refuse_other_number(path: str, found: int, n: int) -> None:
    if found != n:
        raise other_number(reading.source_name(path), found, "segment", "the test set", n)
