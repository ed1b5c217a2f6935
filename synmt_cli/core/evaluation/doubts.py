"""Reasons why the scores of texts are doubtful, or slow to compute."""

import unicodedata
from collections.abc import Iterator, Mapping, Sequence

from synmt_cli.core.text import scripts
from synmt_cli.io import reading

TOKENIZED = 100  # with so many lines that end in " ." a text looks tokenized, as in sacreBLEU
TER_WORDS = 300  # in a line; for so many shuffled words sacreBLEU takes several seconds
OTHER_FORM = 0.1  # how far the share of lines in NFC may be from that of the reference
SAME = 20  # with so many lines, two texts are not the same by chance
SHOWN = 5  # lines that are named
Texts = Mapping[str, list[str]]


def of_texts(
    texts: Texts,
    references: Sequence[str],
    systems: Sequence[str],
    metrics: Sequence[str],
    tokenize: str,
    counting_tokens: Sequence[str],
) -> Iterator[str]:
    """Yields a line for each doubt. texts: the lines of each file.

    counting_tokens: the metrics that count the tokens of `tokenize`.
    """
    texts = {reading.source_name(name): lines for name, lines in texts.items()}
    references, systems = ([*map(reading.source_name, of)] for of in (references, systems))
    references = [*dict.fromkeys(references)]
    yield from _empty_references(texts, references)
    yield from _same_texts(texts, references, systems)
    systems = [*dict.fromkeys(systems)]
    if "bleu" in metrics and tokenize != "none":
        yield from _tokenized(texts, systems)
    yield from _other_forms(texts, references, systems)
    if "ter" in metrics:
        yield from _slow_lines(texts, systems)
    if not {*metrics}.isdisjoint(counting_tokens):
        yield from _unspaced(texts, references, tokenize)


def _empty_references(texts: Texts, references: Sequence[str]) -> Iterator[str]:
    for name in references:
        blank = [number for number, line in enumerate(texts[name], 1) if not line.strip()]
        for number in blank[:SHOWN]:
            yield f"{name}:{number}: empty reference"
        if len(blank) > SHOWN:
            yield f"{name}: {len(blank):,} empty references in all"


def _same_texts(texts: Texts, references: Sequence[str], systems: Sequence[str]) -> Iterator[str]:
    """A reference that is scored, or one seed that counts as two and makes intervals too narrow."""
    names = [*references, *systems]
    if systems == references:  # nobody takes the one for the other
        return
    for i, name in enumerate(names):
        if len(lines := texts[name]) < SAME:
            continue
        if name in names[:i]:
            yield f"{name} is scored {'against itself' if name in references else 'twice'}"
        elif (other := next((one for one in names[:i] if texts[one] == lines), None)) is not None:
            yield f"{other} and {name} are the same text"


def _tokenized(texts: Texts, systems: Sequence[str]) -> Iterator[str]:
    for name in systems:
        n = sum(line.endswith(" .") for line in texts[name])
        if n >= TOKENIZED:
            yield f"{name}: {n:,} lines end in ' .': is the text tokenized?"


def _other_forms(texts: Texts, references: Sequence[str], systems: Sequence[str]) -> Iterator[str]:
    """Finds letters that look like those of the reference and are others: NFD against NFC."""

    def composed(name: str) -> float:
        lines = texts[name]
        return sum(unicodedata.is_normalized("NFC", line) for line in lines) / max(len(lines), 1)

    if not references:
        return
    expected = composed(references[0])
    for name in dict.fromkeys((*references[1:], *systems)):
        if abs(composed(name) - expected) > OTHER_FORM:
            problem = "has letters with accents in another Unicode form (NFC, NFD)"
            yield f"{name} {problem} than {references[0]}: they count as different letters"


def _slow_lines(texts: Texts, systems: Sequence[str]) -> Iterator[str]:
    """The lines for which TER takes long: it tries to move every part everywhere."""
    for name in systems:
        long = [(n, len(line.split())) for n, line in enumerate(texts[name], 1)]
        long = [(number, n_words) for number, n_words in long if n_words > TER_WORDS]
        for number, n_words in long[:SHOWN]:
            yield (
                f"{name}:{number}: {n_words:,} words: TER may take minutes for more than "
                f"{TER_WORDS:,}"
            )
        if len(long) > SHOWN:
            yield f"{name}: {len(long):,} lines of more than {TER_WORDS:,} words in all"


def _unspaced(texts: Texts, references: Sequence[str], tokenize: str) -> Iterator[str]:
    """The first reference whose clauses a tokenizer takes for words: it has no spaces in them."""
    for name in references:
        if writing := scripts.misread(texts[name], tokenize):
            yield f"{name} has {writing.advice(tokenize, '--tokenize ')}"
            return
