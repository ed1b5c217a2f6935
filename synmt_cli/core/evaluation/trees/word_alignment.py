"""Aligns the words of two CoNLL-U streams that split the same text differently.

As in the CoNLL 2018 shared task (Zeman et al. 2018), by the rules at the head of its script
conll18_ud_eval.py (Straka and Popel): white space aside, both have the same characters, so
that every token is a span of them. Where a multiword token is on either side, words inside the
smallest span that cuts no such token are aligned by a longest common subsequence of their
forms, case aside. Words that touch no such span are aligned where their tokens are the same.
(The script itself may take words into such a span that stand before it or stick out of it,
where tokens differ right before a multiword token. On treebanks its counts are these.)

Here the text is cut wherever both streams end a sentence, which changes no alignment: memory
is the longest span without such a cut, one pair of sentences where the streams agree. A block
that stands for a line without a tree has the characters of its `# text` and no word.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from synmt_cli.core.segments.comments import is_placeholder
from synmt_cli.core.trees.heads import ROOT
from synmt_cli.errors import DataError, quoted
from synmt_cli.formats.conllu import FEATS, FORM, LEMMA, XPOS, Sentence

UNALIGNED = -2  # the gold word of a system word that has none
LARGEST = 4_000_000  # pairs of words in one span with a multiword token
_SHOWN = 20  # characters of each text from where they differ


class SpanToken(NamedTuple):
    """A written token. n_words: in the tree, 0 without a tree. multiword: whether it is a range."""

    characters: str
    n_words: int
    multiword: bool


@dataclass(slots=True)
class AlignedSpan:
    """The fewest sentences of both streams that have the same characters."""

    gold: list[Sentence] = field(default_factory=list)
    system: list[Sentence] = field(default_factory=list)


@dataclass(slots=True)
class Words:
    """The words of some sentences. spans: [begin, end) of each word's token, in characters.

    heads: the index of each word's head, -1 for a root. tokens: the span of every token.
    sentences: where each begins, in characters, and how many words it has.
    """

    forms: list[str] = field(default_factory=list)
    spans: list[tuple[int, int]] = field(default_factory=list)
    multiword: list[bool] = field(default_factory=list)
    heads: list[int] = field(default_factory=list)
    deprels: list[str] = field(default_factory=list)
    upos: list[str] = field(default_factory=list)
    xpos: list[str] = field(default_factory=list)
    feats: list[str] = field(default_factory=list)
    lemmas: list[str] = field(default_factory=list)
    tokens: list[tuple[int, int]] = field(default_factory=list)
    sentences: list[tuple[int, int]] = field(default_factory=list)


def tokens(sentence: Sentence) -> list[SpanToken]:
    """The tokens of a sentence. A block without a tree is one token without words, or none."""
    if is_placeholder(sentence):
        text = "".join((sentence.comment("text") or "").split())
        return [SpanToken(text, 0, True)] if text else []
    alone = [SpanToken(_characters(row[FORM]), 1, False) for row in sentence.words]
    tokens = []
    word = 0
    for first, last, row in sentence.ranges:
        tokens += alone[word : first - 1]
        tokens.append(SpanToken(_characters(row[FORM]), last - first + 1, True))
        word = last
    return tokens + alone[word:]


def _characters(form: str) -> str:
    """A form without white space; a form of white space stays, as a token has a character."""
    return "".join(form.split()) or form


def words(sentences: Sequence[Sentence]) -> Words:
    """The words of consecutive sentences, numbered through."""
    words = Words()
    at = 0
    for sentence in sentences:
        begin, first = at, len(words.spans)
        for token in tokens(sentence):
            span = at, at + len(token.characters)
            at = span[1]
            if token.n_words:
                words.tokens.append(span)
                words.spans += [span] * token.n_words
                words.multiword += [token.multiword] * token.n_words
        n = len(words.spans) - first
        words.sentences.append((begin, n))
        if n:
            words.forms += sentence.forms
            words.heads += [first + head - 1 if head else ROOT for head in sentence.heads]
            words.deprels += sentence.deprels
            words.upos += sentence.upos
            words.xpos += [row[XPOS] for row in sentence.words]
            words.feats += [row[FEATS] for row in sentence.words]
            words.lemmas += [row[LEMMA] for row in sentence.words]
    return words


def aligned_spans(
    gold: Iterator[Sentence], system: Iterator[Sentence], names: tuple[str, str]
) -> Iterator[AlignedSpan]:
    """Cuts two streams with the same text into spans. Blocks without characters are left out.

    names: of gold and system, for messages. Raises DataError where the texts differ.
    """
    golds, systems = streams = (_texts(gold), _texts(system))
    for first, text in golds:
        other = next(systems, None)
        if other is None:
            raise _ended(first, names[1])
        span = AlignedSpan([first], [other[0]])
        sides = (span.gold, span.system)
        texts = [text, other[1]]  # what the other side does not have yet
        while any(texts):
            n = min(map(len, texts))
            if texts[0][:n] != texts[1][:n]:
                raise _different(span, texts)
            texts = [text[n:] for text in texts]
            if any(texts):
                short = texts.index("")
                following = next(streams[short], None)
                if following is None:
                    raise _ended(sides[1 - short][-1], names[short])
                sides[short].append(following[0])
                texts[short] = following[1]
        yield span
    if (left := next(systems, None)) is not None:
        raise _ended(left[0], names[0])


def _texts(sentences: Iterator[Sentence]) -> Iterator[tuple[Sentence, str]]:
    for sentence in sentences:
        if text := "".join(token.characters for token in tokens(sentence)):
            yield sentence, text


def _ended(sentence: Sentence, other: str) -> DataError:
    problem = f"the text goes on, but {other} ends before"
    return DataError(sentence.source, sentence.line, problem)


def _different(span: AlignedSpan, texts: Sequence[str]) -> DataError:
    """Says in which sentences the texts differ, and how they go on there."""
    n = next(i for i, (a, b) in enumerate(zip(*texts, strict=False)) if a != b)
    gold, system = (quoted(text[n : n + _SHOWN]) for text in texts)
    where = f"{span.gold[-1].source}:{span.gold[-1].line}"
    problem = f"the text differs from {where}: {system}, not {gold}"
    return DataError(span.system[-1].source, span.system[-1].line, problem)


def align(gold: Words, system: Words) -> list[int]:
    """The gold word of each system word, or UNALIGNED. Raises ValueError: see `LARGEST`."""
    aligned = [UNALIGNED] * len(system.forms)
    same = gold.spans == system.spans and gold.multiword == system.multiword
    if same and gold.forms == system.forms:
        return list(range(len(aligned)))
    spans = _multiword_spans(gold, system)
    in_gold, in_system = _inside(gold, spans), _inside(system, spans)
    token_words = {gold.spans[word]: word for word in in_gold.pop(UNALIGNED, [])}
    for word in in_system.pop(UNALIGNED, []):
        aligned[word] = token_words.get(system.spans[word], UNALIGNED)
    for span, golds in in_gold.items():
        systems = in_system[span]
        forms = [gold.forms[word] for word in golds], [system.forms[word] for word in systems]
        for g, s in _common(*forms):
            aligned[systems[s]] = golds[g]
    return aligned


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
    """The words inside each span, by its index, and under UNALIGNED those that touch no span."""
    inside: defaultdict[int, list[int]] = defaultdict(list)
    at = 0
    for word, (begin, end) in enumerate(side.spans):
        while at < len(spans) and spans[at][1] <= begin:
            at += 1
        if at == len(spans) or end <= spans[at][0]:
            inside[UNALIGNED].append(word)
        elif spans[at][0] <= begin and end <= spans[at][1]:
            inside[at].append(word)
    return inside


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
