"""Challenge sets: the sentences in which a word is far from its head (Choshen and Abend, 2019).

A word counts if it meets a condition on its columns and the distance |id - head| is in a range.
The conditions are those of the code of Choshen and Abend (2021), with two corrections and an
addition. In their code the root's distance was its id, since its HEAD is 0; here a root has no
distance. They counted rows; here ids count, so that multiword tokens and empty nodes change
nothing. They required a stranded preposition to be labelled obl, as parsers label many; here it
may also be labelled case and follow its head, as in treebanks.
"""

import re
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from synmt_cli.core.segments import reader
from synmt_cli.core.segments.comments import commented, is_placeholder
from synmt_cli.core.segments.segment import TreeSegment, line, side_by_side
from synmt_cli.core.segments.splitting import written_together
from synmt_cli.errors import UsageError, printable, quoted
from synmt_cli.formats import conllu
from synmt_cli.formats.conllu import DEPREL, FEATS, FORM, LEMMA, UPOS, Sentence

COMMENT = "synmt_challenge"
ANY, ALL = "any", "all"
# The columns that conditions test, by fields of Condition and options of the command.
COLUMNS = {"form": FORM, "lemma": LEMMA, "upos": UPOS, "feats": FEATS, "deprel": DEPREL}
NEITHER = "none"  # the label of a segment that meets no condition
Match = tuple[str, int, int]  # name of the condition, word, head; both 1-based ids as in the file


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on words. Each pattern is a regular expression, found anywhere in its column.

    after: the word has to follow its head. patterns: those given, each with its column of a row.
    Raises UsageError for an invalid pattern.

    >>> Condition("modal", upos="^AUX$").met_by(["1", "may", "may", "AUX", "MD"])
    True
    """

    name: str
    form: str = ""
    lemma: str = ""
    upos: str = ""
    feats: str = ""
    deprel: str = ""
    after: bool = False
    patterns: tuple[tuple[int, re.Pattern[str]], ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        given = [(column, name, getattr(self, name)) for name, column in COLUMNS.items()]
        patterns = tuple((column, _compiled(name, text)) for column, name, text in given if text)
        object.__setattr__(self, "patterns", patterns)

    def met_by(self, row: Sequence[str]) -> bool:
        """Whether every pattern is found in the row of a word."""
        return all(pattern.search(row[column]) for column, pattern in self.patterns)


def _compiled(option: str, pattern: str) -> re.Pattern[str]:
    try:
        with warnings.catch_warnings():
            # Python warns of sets within sets, which a later version may read in another way.
            warnings.simplefilter("ignore", FutureWarning)
            return re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        problem = f"--{option} takes a regular expression, not {quoted(pattern)}"
        raise UsageError(f"{problem}: {error}") from None


# Name -> its conditions: a word has to meet one of them. The first of each comes from
# extract_phenomena.py in the companion code.
PHENOMENA = {
    "particle": (Condition("particle", deprel="prt"),),
    "reflexive": (Condition("reflexive", feats="Reflex=Yes"),),
    "preposition-stranding": (
        Condition("preposition-stranding", deprel="obl", upos="^ADP$"),
        Condition("preposition-stranding", deprel="^case$", upos="^ADP$", after=True),
    ),
}


@dataclass(slots=True)
class Finder:
    """Finds words that meet any condition at a distance of least to most from their heads.

    most: None for no limit. A word next to its head has distance 1. unmet: the names of the
    conditions that no word has met so far, at whatever distance.
    """

    conditions: Sequence[Condition]
    least: int = 2
    most: int | None = None
    unmet: set[str] = field(init=False)

    def __post_init__(self) -> None:
        self.unmet = {one.name for one in self.conditions}

    def matches(self, sentence: Sentence) -> Iterator[Match]:
        """Yields the words of a sentence that meet a condition, once for each condition."""
        for word, (row, head) in enumerate(zip(sentence.words, sentence.heads, strict=True), 1):
            distance = abs(word - head)
            is_far = distance >= self.least and (self.most is None or distance <= self.most)
            counts = head != 0 and is_far
            if not (counts or self.unmet):
                continue
            for one in self.conditions:
                if one.met_by(row) and (word > head or not one.after):
                    self.unmet.discard(one.name)
                    if counts:
                        yield one.name, word, head


@dataclass(frozen=True, slots=True)
class ChallengeSegment:
    """A line of text. number: from 1 over all inputs. matches: those of each sentence."""

    segment: TreeSegment
    number: int
    matches: list[list[Match]]

    @property
    def names(self) -> set[str]:
        """The conditions that are met."""
        return {name for of_sentence in self.matches for name, _, _ in of_sentence}

    def written(self, form: str, columns: Sequence[str] = ()) -> bytes:
        """The segment as `conllu`, its blocks with a comment; `text`, the line; or `ids`, its id.

        The id is that of the record that `featurize` makes: synmt_line, sent_id or the number.
        columns: lines of other files to add to a line.
        """
        if form == "conllu":
            return b"".join(map(_commented, self.segment.sentences, self.matches))
        if form == "text":
            first = self.segment.text
        else:
            first = printable(self.segment.record.id or str(self.number))
        return side_by_side((first, *columns))


def _commented(sentence: Sentence, matches: Sequence[Match]) -> bytes:
    """The block with `# synmt_challenge = NAME:WORD:HEAD …` in place of any that it had."""
    shown = " ".join(f"{name}:{word}:{head}" for name, word, head in matches)
    return conllu.to_bytes(commented(sentence, {COMMENT: shown or None}))


def segments(paths: Sequence[str], finder: Finder) -> Iterator[ChallengeSegment]:
    """Every segment of CoNLL-U files, one after the other. Raises DataError, ReadError."""
    for number, segment in enumerate(reader.read(paths, "conllu"), 1):
        assert isinstance(segment, TreeSegment)
        matches = [list(finder.matches(sentence)) for sentence in segment.sentences]
        yield ChallengeSegment(segment, number, matches)


def written(
    segments: Iterable[tuple[ChallengeSegment, Sequence[str]]], form: str, names: Sequence[str]
) -> Iterator[bytes]:
    """The records of the segments that meet a condition; or with `counts` one table of all.

    names: of all conditions. With `labels`, a line for every segment: the conditions that it
    meets, joined by +, or NEITHER.
    """
    if form == "counts":
        yield _table(segments, names)
        return
    for segment, lines in segments:
        if form == "labels":
            yield line("+".join(name for name in names if name in segment.names) or NEITHER)
        elif segment.names:
            yield segment.written(form, lines)


def split(
    segments: Iterable[tuple[ChallengeSegment, Sequence[str]]],
    outputs: Mapping[str, Sequence[str]],
    form: str,
) -> None:
    """Writes the segments that meet a condition, and their other lines, to the condition's files.

    outputs: condition, or ANY -> a path for the segments and one for each line. All files
    appear, or none. Raises CreateError, WriteError.
    """
    with written_together(outputs.values()) as writers:
        for segment, lines in segments:
            names = segment.names
            for name, (first, *others) in zip(outputs, writers, strict=True):
                if name in names or (name == ANY and names):
                    first.write(segment.written(form))
                    for writer, text in zip(others, lines, strict=True):
                        writer.write(line(text))


def _table(
    segments: Iterable[tuple[ChallengeSegment, Sequence[str]]], names: Sequence[str]
) -> bytes:
    """`NAME<TAB>SEGMENTS<TAB>PERCENT<TAB>WORDS` for each condition, any and all."""
    n_segments, n_words = Counter[str](), Counter[str]()
    for segment, _ in segments:
        n_segments.update([*segment.names, ALL, *([ANY] if segment.names else [])])
        for sentence, matches in zip(segment.segment.sentences, segment.matches, strict=True):
            n_words.update(name for name, _, _ in matches)
            n_words[ANY] += len({word for _, word, _ in matches})
            n_words[ALL] += 0 if is_placeholder(sentence) else len(sentence.words)
    total = max(n_segments[ALL], 1)
    rows = [
        f"{name}\t{n_segments[name]}\t{100 * n_segments[name] / total:.1f}\t{n_words[name]}\n"
        for name in (*names, ANY, ALL)
    ]
    return "".join(["phenomenon\tn\t%\twords\n", *rows]).encode()
