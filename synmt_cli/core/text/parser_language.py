"""Whether a UDPipe model may be of another language than a text, which it parses all the same.

A parser has embeddings of the words that it was trained with, so nearly all frequent words of its
language are among them, whatever the text is about. Of the 50 most frequent words in 2,000
running ones, models of English, German and French knew 27 to 50 in captions, debates, news
and novels of their language, and at most 15 in those of another one; in 500, 23 to 50 and at
most 18. Models of ten further languages, from Basque to Telugu, trained on 300 to 1,800
sentences of UD, knew 41 to 50 in their own test sets, and at most 13 (Japanese, of Chinese) in
the others'.
"""

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from synmt_cli.core.text.udpipe import Parsed, Parser
from synmt_cli.errors import DataError, ReadError
from synmt_cli.formats import conllu, udpipe_model
from synmt_cli.formats.record import OK
from synmt_cli.io import regular_files

FREQUENT = 50  # words that are looked at
ENOUGH = 0.4  # of them, which a parser of their language knows
FEWEST, SAMPLE = 500, 2_000  # running words; with fewer than the first, nothing is said
SHOWN = 5  # words


def problem(model: str, words: Iterable[str]) -> str | None:
    """What speaks against this parser for a text with these running words; None for nothing.

    Nothing is also what is said of few words, of a parser that reads no words, and where the
    file can be read no longer: the model in use was read before.
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
    n_known = len(frequent) - len(unknown)
    if n_known >= ENOUGH * len(frequent):
        return None
    return (
        f"{model} knows only {n_known} of the {len(frequent)} most frequent words of the text "
        f"(unknown: {', '.join(unknown[:SHOWN])}): is it a parser of another language, "
        "or of little text?"
    )


def problem_with_lines(parser: Parser, lines: Iterable[str]) -> str | None:
    """The same for lines of text, whose words the model finds. Raises Unavailable."""
    words = itertools.chain.from_iterable(map(parser.words, lines))
    return problem(parser.name, itertools.islice(words, SAMPLE))


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
    if found := problem(model, words):
        warn(found)
