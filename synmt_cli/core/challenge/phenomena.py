"""Challenge sets: the sentences in which a word is far from its head (Choshen and Abend, 2019).

A word counts if it meets a condition on DEPREL, UPOS and FEATS and the distance
|id - head| is in a range. The conditions are those of the code of Choshen and Abend (2021),
with two corrections. There the root's distance was its id, since its HEAD is 0; here a root
has no distance. There rows were counted; here ids, so that multiword tokens and empty nodes
change nothing.
"""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from synmt_cli.core.segments import alignment
from synmt_cli.core.segments.segment import line
from synmt_cli.errors import UsageError, printable, quoted
from synmt_cli.formats import conllu
from synmt_cli.formats.conllu import DEPREL, FEATS, UPOS, Sentence
from synmt_cli.io import reading, writing

COMMENT = "synmt_challenge"
ANY, ALL = "any", "all"


@dataclass(frozen=True, slots=True)
class Condition:
    """What a word must be. Each pattern is a regular expression found anywhere in its column.

    Raises UsageError for a pattern that is none.

    >>> Condition("modal", upos="^AUX$").met_by(["1", "may", "may", "AUX", "MD"])
    True
    """

    name: str
    deprel: str = ""
    upos: str = ""
    feats: str = ""
    _columns: tuple[tuple[int, re.Pattern[str]], ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        given = (("deprel", DEPREL), ("upos", UPOS), ("feats", FEATS))
        patterns = [(column, name, getattr(self, name)) for name, column in given]
        columns = tuple((c, _compiled(name, text)) for c, name, text in patterns if text)
        object.__setattr__(self, "_columns", columns)

    def met_by(self, row: Sequence[str]) -> bool:
        """Whether every pattern is found in the row of a word."""
        return all(pattern.search(row[column]) for column, pattern in self._columns)


def _compiled(option: str, pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        problem = f"--{option} takes a regular expression, not {quoted(pattern)}"
        raise UsageError(f"{problem}: {printable(str(error))}") from None


# The conditions of the companion code's extract_phenomena.py.
PHENOMENA = {
    "particle": Condition("particle", deprel="prt"),
    "reflexive": Condition("reflexive", feats="Reflex=Yes"),
    "preposition-stranding": Condition("preposition-stranding", deprel="obl", upos="^ADP$"),
}


@dataclass(frozen=True, slots=True)
class Finder:
    """Finds words that meet any condition, least to most words from their heads.

    most: None for no limit. A word beside its head has distance 1.
    """

    conditions: Sequence[Condition]
    least: int = 2
    most: int | None = None

    def matches(self, sentence: Sentence) -> Iterator[tuple[str, int, int]]:
        """Yields (name of the condition, word, head), both 1-based ids as in the file."""
        for word, (row, head) in enumerate(zip(sentence.words, sentence.heads, strict=True), 1):
            distance = abs(word - head)
            if head == 0 or distance < self.least:
                continue
            if self.most is None or distance <= self.most:
                yield from ((one.name, word, head) for one in self.conditions if one.met_by(row))


@dataclass(frozen=True, slots=True)
class ChallengeSegment:
    """The sentences of one line. number: of the line, from 1 over all inputs.

    found: what Finder.matches yields for each sentence.
    """

    sentences: list[Sentence]
    number: int
    found: list[list[tuple[str, int, int]]]

    @property
    def names(self) -> set[str]:
        """The conditions that are met."""
        return {name for of_one in self.found for name, _, _ in of_one}

    def written(self, form: str, beside: Sequence[str] = ()) -> bytes:
        """Its record: `conllu` its blocks with a comment, `text` the line, `ids` its id.

        The id is that of the record that `featurize` makes: synmt_line, sent_id or the number.
        beside: further columns of a line.
        """
        if form == "conllu":
            return b"".join(map(_commented, self.sentences, self.found))
        record, _ = alignment.record_of(self.sentences, str(self.number))
        return line("\t".join([record.id if form == "ids" else record.src, *beside]))


def _commented(sentence: Sentence, found: Sequence[tuple[str, int, int]]) -> bytes:
    """The block with `# synmt_challenge = NAME:WORD:HEAD …` in place of any there was."""
    comments = [
        one for one in sentence.comments if one[1:].partition("=")[0].strip(" \t") != COMMENT
    ]
    if found:
        shown = " ".join(f"{name}:{word}:{head}" for name, word, head in found)
        comments.append(f"# {COMMENT} = {shown}")
    changed = Sentence(comments, sentence.rows, sentence.words, sentence.heads)
    return conllu.to_bytes(changed)


def segments(paths: Iterable[str], finder: Finder) -> Iterator[ChallengeSegment]:
    """Every segment of CoNLL-U files, one after the other. Raises DataError, ReadError."""
    number = 0
    for source in reading.sources(list(paths)):
        for sentences in alignment.segments(conllu.read(source)):
            number += 1
            found = [list(finder.matches(sentence)) for sentence in sentences]
            yield ChallengeSegment(sentences, number, found)


def split(
    found: Iterable[tuple[ChallengeSegment, Sequence[str]]],
    outputs: Mapping[str, Sequence[str]],
    form: str,
) -> None:
    """Writes what is selected to the files of each condition, the lines beside it too.

    outputs: condition, or ANY -> a path for the segments and one for each line. No file
    appears before all are written. Raises CreateError, WriteError.
    """
    with contextlib.ExitStack() as stack:
        writers = {
            name: [stack.enter_context(writing.atomic(path)) for path in paths]
            for name, paths in outputs.items()
        }
        for segment, lines in found:
            names = segment.names
            for name, (first, *others) in writers.items():
                if name in names or (name == ANY and names):
                    first.write(segment.written(form))
                    for writer, text in zip(others, lines, strict=True):
                        writer.write(line(text))
        for writer in (one for of_name in writers.values() for one in of_name):
            writer.flush()  # a full disk shows before the first file takes its name


@dataclass(slots=True)
class Counts:
    """How many segments meet each condition, and by how many words."""

    names: Sequence[str]
    n_segments: Counter[str] = field(default_factory=Counter)
    n_words: Counter[str] = field(default_factory=Counter)

    def add(self, segment: ChallengeSegment) -> None:
        """Counts a segment, whether it meets a condition or not."""
        names, words = segment.names, set()
        for index, of_one in enumerate(segment.found):
            self.n_words.update(name for name, _, _ in of_one)
            words |= {(index, word) for _, word, _ in of_one}
        self.n_words[ANY] += len(words)
        self.n_words[ALL] += sum(len(sentence.words) for sentence in segment.sentences)
        self.n_segments.update([*names, ALL, *([ANY] if names else [])])

    def table(self) -> bytes:
        """`NAME<TAB>SEGMENTS<TAB>PERCENT<TAB>WORDS` for each condition, any and all."""
        total = max(self.n_segments[ALL], 1)
        rows = [
            f"{name}\t{self.n_segments[name]}\t{100 * self.n_segments[name] / total:.1f}"
            f"\t{self.n_words[name]}\n"
            for name in (*self.names, ANY, ALL)
        ]
        return "".join(["phenomenon\tn\t%\twords\n", *rows]).encode()
