"""Lines of text to lines of pieces or ids, and back, spread over processes."""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from synmt_cli import pool
from synmt_cli.core.jobs.work import where_of_lines
from synmt_cli.core.segments.segment import ended
from synmt_cli.core.text.sampling import Sampler, Sampling
from synmt_cli.core.text.vocabulary import Vocabulary
from synmt_cli.errors import DataError, UsageError, quoted
from synmt_cli.io import reading

CHUNK = 256  # lines that travel to a worker at a time
_ID = re.compile(r"0|[1-9][0-9]{0,8}")


class VocabularyLine(NamedTuple):
    """One line of input. number: in its file, from 1; place: in all files, from 0."""

    source: str
    number: int
    data: bytes
    place: int


def lines(files: Sequence[str]) -> Iterator[VocabularyLine]:
    """Yields the lines of all files. Raises DataError, ReadError."""
    place = 0
    for source in reading.sources(files):
        for number, data in enumerate(reading.lines(source), 1):
            yield VocabularyLine(source.name, number, data, place)
            place += 1


def each_line(
    make: Callable[[], Callable[[VocabularyLine], bytes]],
    model: str,
    files: Sequence[str],
    jobs: int,
    warn: Callable[[str], None],
) -> Iterator[bytes]:
    """Yields the result of each line of all files, in order.

    make: a partial of `encoding` or `decoding`; it reads the file `model`. warn: takes a line
    about a lost worker. Raises at once what `make` raises.
    """
    recipe = pool.Recipe(make, (model,), pool.Care(where=where_of_lines, warn=warn))
    return pool.mapped(recipe, lines(files), jobs, CHUNK)


def encoding(
    model: str, ids: bool, sampling: Sampling | None = None
) -> Callable[[VocabularyLine], bytes]:
    """The function from a line to its pieces, or ids. Raises Unavailable, ConfigError.

    Raises UsageError for a `sampling` that the model does not have. The function raises DataError.
    """
    vocabulary = Vocabulary.load(model)
    if sampling is not None:
        _check_sampling(vocabulary, sampling)
    sampler = Sampler(vocabulary, sampling) if sampling else None

    def encoded(line: VocabularyLine) -> bytes:
        text = reading.decode(line.data, line.source, line.number)
        pieces = sampler.pieces(text, line.place) if sampler else vocabulary.pieces(text)
        words = map(str, vocabulary.ids(pieces)) if ids else pieces
        return ended(" ".join(words).encode())

    return encoded


def _check_sampling(vocabulary: Vocabulary, sampling: Sampling) -> None:
    kind, name = vocabulary.making.type, vocabulary.name
    if kind not in ("bpe", "unigram"):
        raise UsageError(f"--sample is for bpe and unigram models; {name} is a {kind} model")
    if kind == "bpe" and sampling.alpha > 1:
        raise UsageError(f"--sample is a chance, at most 1, for {name}, a bpe model")
    if kind == "bpe" and sampling.nbest:
        raise UsageError(f"--nbest is for unigram models; {name} is a bpe model")


def decoding(model: str, ids: bool) -> Callable[[VocabularyLine], bytes]:
    """The function from a line of pieces, or ids, to its text. Raises as `encoding` does."""
    vocabulary = Vocabulary.load(model)

    def decoded(line: VocabularyLine) -> bytes:
        text = reading.decode(line.data, line.source, line.number)
        pieces = [piece for piece in text.split(" ") if piece]
        if ids:
            return ended(vocabulary.decode(_ids(pieces, vocabulary.size, line)).encode())
        return ended(vocabulary.join(pieces).encode())

    return decoded


def _ids(words: list[str], size: int, line: VocabularyLine) -> list[int]:
    for word in words:
        if not _ID.fullmatch(word) or int(word) >= size:
            problem = f"{quoted(word)} is not an id below {size}"
            raise DataError(line.source, line.number, problem)
    return list(map(int, words))
