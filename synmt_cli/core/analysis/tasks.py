"""The ten probing tasks of Conneau et al. (2018), made from treebanks.

As in SentEval's data, each sentence occurs once, the classes are balanced, and a word that a
label is about is in one split only. Some tasks differ, because they come from dependency trees:

    sentence-length   words, punctuation counted, in SentEval's classes: 0: 5-8, 1: 9-12,
                      2: 13-16, 3: 17-20, 4: 21-25, 5: 26-28
    word-content      which one of the most frequent nouns, verbs and adjectives of at least
                      four letters is in the sentence, once; one such word for each 50
                      sentences, at most 1,000; SentEval takes 1,000 words of middle rank
    tree-depth        arcs from the root to the deepest word; SentEval's is the depth of
                      constituents, decorrelated from length
    top-constituents  from Penn brackets: the labels of the parts of the sentence, such as
                      NP_VP_.; as in SentEval, the 19 most frequent sequences and OTHER; those
                      with punctuation inside or without `.` at the end are left out. The text
                      has a space between any two words
    bigram-shift      whether two neighbours were exchanged (I) or not (O), in half the
                      sentences: neither is punctuation or the first word, a space is between
                      them, and a space or punctuation on both sides of them
    tense             Past or Pres of the finite verb of the main clause, in the indicative: the
                      root, or else its first auxiliary or copula
    subject-number    Sing or Plur of the root's one nsubj, if it is a common noun
    object-number     the same for the root's obj
    odd-man-out       whether a noun or verb was exchanged for another (C) or not (O): one with
                      the same UPOS, features and capitalisation, in half the sentences, with a
                      space or punctuation on both sides. As in SentEval, the two bigrams that it
                      makes are about as frequent as the right ones: here their counts in all
                      other sentences, with 1 added, differ by a factor of 2 at most.
                      SentEval takes words that occur 40 to 400 times in its corpus, for which no
                      treebank is large enough; here any word may be taken
    coordination-inversion
                      whether two coordinate main clauses with subjects of their own, neither of
                      which begins with punctuation, were exchanged (I) or not (O). SentEval's
                      are balanced in clause length; here sentences are taken in pairs whose
                      clauses differ by n and by -n words, and both are exchanged or neither is
"""

import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise, takewhile
from random import Random

from synmt_cli.core.segments.alignment import tokens_of
from synmt_cli.core.trees.heads import ROOT, depths, from_roots
from synmt_cli.core.trees.relations import universal
from synmt_cli.formats import penn
from synmt_cli.formats.conllu import FEATS, FORM, LEMMA, MISC, UPOS, Sentence
from synmt_cli.formats.penn import Constituent

ODD = ("NOUN", "VERB")
MOST_SEQUENCES, OTHER_SEQUENCES, FULL_STOPS = 19, "OTHER", (".", "$.")
ROOTS = ("ROOT", "TOP", "S1")
TRIED = 200  # words, at most, that are tried in place of one
SUBJECTS = ("nsubj", "csubj", "expl")
BEGINS = (5, 9, 13, 17, 21, 26, 29)  # first length of each class; the last is too long
SENTENCES_A_WORD, MOST_WORDS, SHORTEST_WORD = 50, 1000, 4


@dataclass(frozen=True, slots=True)
class Case:
    """A sentence with its label. target: the word that the label is about, "" for none.

    text: given where there is no dependency tree, or where the text is not that of `sentence`.
    At least one of sentence and text is given.
    """

    label: str
    sentence: Sentence | None
    target: str = ""
    text: str | None = None


Make = Callable[[Sequence[Sentence], Random], Iterator[Case]]
MakeOfBrackets = Callable[[Sequence[Constituent]], Iterator[Case]]


@dataclass(frozen=True, slots=True)
class Task:
    """A probing task. group: surface, syntactic or semantic. file: SentEval's name for it.

    make: makes its cases from dependency trees; of_brackets: makes them from constituents.
    """

    group: str
    file: str
    make: Make | None = None
    of_brackets: MakeOfBrackets | None = None


def sentence_length(sentences: Sequence[Sentence], random: Random) -> Iterator[Case]:
    """Labels sentences with the class of their number of words."""
    for sentence in sentences:
        label = bisect_right(BEGINS, len(sentence.words)) - 1
        if 0 <= label < len(BEGINS) - 1:
            yield Case(str(label), sentence)


def word_content(sentences: Sequence[Sentence], random: Random) -> Iterator[Case]:
    """Labels sentences with the frequent word that they have, if they have exactly one."""
    counts: Counter[str] = Counter()
    for sentence in sentences:
        counts.update(_content_words(sentence))
    n_words = min(len(sentences) // SENTENCES_A_WORD, MOST_WORDS)
    ranked = sorted(counts, key=lambda word: (-counts[word], word))
    wanted = set(ranked[:n_words])
    for sentence in sentences:
        words = [word for word in _content_words(sentence) if word in wanted]
        if len(words) == 1:
            yield Case(words[0], sentence)


def _content_words(sentence: Sentence) -> Iterator[str]:
    for row in sentence.words:
        word = row[FORM].lower()
        if row[UPOS] in ("NOUN", "VERB", "ADJ") and len(word) >= SHORTEST_WORD:
            yield word


def tree_depth(sentences: Sequence[Sentence], random: Random) -> Iterator[Case]:
    """Labels sentences with the number of arcs down to the deepest word."""
    for sentence in sentences:
        yield Case(str(max(depths([head - 1 for head in sentence.heads]))), sentence)


def top_constituents(trees: Sequence[Constituent]) -> Iterator[Case]:
    """Labels sentences with the sequence of constituents and words that they consist of."""
    found = [(tree, top_labels(tree)) for tree in trees]
    judged = [(tree, "_".join(labels)) for tree, labels in found if _is_plain(labels)]
    counts = Counter(sequence for _, sequence in judged)
    ranked = sorted(counts, key=lambda sequence: (-counts[sequence], sequence))
    frequent = set(ranked[:MOST_SEQUENCES])
    for tree, sequence in judged:
        label = sequence if sequence in frequent else OTHER_SEQUENCES
        yield Case(label, None, text=" ".join(tree.words))


def top_labels(tree: Constituent) -> list[str]:
    """The labels below the top of a tree, without functions (NP for NP-SBJ); [] for several trees.

    The top is the outermost bracket, or, if that is one of ROOTS, the only bracket inside it.
    A bracket without a word, such as that of a trace, does not count.
    """
    below: dict[int, list[int]] = {-1: []}  # what stands in each constituent; -1 is the line
    filled: set[int] = set()  # constituents with a word
    opened = [-1]
    for i, item in enumerate(tree.items):
        if item is None:
            opened.pop()
            continue
        below[opened[-1]].append(i)
        if isinstance(item, str):
            below[i] = []
            opened.append(i)
        else:
            filled.add(i)
            filled.update(takewhile(lambda one: one not in filled, reversed(opened)))
    tops = [i for i in below[-1] if i in filled]
    if len(tops) == 1 and tree.items[tops[0]] in ROOTS:
        inside = [i for i in below[tops[0]] if i in filled]
        tops = inside if len(inside) == 1 and inside[0] in below else tops
    if len(tops) != 1:
        return []
    return [_label(tree, i) for i in below[tops[0]] if i in filled]


def _label(tree: Constituent, i: int) -> str:
    item = tree.items[i]
    label = tree.tags[item] if isinstance(item, int) else str(item)
    return label if label.startswith("-") else re.split("[-=|]", label)[0]


def _is_plain(labels: Sequence[str]) -> bool:
    """Whether the one punctuation mark, quotes and brackets included, is a full stop at the end."""
    return [*map(_is_mark, labels)] == [False] * (len(labels) - 1) + [True] and (
        labels[-1] in FULL_STOPS
    )


def _is_mark(label: str) -> bool:
    """Whether a part of speech is that of punctuation, in the Penn Treebank (, `` -LRB-) or in
    treebanks of German ($, $( $*LRB*).
    """
    if label in ("$", "#"):
        return False  # currency signs
    return label in penn.BRACKETS or label.startswith("$") or not re.search(r"[^\W_]", label)


def bigram_shift(sentences: Sequence[Sentence], random: Random) -> Iterator[Case]:
    """Exchanges two neighbours in half the sentences, by chance. No tree fits the result."""
    for sentence in sentences:
        rows = tokens_of([sentence]).rows
        pairs = [
            i
            for i in range(1, len(rows) - 1)
            if _exchangeable(rows[i], rows[i + 1]) and _stand_apart(rows, i, i + 1)
        ]
        if not pairs:
            continue
        i, label = random.choice(pairs), random.choice("IO")
        forms = [row[FORM] for row in rows]
        if label == "I":
            forms[i], forms[i + 1] = forms[i + 1], forms[i]
        yield Case(label, sentence, text=written(rows, forms))


def _exchangeable(row: Sequence[str], following: Sequence[str]) -> bool:
    punctuation = "PUNCT" in (row[UPOS], following[UPOS])
    return not punctuation and _space_after(row) and row[FORM].lower() != following[FORM].lower()


def _stand_apart(rows: Sequence[Sequence[str]], first: int, last: int) -> bool:
    """Whether a space or punctuation is on both sides of these words, so that others in their
    place would not run together with the neighbours, as after the `l'` of `l'assemblée`.
    """
    between = (first - 1, last)  # the rows before the two places
    return all(
        _space_after(rows[i]) or "PUNCT" in (rows[i][UPOS], rows[i + 1][UPOS])
        for i in between
        if 0 <= i < len(rows) - 1
    )


def plain(sentence: Sentence) -> str:
    """The text that the written tokens of a sentence make, whatever its comment `text` says."""
    rows = tokens_of([sentence]).rows
    return written(rows, [row[FORM] for row in rows])


def written(rows: Sequence[Sequence[str]], forms: Sequence[str]) -> str:
    """The forms as a line of text, with spaces where the rows have them."""
    parts = [form + " " * _space_after(row) for row, form in zip(rows, forms, strict=True)]
    return "".join(parts).rstrip(" ")


def _space_after(row: Sequence[str]) -> bool:
    return "SpaceAfter=No" not in row[MISC].split("|")


def tense(sentences: Sequence[Sentence], random: Random) -> Iterator[Case]:
    """Labels sentences with the tense of the main clause's finite verb.

    It has to be indicative: German `würde` is Past, but not a past tense.
    """
    for sentence in sentences:
        root = sentence.heads.index(0)
        helpers = [*_dependents(sentence, root, "aux"), *_dependents(sentence, root, "cop")]
        for row in (sentence.words[root], *helpers):
            features = _features(row)
            if features.get("VerbForm") == "Fin":
                is_fact = features.get("Mood", "Ind") == "Ind"
                if is_fact and features.get("Tense") in ("Past", "Pres"):
                    yield Case(features["Tense"], sentence, row[FORM].lower())
                break


def number(sentences: Sequence[Sentence], random: Random, relation: str) -> Iterator[Case]:
    """Labels sentences with the number of the root's one dependent by a relation, a common noun."""
    for sentence in sentences:
        rows = _dependents(sentence, sentence.heads.index(0), relation)
        if len(rows) == 1 and rows[0][UPOS] == "NOUN":
            label = _features(rows[0]).get("Number")
            if label in ("Sing", "Plur"):
                yield Case(label, sentence, rows[0][FORM].lower())


def _dependents(sentence: Sentence, head: int, relation: str) -> list[list[str]]:
    """The rows of a word's dependents by a relation, its subtypes included. head: from 0."""
    return [
        row
        for row, above, deprel in zip(sentence.words, sentence.heads, sentence.deprels, strict=True)
        if above == head + 1 and universal(deprel) == relation
    ]


def _features(row: Sequence[str]) -> dict[str, str]:
    pairs = (pair.partition("=") for pair in row[FEATS].split("|"))
    return {name: value for name, _, value in pairs}


def odd_man_out(sentences: Sequence[Sentence], random: Random) -> Iterator[Case]:
    """Replaces a noun or verb in half the sentences, by chance. No tree fits the result."""
    bigrams: Counter[tuple[str, str]] = Counter()
    words: dict[tuple[str, str, bool], dict[str, None]] = {}
    for sentence in sentences:
        rows = tokens_of([sentence]).rows
        forms = [row[FORM] for row in rows]
        bigrams.update(pairwise(forms))
        for row in rows:
            if row[UPOS] in ODD:
                words.setdefault(_odd_kind(row), {})[row[FORM]] = None
    lists = {kind: list(forms) for kind, forms in words.items()}
    for sentence in sentences:
        rows = tokens_of([sentence]).rows
        forms = [row[FORM] for row in rows]
        found = _replacement(rows, forms, lists, bigrams, random)
        if found is None:
            continue
        place, other = found
        if random.choice("OC") == "O":
            yield Case("O", sentence, forms[place].lower(), written(rows, forms))
        else:
            forms[place] = other
            yield Case("C", sentence, other.lower(), written(rows, forms))


def _odd_kind(row: Sequence[str]) -> tuple[str, str, bool]:
    return row[UPOS], row[FEATS], row[FORM][:1].isupper()


def _replacement(
    rows: Sequence[Sequence[str]],
    forms: Sequence[str],
    lists: Mapping[tuple[str, str, bool], list[str]],
    bigrams: Counter[tuple[str, str]],
    random: Random,
) -> tuple[int, str] | None:
    """A place after the first word and the word to stand there, or None."""
    places = [
        i for i in range(1, len(rows) - 1) if rows[i][UPOS] in ODD and _stand_apart(rows, i, i)
    ]
    own = Counter(pairwise(forms))
    for place in random.sample(places, len(places)):
        before, right, after = forms[place - 1 : place + 2]
        candidates = lists[_odd_kind(rows[place])]
        for other in random.sample(candidates, min(TRIED, len(candidates))):
            pairs = (((before, right), (before, other)), ((right, after), (other, after)))
            near = all(
                0.5 <= (1 + bigrams[new] - own[new]) / (1 + bigrams[old] - own[old]) <= 2
                for old, new in pairs
            )
            if near and other.lower() != right.lower():
                return place, other
    return None


def coordination_inversion(sentences: Sequence[Sentence], random: Random) -> Iterator[Case]:
    """Exchanges the two main clauses in half the sentences, by chance. No tree fits the result."""
    waiting: dict[int, list[_Clauses]] = defaultdict(list)  # by difference of lengths
    for sentence in sentences:
        clauses = _two_clauses(sentence)
        if clauses is None:
            continue
        if not waiting[-clauses.difference]:
            waiting[clauses.difference].append(clauses)
            continue
        label = random.choice("OI")
        for one in (waiting[-clauses.difference].pop(), clauses):
            yield Case(label, one.sentence, text=one.text(label == "I"))


@dataclass(frozen=True, slots=True)
class _Clauses:
    """A sentence of two coordinate clauses: the rows of each, of what joins them, of the end."""

    sentence: Sentence
    first: list[list[str]]
    joint: list[list[str]]
    second: list[list[str]]
    end: list[list[str]]

    @property
    def difference(self) -> int:
        """How many words longer the first clause is than the second."""
        return len(self.first) - len(self.second)

    def text(self, inverted: bool) -> str:
        """The sentence; if the clauses are exchanged, it still begins with a capital."""
        first, second = self.first, self.second
        if inverted:
            capital = second[0][FORM][:1].upper() + second[0][FORM][1:]
            small = first[0][FORM]
            if first[0][UPOS] != "PROPN" and small != "I" and not _noun_capital(first[0]):
                small = small[:1].lower() + small[1:]
            first, second = (
                [_with(second[0], capital), *second[1:]],
                [_with(first[0], small), *first[1:]],
            )
            # The spaces at the clauses' ends belong to the places, not to the words.
            first[-1], second[-1] = (
                _with(first[-1], first[-1][FORM], self.first[-1][MISC]),
                _with(second[-1], second[-1][FORM], self.second[-1][MISC]),
            )
        rows = [*first, *self.joint, *second, *self.end]
        return written(rows, [row[FORM] for row in rows])


def _noun_capital(row: Sequence[str]) -> bool:
    """Whether the word has its capital everywhere, as German nouns do: its lemma has it too."""
    return row[UPOS] == "NOUN" and row[LEMMA][:1].isupper()


def _with(row: Sequence[str], form: str, misc: str | None = None) -> list[str]:
    changed = list(row)
    changed[FORM] = form
    changed[MISC] = row[MISC] if misc is None else misc
    return changed


def _two_clauses(sentence: Sentence) -> _Clauses | None:
    """The clauses of a sentence that is nothing but two of them and one conjunction, or None."""
    if len(sentence.rows) != len(sentence.words):
        return None  # a multiword token may belong to both
    heads, rows = [head - 1 for head in sentence.heads], sentence.words
    labels = [*map(universal, sentence.deprels)]
    root = heads.index(ROOT)
    seconds = [i for i, head in enumerate(heads) if head == root and labels[i] == "conj"]
    if len(seconds) != 1 or labels.count("cc") != 1:
        return None
    second = seconds[0]
    below = _below(heads, second)
    of_both = {heads[i] for i, label in enumerate(labels) if label in SUBJECTS} >= {root, second}
    joint = [i for i in below if heads[i] == second and labels[i] in ("cc", "punct")]
    joint = [i for i in joint if i - below[0] == joint.index(i)]
    end = len(rows)
    while end and labels[end - 1] == "punct":
        end -= 1
    clause = [i for i in below if i not in joint and i < end]
    whole = bool(clause) and clause == list(range(below[0] + len(joint), end))
    has_cc = any(labels[i] == "cc" for i in joint)
    if not (of_both and has_cc and whole and root < below[0]):
        return None
    border = below[0]
    first, other = rows[:border], rows[border + len(joint) : end]
    if "PUNCT" in (first[0][UPOS], other[0][UPOS]):
        return None  # a quote or bracket would move away from its partner
    return _Clauses(sentence, first, [rows[i] for i in joint], other, rows[end:])


def _below(heads: Sequence[int], word: int) -> list[int]:
    """A word and all below it, in order."""
    found = {word}
    for one in from_roots(heads):
        if heads[one] in found:
            found.add(one)
    return sorted(found)


TASKS = {
    "sentence-length": Task("surface", "sentence_length", sentence_length),
    "word-content": Task("surface", "word_content", word_content),
    "tree-depth": Task("syntactic", "tree_depth", tree_depth),
    "top-constituents": Task("syntactic", "top_constituents", of_brackets=top_constituents),
    "bigram-shift": Task("syntactic", "bigram_shift", bigram_shift),
    "tense": Task("semantic", "past_present", tense),
    "subject-number": Task("semantic", "subj_number", partial(number, relation="nsubj")),
    "object-number": Task("semantic", "obj_number", partial(number, relation="obj")),
    "odd-man-out": Task("semantic", "odd_man_out", odd_man_out),
    "coordination-inversion": Task("semantic", "coordination_inversion", coordination_inversion),
}
MADE = {name: task.make for name, task in TASKS.items() if task.make is not None}
OF_BRACKETS = {name: task.of_brackets for name, task in TASKS.items() if task.of_brackets}
