"""A segment as pictures show it: columns of words and empty nodes, and the arcs between them."""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import NamedTuple

from synmt_cli.core.segments.alignment import text_of
from synmt_cli.core.segments.comments import LINE, status_of
from synmt_cli.core.trees.heads import ROOT
from synmt_cli.errors import DataError, printable
from synmt_cli.formats.conllu import DEPREL, DEPS, FORM, ID, UPOS, Sentence
from synmt_cli.formats.record import OK, Record
from synmt_cli.io.display_width import cut

LONGEST_WORD = 40  # columns of a terminal; a longer word is cut in a picture
LONGEST_LABEL = 24
_JOINERS = "\u200c\u200d"  # Persian words and emoji need them, and they move no other text


class Arc(NamedTuple):
    """An arc between columns. head: ROOT for a root. enhanced: an empty node's, from DEPS."""

    head: int
    dependent: int
    label: str
    enhanced: bool = False


class Column(NamedTuple):
    """A word, or an empty node."""

    form: str
    tag: str
    empty: bool = False


class Token(NamedTuple):
    """A multiword token over columns first to last, both included."""

    first: int
    last: int
    form: str


@dataclass(frozen=True, slots=True)
class Picture:
    """One segment. problem: why it has no tree, "" if it has one. place: its file and line."""

    id: str
    text: str
    columns: Sequence[Column] = ()
    arcs: Sequence[Arc] = ()
    tokens: Sequence[Token] = ()
    problem: str = ""
    place: tuple[str, int | None] = field(default=("", None), compare=False)

    @property
    def rightward(self) -> bool:
        """False where most letters are of a script that is written from right to left."""
        return _is_rightward(self.text)

    def tree(self) -> dict[int, Arc]:
        """The arc of each word, by the word's column; arcs of empty nodes are left out."""
        return {arc.dependent: arc for arc in self.arcs if not arc.enhanced}


@lru_cache(maxsize=16)
def _is_rightward(text: str) -> bool:
    letters = [unicodedata.bidirectional(one) for one in text[:10_000]]
    return sum(one in ("R", "AL") for one in letters) <= letters.count("L")


def shown(text: str, limit: int = LONGEST_WORD) -> str:
    """Text that disturbs nothing around it: control and bidi characters escaped, and cut.

    >>> shown("a" + chr(0x202E) + "b"), shown("x" * 100, 5)
    ('a\\\\u202eb', 'xxxx…')
    """
    return cut(clean(text[: 4 * limit]), limit)  # more of a long text is never shown


def shown_end(text: str, limit: int = LONGEST_WORD) -> str:
    """Like `shown`, but a longer text loses its beginning: names of files differ at their ends.

    >>> shown_end("runs/europarl/vanilla.1", 12)
    '…l/vanilla.1'
    """
    return cut(clean(text[-4 * limit :])[::-1], limit)[::-1]


def shown_ends(names: Sequence[str], limit: int = LONGEST_WORD) -> list[str]:
    """Several texts, shown so that different ones stay different.

    If one is too long, what all have in common is left out: folders first, then parts of names.
    Texts that would still be alike are numbered.

    >>> shown_ends(["out/pascal/newstest.de", "out/vanilla/newstest.de"], 12)
    ['pascal', 'vanilla']
    >>> shown_ends(["pascal.newstest.de", "vanilla.newstest.de"], 10)
    ['pascal', 'vanilla']
    >>> shown_ends(["one" + 9 * "x", "two" + 9 * "x"], 8)
    ['1 …xxxxx', '2 …xxxxx']
    """
    forms = [names, _apart(names, "/"), _apart(names, "/.")] if len({*names}) > 1 else [names]
    shortened = [[shown_end(name, limit) for name in form] for form in forms]
    whole = [[clean(name) for name in form] for form in forms]
    different = [ends for ends in shortened if len({*ends}) == len({*names})]
    if different:
        return next((ends for ends in different if ends in whole), different[-1])
    numbers = {name: f"{number} " for number, name in enumerate(dict.fromkeys(names), 1)}
    return [numbers[name] + shown_end(name, limit - len(numbers[name])) for name in names]


def _apart(names: Sequence[str], separators: str) -> list[str]:
    """The names without the first and the last parts that all have in common."""
    parts = [re.split(f"([{separators}])", name) for name in names]
    for ends in (slice(0, 2), slice(-2, None)):  # a part and the separator on its inner side
        while (
            all(len(one) > 1 for one in parts) and len({"".join(one[ends]) for one in parts}) == 1
        ):
            for one in parts:
                del one[ends]
    return ["".join(one) for one in parts]


def clean(text: str) -> str:
    """Text with control and bidi characters escaped, but not the joiners of a script."""
    if text.isprintable():
        return text
    return "".join(one if one in _JOINERS else printable(one) for one in text)


def of_sentence(sentence: Sentence, id: str) -> Picture:
    """The picture of a block of CoNLL-U, with its multiword tokens and empty nodes."""
    metadata = sentence.metadata()
    id = metadata.get("sent_id") or metadata.get(LINE) or id
    text = metadata.get("text")
    status, reason = status_of(sentence)
    place = sentence.source, sentence.line
    if status != OK:
        return Picture(id, text or "", problem=_problem(status, reason or ""), place=place)
    nodes = [row for row in sentence.rows if "-" not in row[ID]]
    at = {row[ID]: column for column, row in enumerate(nodes)}
    arcs = []
    for word, head in zip(sentence.words, sentence.heads, strict=True):
        arcs.append(Arc(at[str(head)] if head else ROOT, at[word[ID]], word[DEPREL]))
    arcs += [arc for row in nodes if "." in row[ID] for arc in _enhanced(row, at)]
    columns = [Column(row[FORM], _tag(row[UPOS]), "." in row[ID]) for row in nodes]
    tokens = [Token(at[str(a)], at[str(b)], row[FORM]) for a, b, row in sentence.ranges]
    return Picture(id, text_of([sentence], metadata), columns, arcs, tokens, place=place)


def of_line(sentences: Sequence[Sentence], id: str) -> Picture:
    """The picture of a line of text: the trees of its sentences side by side, as in a record."""
    metadata = sentences[0].metadata()
    parts = [of_sentence(one, id) for one in sentences]
    if LINE not in metadata:
        return parts[0]  # a sentence is a line
    whole = replace(parts[0], id=metadata[LINE], text=text_of(sentences, metadata))
    if problem := next((one.problem for one in parts if one.problem), ""):
        return replace(whole, columns=(), arcs=(), tokens=(), problem=problem)
    columns: list[Column] = []
    arcs: list[Arc] = []
    tokens: list[Token] = []
    for one in parts:
        n = len(columns)
        columns += one.columns
        for arc in one.arcs:
            head = ROOT if arc.head == ROOT else arc.head + n
            arcs.append(arc._replace(head=head, dependent=arc.dependent + n))
        tokens += [Token(first + n, last + n, form) for first, last, form in one.tokens]
    return replace(whole, columns=columns, arcs=arcs, tokens=tokens)


def _enhanced(row: list[str], at: dict[str, int]) -> list[Arc]:
    """The arcs to an empty node that its DEPS give, `5:nsubj|7:obj`; none from itself."""
    node, columns = at[row[ID]], at | {"0": ROOT}
    pairs = [one.partition(":") for one in row[DEPS].split("|")]
    heads = [(columns.get(head, node), label) for head, _, label in pairs]
    return [Arc(head, node, label, enhanced=True) for head, label in heads if head != node]


def of_record(one: Record, place: tuple[str, int | None] = ("", None)) -> Picture:
    """The picture of a record; multiword tokens are words that share a span."""
    if one.status != OK or not one.words:
        problem = "no tree" if one.status == OK else _problem(one.status, one.reason or "")
        return Picture(one.id, one.src, problem=problem, place=place)
    labels = one.deprels or [""] * len(one.words)
    tags = one.upos or [""] * len(one.words)
    heads = one.heads or []
    columns = [Column(form, _tag(tag)) for form, tag in zip(one.words, tags, strict=True)]
    arcs = [Arc(h, i, label) for i, (h, label) in enumerate(zip(heads, labels, strict=True))]
    return Picture(one.id, one.src, columns, arcs, _shared(one), place=place)


def _shared(one: Record) -> list[Token]:
    tokens: list[Token] = []
    spans = [tuple(span) for span in one.spans or []]
    for i in range(1, len(spans)):
        if spans[i] == spans[i - 1]:
            first = tokens.pop().first if tokens and tokens[-1].last == i - 1 else i - 1
            tokens.append(Token(first, i, one.src[slice(*spans[i])]))
    return tokens


def _problem(status: str, reason: str) -> str:
    return f"{status}: {reason}" if reason else status


def _tag(tag: str) -> str:
    return "" if tag == "_" else tag


@dataclass(frozen=True, slots=True)
class Differences:
    """Two trees over the same words. differing: columns whose head or label is not the same.

    heads: how many of them have another head. words: how many there are.
    """

    first: Picture
    second: Picture
    differing: frozenset[int] = frozenset()
    heads: int = 0

    @property
    def words(self) -> int:
        """How many words were compared."""
        return len(self.first.tree())

    @property
    def alike(self) -> bool:
        """Whether the trees are the same, or both are missing."""
        return not self.differing and bool(self.first.problem) == bool(self.second.problem)

    def summary(self) -> str:
        """How many words differ, by head or by label only, as text."""
        if not self.differing:
            return "the two trees are the same"
        n, heads = len(self.differing), self.heads
        return f"{n} of {self.words} words differ: {heads} by head, {n - heads} by label only"


def differences(first: Picture, second: Picture) -> Differences:
    """Compares two trees over one sentence. Raises DataError where their words differ.

    Empty nodes of the second are left out, since the two trees share the columns of the first.
    """
    if first.problem or second.problem:
        return Differences(first, second)
    ours, theirs = _words(first), _words(second)
    if (forms := [form for _, form in ours]) != (others := [form for _, form in theirs]):
        raise DataError(*second.place, _other_words(forms, others, first.id))
    at = {there: here for (here, _), (there, _) in zip(ours, theirs, strict=True)} | {ROOT: ROOT}
    arcs = [
        Arc(at[arc.head], at[arc.dependent], arc.label) for arc in second.arcs if not arc.enhanced
    ]
    second = replace(second, columns=first.columns, arcs=arcs)
    one, other = first.tree(), second.tree()
    differing = frozenset(column for column in one if one[column] != other[column])
    n_heads = sum(one[column].head != other[column].head for column in differing)
    return Differences(first, second, differing, n_heads)


def _words(one: Picture) -> list[tuple[int, str]]:
    return [(i, column.form) for i, column in enumerate(one.columns) if not column.empty]


def _other_words(ours: list[str], theirs: list[str], id: str) -> str:
    """The message about two sentences with different words, with the first word that differs."""
    pairs = [*zip(ours, theirs, strict=False)]
    n = next((n for n, (a, b) in enumerate(pairs) if a != b), None)
    what = f"sentence {id}: other words than in the first tree"
    if n is None:
        return f"{what}: {len(theirs)}, not {len(ours)}"
    return f"{what}: word {n + 1} is {shown(theirs[n])!r}, not {shown(ours[n])!r}"
