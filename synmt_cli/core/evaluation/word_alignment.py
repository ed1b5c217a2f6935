"""Words of one CoNLL-U stream found in another that splits the same text differently.

As in the CoNLL 2018 shared task (Zeman et al. 2018), by the rules at the head of its script
conll18_ud_eval.py (Straka and Popel): white space aside, both have the same characters, so
that every token is a span of them. Where a multiword token is on either side, words inside the
smallest span that cuts no such token are aligned by a longest common subsequence of their
forms, case aside. Words that touch no such span are aligned where their tokens are the same.
(The script itself may take words into such a span that stand before it or stick out of it,
where tokens differ right before a multiword token. On treebanks its counts are these.)

Here the text is cut wherever both streams end a sentence, which changes no alignment: memory
is the longest run of sentences that cannot be cut so, one pair where the sentences agree.
A block that stands for a line without a tree has the characters of its `# text`, no word.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from synmt_cli.core.segments.comments import is_placeholder
from synmt_cli.core.trees.heads import ROOT
from synmt_cli.errors import DataError, printable, quoted
from synmt_cli.formats.conllu import FORM, Sentence

NONE = -2  # the gold word of a system word that has none
LARGEST = 4_000_000  # pairs of words in one span with a multiword token
_SHOWN = 20  # characters of each text where they part


class SpanToken(NamedTuple):
    """A token as it is written. multiword: a range; n_words: of the tree, 0 without a tree."""

    characters: str
    n_words: int
    multiword: bool


@dataclass(slots=True)
class AlignedSpan:
    """Sentences of both streams with the same characters, and no fewer of either."""

    gold: list[Sentence] = field(default_factory=list)
    system: list[Sentence] = field(default_factory=list)


@dataclass(slots=True)
class Words:
    """The words of some sentences. spans: [begin, end) of each one's token, in characters.

    heads: index of each one's head, -1 for a root. tokens: the span of every token.
    sentences: where each begins, in characters, and how many words it has.
    """

    forms: list[str] = field(default_factory=list)
    spans: list[tuple[int, int]] = field(default_factory=list)
    multiword: list[bool] = field(default_factory=list)
    heads: list[int] = field(default_factory=list)
    deprels: list[str] = field(default_factory=list)
    upos: list[str] = field(default_factory=list)
    tokens: list[tuple[int, int]] = field(default_factory=list)
    sentences: list[tuple[int, int]] = field(default_factory=list)


def tokens(sentence: Sentence) -> list[SpanToken]:
    """The tokens of a sentence. A block without a tree is one token without words, or none."""
    if is_placeholder(sentence):
        text = "".join((sentence.comment("text") or "").split())
        return [SpanToken(text, 0, True)] if text else []
    found = []
    word = 0
    for first, last, row in sentence.ranges:
        found += [
            SpanToken(_characters(one[FORM]), 1, False) for one in sentence.words[word : first - 1]
        ]
        found.append(SpanToken(_characters(row[FORM]), last - first + 1, True))
        word = last
    return found + [SpanToken(_characters(one[FORM]), 1, False) for one in sentence.words[word:]]


def _characters(form: str) -> str:
    """A form without white space; one that is nothing else stays, as a token has a character."""
    return "".join(form.split()) or form


def words(sentences: Sequence[Sentence]) -> Words:
    """The words of sentences that follow each other, numbered through."""
    found = Words()
    at = 0
    for sentence in sentences:
        begin, first = at, len(found.spans)
        for token in tokens(sentence):
            span = at, at + len(token.characters)
            at = span[1]
            if token.n_words:
                found.tokens.append(span)
                found.spans += [span] * token.n_words
                found.multiword += [token.multiword] * token.n_words
        n = len(found.spans) - first
        found.sentences.append((begin, n))
        if n:
            found.forms += sentence.forms
            found.heads += [first + head - 1 if head else ROOT for head in sentence.heads]
            found.deprels += sentence.deprels
            found.upos += sentence.upos
    return found


def parts(
    gold: Iterator[Sentence], system: Iterator[Sentence], names: tuple[str, str]
) -> Iterator[AlignedSpan]:
    """Cuts two streams with the same text into parts. Blocks without characters are left out.

    names: of gold and system, for messages. Raises DataError where the texts part.
    """
    golds, systems = map(_texts, (gold, system))
    while (one := next(golds, None)) is not None:
        other = next(systems, None)
        if other is None:
            raise _ended(one[0], names[1])
        part = AlignedSpan([one[0]], [other[0]])
        texts = [one[1], other[1]]  # not yet found on the other side
        while texts[0] or texts[1]:
            n = min(map(len, texts))
            if texts[0][:n] != texts[1][:n]:
                raise _parted(part, texts)
            texts = [text[n:] for text in texts]
            if texts[0]:
                _extend(part.system, texts, 1, systems, part.gold[-1], names[1])
            elif texts[1]:
                _extend(part.gold, texts, 0, golds, part.system[-1], names[0])
        yield part
    if (left := next(systems, None)) is not None:
        raise _ended(left[0], names[0])


def _texts(sentences: Iterator[Sentence]) -> Iterator[tuple[Sentence, str]]:
    for sentence in sentences:
        if text := "".join(token.characters for token in tokens(sentence)):
            yield sentence, text


def _extend(
    sentences: list[Sentence],
    texts: list[str],
    side: int,
    stream: Iterator[tuple[Sentence, str]],
    longer: Sentence,
    name: str,
) -> None:
    """Takes the next sentence of the side whose text is used up. Raises DataError."""
    following = next(stream, None)
    if following is None:
        raise _ended(longer, name)
    sentences.append(following[0])
    texts[side] = following[1]


def _ended(sentence: Sentence, other: str) -> DataError:
    problem = f"the text goes on, but {printable(other)} ends before"
    return DataError(sentence.source, sentence.line, problem)


def _parted(part: AlignedSpan, texts: Sequence[str]) -> DataError:
    """Says in which sentences the texts differ, and how they go on there."""
    n = next(i for i, (a, b) in enumerate(zip(*texts, strict=False)) if a != b)
    gold, system = (quoted(text[n : n + _SHOWN]) for text in texts)
    where = f"{printable(part.gold[-1].source)}:{part.gold[-1].line}"
    problem = f"the text differs from {where}: {system}, not {gold}"
    return DataError(part.system[-1].source, part.system[-1].line, problem)


def align(gold: Words, system: Words) -> list[int]:
    """The gold word of each system word, or NONE. Raises ValueError: see `LARGEST`."""
    found = [NONE] * len(system.forms)
    same = gold.spans == system.spans and gold.multiword == system.multiword
    if same and gold.forms == system.forms:
        return list(range(len(found)))
    spans = _multiword_spans(gold, system)
    in_gold, in_system = _inside(gold, spans), _inside(system, spans)
    token_words = {gold.spans[word]: word for word in in_gold.pop(NONE, [])}
    for word in in_system.pop(NONE, []):
        found[word] = token_words.get(system.spans[word], NONE)
    for span, golds in in_gold.items():
        systems = in_system[span]
        forms = [gold.forms[word] for word in golds], [system.forms[word] for word in systems]
        for g, s in _common(*forms):
            found[systems[s]] = golds[g]
    return found


def _multiword_spans(gold: Words, system: Words) -> list[tuple[int, int]]:
    """The smallest spans that hold every multiword token and cut none, in order."""
    merged: list[tuple[int, int]] = []
    both = (zip(side.spans, side.multiword, strict=True) for side in (gold, system))
    for begin, end in sorted({span for side in both for span, multiword in side if multiword}):
        if merged and begin < merged[-1][1]:
            begin, end = merged[-1][0], max(end, merged.pop()[1])
        merged.append((begin, end))
    return merged


def _inside(side: Words, spans: Sequence[tuple[int, int]]) -> defaultdict[int, list[int]]:
    """The words inside each span, by its index, and under NONE those that touch none of them."""
    found: defaultdict[int, list[int]] = defaultdict(list)
    at = 0
    for word, (begin, end) in enumerate(side.spans):
        while at < len(spans) and spans[at][1] <= begin:
            at += 1
        if at == len(spans) or end <= spans[at][0]:
            found[NONE].append(word)
        elif spans[at][0] <= begin and end <= spans[at][1]:
            found[at].append(word)
    return found


def _common(gold: Sequence[str], system: Sequence[str]) -> Iterator[tuple[int, int]]:
    """A longest common subsequence of forms, case aside: pairs of indices."""
    gold, system = ([form.lower() for form in forms] for forms in (gold, system))
    if gold == system:
        yield from zip(range(len(gold)), range(len(gold)), strict=True)
        return
    if len(gold) * len(system) > LARGEST:
        raise ValueError(f"{len(gold):,} and {len(system):,} words under multiword tokens")
    longest = [[0] * (len(system) + 1) for _ in range(len(gold) + 1)]  # from here to the end
    for g in reversed(range(len(gold))):
        for s in reversed(range(len(system))):
            same = longest[g + 1][s + 1] + 1 if gold[g] == system[s] else 0
            longest[g][s] = max(same, longest[g + 1][s], longest[g][s + 1])
    g = s = 0
    while g < len(gold) and s < len(system):
        if gold[g] == system[s]:
            yield g, s
            g, s = g + 1, s + 1
        elif longest[g][s] == longest[g + 1][s]:
            g += 1
        else:
            s += 1
