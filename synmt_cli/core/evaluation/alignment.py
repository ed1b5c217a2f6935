"""Words of one CoNLL-U stream found in another that splits the same text differently.

As in the CoNLL 2018 shared task (Zeman et al. 2018) and its script conll18_ud_eval.py by
Straka and Popel: white space aside, both have the same characters, so that every token is a
span of them. Words that are tokens are the same where their spans are. Where a multiword
token is on either side, the words of the smallest span that cuts none of them are aligned by
a longest common subsequence of their forms, case aside.

Here the text is cut wherever both streams end a sentence, which changes no alignment: memory
is the longest run of sentences that cannot be cut so, one pair where the sentences agree.
A block that stands for a line without a tree has the characters of its `# text`, no word.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from synmt_cli.core.evaluation.segments import TREELESS
from synmt_cli.core.trees.heads import ROOT
from synmt_cli.errors import DataError, printable, quoted
from synmt_cli.formats.conllu import Sentence
from synmt_cli.formats.conllu_rows import FORM

NONE = -2  # the gold word of a system word that has none
LARGEST = 4_000_000  # pairs of words in one span with a multiword token
_SHOWN = 20  # characters of each text where they part


class Token(NamedTuple):
    """A token as it is written. multiword: a range; n_words: of the tree, 0 without a tree."""

    characters: str
    n_words: int
    multiword: bool


@dataclass(slots=True)
class Part:
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


def tokens(sentence: Sentence) -> list[Token]:
    """The tokens of a sentence. A block without a tree is one token without words, or none."""
    if sentence.comment("synmt_status") in TREELESS:
        text = "".join((sentence.comment("text") or "").split())
        return [Token(text, 0, True)] if text else []
    found = []
    word = 0
    for first, last, row in sentence.ranges:
        found += [
            Token(_characters(one[FORM]), 1, False) for one in sentence.words[word : first - 1]
        ]
        found.append(Token(_characters(row[FORM]), last - first + 1, True))
        word = last
    return found + [Token(_characters(one[FORM]), 1, False) for one in sentence.words[word:]]


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
) -> Iterator[Part]:
    """Cuts two streams with the same text into parts. Blocks without characters are left out.

    names: of gold and system, for messages. Raises DataError where the texts part.
    """
    golds, systems = map(_texts, (gold, system))
    while (one := next(golds, None)) is not None:
        other = next(systems, None)
        if other is None:
            raise _ended(one[0], names[1])
        part = Part([one[0]], [other[0]])
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


def _parted(part: Part, texts: Sequence[str]) -> DataError:
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
    g = s = 0
    while g < len(gold.forms) and s < len(system.forms):
        if gold.multiword[g] or system.multiword[s]:
            first_gold, first_system, g, s = _multiword_span(gold, system, g, s)
            forms = gold.forms[first_gold:g], system.forms[first_system:s]
            for in_gold, in_system in _common(*forms):
                found[first_system + in_system] = first_gold + in_gold
        elif gold.spans[g] == system.spans[s]:
            found[s] = g
            g, s = g + 1, s + 1
        elif gold.spans[g][0] <= system.spans[s][0]:
            g += 1
        else:
            s += 1
    return found


def _multiword_span(gold: Words, system: Words, g: int, s: int) -> tuple[int, int, int, int]:
    """First gold and system word of the smallest span that cuts no multiword token, and those
    behind it. One of the words g and s is of such a token."""
    if gold.multiword[g]:
        end = gold.spans[g][1]
        s += not system.multiword[s] and system.spans[s][0] < gold.spans[g][0]
    else:
        end = system.spans[s][1]
        g += not gold.multiword[g] and gold.spans[g][0] < system.spans[s][0]
    first = g, s
    while _within(gold, g, end) or _within(system, s, end):
        takes_gold = g < len(gold.spans) and (
            s >= len(system.spans) or gold.spans[g][0] <= system.spans[s][0]
        )
        side, word = (gold, g) if takes_gold else (system, s)
        if side.multiword[word]:
            end = max(end, side.spans[word][1])
        g, s = g + takes_gold, s + (not takes_gold)
    return *first, g, s


def _within(side: Words, word: int, end: int) -> bool:
    """Whether a word is in the span up to `end`: a multiword token if it begins there."""
    if word >= len(side.spans):
        return False
    begin, own_end = side.spans[word]
    return begin < end if side.multiword[word] else own_end <= end


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
