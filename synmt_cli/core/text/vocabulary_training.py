"""Subword vocabularies learned from text, by sentencepiece.

The same text and settings give the same bytes: every sentence is used, in order, and the
number of threads is fixed. All text is held in memory.
"""

import io
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from synmt_cli.core.text.vocabulary import BOS, EOS, PAD, SPACE, UNK, sentencepiece, symbol_problem
from synmt_cli.errors import DataError, UsageError, quoted

N_THREADS = 4  # sums of floats depend on it: fixed, not the machine's
LONGEST = 2**30  # bytes; sentencepiece would silently leave out lines over 4192 bytes
UNKNOWN = "\u2585"  # what sentencepiece puts for unknown characters; it leaves out lines with it
N_BYTES = 256  # pieces of byte fallback
SPECIAL = ("<unk>", "<pad>", "<s>", "</s>")
Type = Literal["bpe", "unigram", "word"]
# Ids by the least number of lines, of both languages together: vocabularies are small where each
# piece of a large one would seldom be seen (Gowda and May 2020).
SIZES = {0: 500, 1_000: 1000, 4_000: 2000, 20_000: 4000, 50_000: 8000, 2_000_000: 32_000}
Normalization = Literal["identity", "nfkc", "nmt_nfkc", "nfkc_cf", "nmt_nfkc_cf"]


@dataclass(frozen=True, slots=True)
class VocabularySettings:
    """What to learn.

    size: the number of ids, the four special ones and all symbols included; None chooses one by
    the number of lines, within what the text allows. user_symbols: strings of the text that are
    never split, wherever they stand. symbols: pieces that no text becomes (vocabulary.py); where
    the text to learn from has their names, it is cut.
    character_coverage: the share of characters that get a piece; the rarest are left out.
    byte_fallback: other characters are spelled in bytes instead of <unk>.
    """

    size: int | None = None
    type: Type = "bpe"
    character_coverage: float = 1.0
    user_symbols: tuple[str, ...] = ()
    symbols: tuple[str, ...] = ()
    byte_fallback: bool = False
    normalization: Normalization = "identity"


def train(sentences: Iterable[str], settings: VocabularySettings, where: str = "<input>") -> bytes:
    """The model file. Raises UsageError for symbols or a size that do not fit, DataError.

    where: what DataError says the sentences are from.
    """
    _check_symbols(settings.user_symbols, settings.symbols)
    if settings.size is not None:
        return _train(sentences, settings, settings.size, where)
    lines = [*sentences]
    size = max(size for least, size in SIZES.items() if least <= len(lines))
    size += len({*settings.symbols})
    for _ in range(2):
        try:
            return _train(lines, settings, size, where)
        except _Unfit as error:  # too few for so many characters, or too many for so little text
            size = 2 * error.limit if error.limit > size else error.limit
    return _train(lines, settings, size, where)


class _Unfit(UsageError):
    """A size that the text does not allow. limit: the largest or the smallest that it allows."""

    def __init__(self, message: str, limit: int) -> None:
        super().__init__(message)
        self.limit = limit

    def __reduce__(self) -> tuple[type, tuple[str, int]]:
        """Lets the error travel between processes with its limit."""
        return type(self), (str(self), self.limit)


def _train(sentences: Iterable[str], settings: VocabularySettings, size: int, where: str) -> bytes:
    model, errors = io.BytesIO(), list[BaseException]()

    def watched() -> Iterator[str]:  # the library hides exceptions: keep the one that ended them
        try:
            yield from (sentence.replace(UNKNOWN, " ") for sentence in sentences)
        except BaseException as error:
            errors.append(error)
            raise

    try:
        sentencepiece().SentencePieceTrainer.train(
            sentence_iterator=watched(),
            model_writer=model,
            vocab_size=size,
            model_type=settings.type,
            character_coverage=settings.character_coverage,
            user_defined_symbols=list(dict.fromkeys(settings.user_symbols)),
            control_symbols=list(dict.fromkeys(settings.symbols)),
            byte_fallback=settings.byte_fallback,
            normalization_rule_name=settings.normalization,
            unk_id=UNK,
            pad_id=PAD,
            bos_id=BOS,
            eos_id=EOS,
            num_threads=N_THREADS,
            max_sentence_length=LONGEST,
            minloglevel=3,
        )
        sentencepiece().SentencePieceProcessor(model_proto=model.getvalue())
    except RuntimeError as error:
        if errors:
            raise errors[0] from None
        raise _explained(str(error), settings, size, where) from error
    return model.getvalue()


def _check_symbols(user_symbols: Sequence[str], symbols: Iterable[str]) -> None:
    for symbol in user_symbols:
        is_unfit = re.search(f"[ \n{SPACE}\ud800-\udfff]", symbol)  # surrogates: it is not UTF-8
        if symbol in SPECIAL or not symbol or is_unfit:
            raise UsageError(f"{quoted(symbol)} cannot be a user symbol")
    for symbol in symbols:
        if problem := symbol_problem(symbol):
            raise UsageError(f"{quoted(symbol)} cannot be a symbol: {problem}")
        if symbol in SPECIAL or symbol in user_symbols:
            raise UsageError(f"{quoted(symbol)} cannot be a symbol: it is a piece already")


def _explained(message: str, settings: VocabularySettings, size: int, where: str) -> Exception:
    if most := re.search(r"too high .* <= (\d+)", message):
        message = f"size {size} is too large for this text: at most {most[1]}"
        return _Unfit(message, int(most[1]))
    if least := re.search(r"smaller than required_chars. \d+ vs (\d+)", message):
        return _Unfit(_too_small(settings, size, int(least[1])), int(least[1]))
    if "(vocab_size) >= (0)" in message:  # in a vocabulary of words
        return UsageError(f"size {size} is too small: symbols and bytes alone need more")
    if taken := re.search(r"INTERNAL: (.*) is already defined", message):
        return UsageError(f"{quoted(taken[1])} cannot be a symbol: it is a piece already")
    if "sentences_.empty()" in message or "all_chars_count" in message:
        return DataError(where, None, "no text to learn from")
    if "piece is too long" in message:
        return DataError(where, None, "a word is too long to be a piece: cut it, or name no --type")
    return RuntimeError(message)


def _too_small(settings: VocabularySettings, size: int, least: int) -> str:
    """The message for a size below `least`, which counts special ids, symbols and bytes, too."""
    n_bytes = N_BYTES * settings.byte_fallback
    n_symbols = len({*settings.user_symbols, *settings.symbols})
    needing = f"{n_bytes} bytes and single characters" if n_bytes else "single characters alone"
    # A lower coverage leaves out characters, so it helps only if all else fits.
    fits = len(SPECIAL) + n_symbols + n_bytes < size
    advice = " (or a lower character coverage)" if fits else ""
    return f"size {size} is too small: {needing} need {least}{advice}"
