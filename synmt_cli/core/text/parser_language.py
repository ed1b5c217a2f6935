"""Whether a UDPipe model may be for another language than a text, which it would parse anyway.

A parser has embeddings of the words that it was trained with, so nearly all frequent words of its
language are among them, whatever the text is about. Of the 50 most frequent words in 2,000
running ones, models of English, German and French knew 27 to 50 in captions, debates, news
and novels of their language, and at most 15 in those of another one; in 500, 23 to 50 and at
most 18. Models of ten further languages, from Basque to Telugu, trained on 300 to 1,800
sentences of UD, knew 41 to 50 in their own test sets, and at most 13 (Japanese, of Chinese) in
the others'.
"""

import itertools
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from synmt_cli.core.text.udpipe import Parsed, Parser
from synmt_cli.errors import DataError, ReadError
from synmt_cli.formats import conllu, udpipe_model
from synmt_cli.formats.record import OK
from synmt_cli.io import regular_files

FREQUENT = 50  # words that are looked at
ENOUGH = 0.4  # the share of them that a parser of their language knows
FEWEST, SAMPLE = 500, 2_000  # running words; with fewer than the first, nothing is said
SHOWN = 5  # unknown words in a message


@dataclass(frozen=True, slots=True)
class Familiarity:
    """How well a parser knows the words of a text. frequent: the text's most frequent words.

    unknown: those that the parser does not know. composed: how many it would know if the text
    were in Unicode's form NFC.
    """

    parser: str
    frequent: Sequence[str]
    unknown: Sequence[str]
    composed: int

    @property
    def is_enough(self) -> bool:
        """Whether the parser may be for the language of the text."""
        return self._fits(len(self.frequent) - len(self.unknown))

    def problem(self) -> str | None:
        """The message about a parser that does not fit the text; None if it fits."""
        if self.is_enough:
            return None
        n, unknown = len(self.frequent), ", ".join(self.unknown[:SHOWN])
        knows = f"{self.parser} knows only {n - len(self.unknown)} of the {n} most frequent words"
        problem = f"{knows} of the text (unknown: {unknown})"
        if self._fits(self.composed):
            return f"{problem}: the text has decomposed letters (NFD); make it NFC first"
        return f"{problem}: is it a parser of another language, or of little text?"

    def _fits(self, n_known: int) -> bool:
        return n_known >= ENOUGH * len(self.frequent)


def familiarity(model: str, words: Iterable[str]) -> Familiarity | None:
    """How well a parser knows a text with these running words.

    None if there are few words, if the parser does not read words, or if its file can no longer be
    read: the model in use was read earlier.
    """
    counts = Counter(word.lower() for word in words if any(map(str.isalpha, word)))
    if counts.total() < FEWEST:
        return None
    try:
        data = regular_files.read(model, udpipe_model.UNPACKED_LIMIT, follow=True)
    except (ReadError, DataError):
        return None
    trained_with = udpipe_model.parser_words(data)
    if trained_with is None:
        return None
    known = {word.lower() for word in trained_with}
    frequent = [word for word, _ in counts.most_common(FREQUENT)]
    unknown = [word for word in frequent if word not in known]
    composed = sum(unicodedata.normalize("NFC", word) in known for word in frequent)
    return Familiarity(model, frequent, unknown, composed)


def familiarity_with_lines(parser: Parser, lines: Iterable[str]) -> Familiarity | None:
    """The same for lines of text, whose words the model finds. Raises Unavailable."""
    words = itertools.chain.from_iterable(map(parser.words, lines))
    return familiarity(parser.name, itertools.islice(words, SAMPLE))


def watched(parses: Iterable[Parsed], model: str, warn: Callable[[str], None]) -> Iterator[Parsed]:
    """The same parses, made by this model; warns of a problem as soon as there are enough."""
    words: list[str] | None = []
    for parsed in parses:
        yield parsed
        if words is not None and parsed.status == OK and not parsed.is_known:
            words += _words(parsed.conllu)
            if len(words) >= SAMPLE:
                _warn(model, words, warn)
                words = None
    if words is not None:
        _warn(model, words, warn)


def _words(block: str) -> Iterator[str]:
    for row in block.split("\n"):
        columns = row.split("\t", conllu.LEMMA)
        if columns[conllu.ID].isdecimal():
            yield columns[conllu.FORM]


def _warn(model: str, words: list[str], warn: Callable[[str], None]) -> None:
    if (found := familiarity(model, words)) and (problem := found.problem()):
        warn(problem)
