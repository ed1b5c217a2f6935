"""The figures of a stream, counted as it passes. Memory: one segment, and all names."""

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

from synmt_cli.core.segments import comments
from synmt_cli.core.text.vocabulary import SPACE
from synmt_cli.core.trees.heads import ROOT, depths, is_projective
from synmt_cli.formats import conllu, record
from synmt_cli.formats.detect import TreeKind
from synmt_cli.formats.record import FIELDS, Record
from synmt_cli.formats.transitions import GLUE, arc, length_in_pieces
from synmt_cli.io import reading

Facts = dict[str, Any]  # name -> figure, text, list, or {name: figure}


def of_stream(source: reading.Source, kind: TreeKind) -> Facts:
    """The figures of a source. Raises DataError, ReadError."""
    return _COUNTERS[kind](source)


class _Longest:
    """The length of the longest segment, and its line: that of the first among equals."""

    def __init__(self) -> None:
        self.length = self.line = 0

    def add(self, length: int, line: int) -> None:
        if length > self.length:
            self.length, self.line = length, line

    def facts(self) -> Facts:
        """The length and the line; {} if all segments are empty."""
        return {"longest": self.length, "longest_line": self.line} if self.line else {}


def _of_text(source: reading.Source) -> Facts:
    n = n_empty = n_words = n_characters = 0
    longest = _Longest()
    for number, line in reading.text_lines(source):
        words = len(line.split())
        n += 1
        n_empty += not line.strip()
        n_words += words
        n_characters += len(line)
        longest.add(words, number)
    figures = {"lines": n, "empty": n_empty, "words": n_words, "characters": n_characters}
    return figures | longest.facts()


def _percentage(part: int, whole: int) -> float:
    return round(100 * part / whole, 2)


class _Measure:
    """Mean and greatest of some numbers."""

    def __init__(self) -> None:
        self.n = self.sum = self.greatest = 0

    def add(self, numbers: list[int]) -> None:
        self.n += len(numbers)
        self.sum += sum(numbers)
        self.greatest = max(self.greatest, *numbers, 0)

    def facts(self) -> Facts:
        """The mean and the greatest; {} if there were no numbers."""
        return {"mean": round(self.sum / self.n, 2), "max": self.greatest} if self.n else {}


class _Trees:
    """Sums over trees."""

    def __init__(self) -> None:
        self.n = self.n_words = self.n_nonprojective = self.n_before_head = 0
        self.depth, self.distance = _Measure(), _Measure()
        self.deprels: set[str] = set()
        self.upos: set[str] = set()

    def add(self, heads: list[int], deprels: list[str], upos: list[str]) -> None:
        """Counts one tree. heads: 0-based, -1 for a root."""
        self.n += 1
        self.n_words += len(heads)
        self.n_nonprojective += not is_projective(heads)
        self.depth.add([max(depths(heads))])
        offsets = [head - word for word, head in enumerate(heads) if head != ROOT]
        self.distance.add([abs(offset) for offset in offsets])
        self.n_before_head += sum(offset > 0 for offset in offsets)
        self.deprels.update(deprels)
        self.upos.update(upos)

    def facts(self) -> Facts:
        """The figures. Shares are percentages, nonprojective_share of trees, others of arcs."""
        figures: Facts = {"words": self.n_words, "nonprojective": self.n_nonprojective}
        if self.n:
            figures["nonprojective_share"] = _percentage(self.n_nonprojective, self.n)
            figures["depth"] = self.depth.facts()
        if self.distance.n:
            figures["distance"] = self.distance.facts()
            figures["before_head_share"] = _percentage(self.n_before_head, self.distance.n)
        return figures | {"deprels": len(self.deprels), "upos": len(self.upos)}


def _of_conllu(source: reading.Source) -> Facts:
    trees, longest, statuses = _Trees(), _Longest(), Counter[str]()
    n = n_segments = n_ranged = n_ranges = n_empty = 0
    for sentences in comments.lines(conllu.read(source)):
        n += len(sentences)
        n_segments += 1
        statuses[comments.status_of_line(sentences)[0]] += 1
        for one in sentences:
            if not comments.is_placeholder(one):
                trees.add([head - 1 for head in one.heads], one.deprels, one.upos)
                longest.add(len(one.words), one.line)
                ranges = one.ranges
                n_ranges += len(ranges)
                n_ranged += sum(last - first + 1 for first, last, _ in ranges)
                n_empty += len(one.rows) - len(one.words) - len(ranges)
    return {
        "sentences": n,
        "segments": n_segments,
        "statuses": dict(statuses),
        "trees": trees.n,
        "tokens": trees.n_words - n_ranged + n_ranges,
        "multiword_tokens": n_ranges,
        "empty_nodes": n_empty,
        **trees.facts(),
        **longest.facts(),
    }


def _of_records(source: reading.Source) -> Facts:
    trees, longest, statuses = _Trees(), _Longest(), Counter[str]()
    fields, vocabularies = Counter[str](), Counter[str]()
    n = n_trees = n_pieces = n_target_pieces = n_targets = 0
    for n, one in enumerate(record.read(source), 1):
        statuses[one.status] += 1
        fields.update(_fields(one))
        n_pieces += len(one.pieces or ())
        n_target_pieces += len(one.tgt_pieces or ()) or length_in_pieces(one.transitions or ())
        n_targets += one.tgt is not None or one.transitions is not None
        if one.vocab is not None:
            vocabularies[one.vocab] += 1
        n_trees += bool(one.words)
        for tree in _sentences(one):
            trees.add(*tree)
        longest.add(len(one.pieces or one.words or ()), n)
    return {
        "records": n,
        "statuses": dict(statuses),
        "trees": n_trees,
        "sentences": trees.n,
        **trees.facts(),
        "pieces": n_pieces,
        "targets": n_targets,
        "target_pieces": n_target_pieces,
        **longest.facts(),
        "vocab": dict(vocabularies),
        "fields": dict(fields),
    }


def _sentences(one: Record) -> Iterator[tuple[list[int], list[str], list[str]]]:
    """Heads, labels and tags of each sentence of a record's tree, as CoNLL-U has them."""
    heads, deprels, upos = one.heads or [], one.deprels or [], one.upos or []
    for begin, end in pairwise((*one.sents, len(heads))) if heads else ():
        own = [head if head == ROOT else head - begin for head in heads[begin:end]]
        yield own, deprels[begin:end], upos[begin:end]


def _fields(one: Record) -> Iterator[str]:
    """The names of the fields that a line of the record has."""
    for name in FIELDS:
        value = getattr(one, name)
        if value is not None and (name != "sents" or value != [0]):
            yield name
    yield from one.extra


def _of_transitions(source: reading.Source) -> Facts:
    longest, labels = _Longest(), set[str]()
    n = n_empty = n_leaves = n_arcs = n_pieces = 0
    for number, line in reading.text_lines(source):
        tokens = line.split(" ") if line else []
        n += 1
        n_empty += not tokens
        longest.add(len(tokens), number)
        for token in tokens:
            try:
                half = arc(token)
            except ValueError:  # an invalid label: `synmt check` reports it
                half = None
            if half is None:
                n_leaves += token != GLUE
                n_pieces += token.startswith(SPACE)
            else:
                direction, label = half
                n_arcs += direction is not None  # if an arc is two tokens, the direction counts
                if label is not None:
                    labels.add(label)
    leaves = "pieces" if n_pieces else "words"
    figures: Facts = {"lines": n, "empty": n_empty, leaves: n_leaves, "arcs": n_arcs}
    return figures | {"labels": len(labels)} | longest.facts()


_COUNTERS: dict[TreeKind, Callable[[reading.Source], Facts]] = {
    "text": _of_text,
    "conllu": _of_conllu,
    "jsonl": _of_records,
    "transitions": _of_transitions,
}
